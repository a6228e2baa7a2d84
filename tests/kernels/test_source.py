"""Assembling a source with what it includes."""

import pytest

from trtplug.kernels.source import Headers, assemble


@pytest.fixture
def plugins(tmp_path):
    (tmp_path / "a.cuh").write_text('#pragma once\n#include "b.cuh"\n')
    (tmp_path / "b.cuh").write_text('#include "a.cuh"\nint b;\n')
    (tmp_path / "unused.cuh").write_text("int unused;\n")
    return tmp_path


def test_takes_what_is_included_by_and_by_and_nothing_else(plugins):
    source = assemble("k", '#include "a.cuh"\n', Headers(folders=(plugins,)))
    assert [name for name, _ in source.headers] == ["a.cuh", "b.cuh"]


def test_the_digest_changes_with_text_name_and_headers(plugins):
    digests = {assemble("k", '#include "a.cuh"\n', Headers(folders=(plugins,))).digest}
    digests.add(assemble("k", '#include "a.cuh"\n\n', Headers(folders=(plugins,))).digest)
    digests.add(assemble("other", '#include "a.cuh"\n', Headers(folders=(plugins,))).digest)
    (plugins / "unused.cuh").write_text("int changed;\n")
    digests.add(assemble("k", '#include "a.cuh"\n', Headers(folders=(plugins,))).digest)
    assert len(digests) == 3
    (plugins / "b.cuh").write_text("int changed;\n")
    digests.add(assemble("k", '#include "a.cuh"\n', Headers(folders=(plugins,))).digest)
    assert len(digests) == 4


def test_a_header_that_is_not_there_is_named(plugins):
    with pytest.raises(FileNotFoundError, match=r"none\.cuh"):
        assemble("k", '#include "none.cuh"\n', Headers(folders=(plugins,)))
