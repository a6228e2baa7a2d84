from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.report.sample_detector import realistic_report
from tests.report.samples import layer, tensor
from trtplug.report.html_data import layer_edges


def _layers(*pairs: tuple[str, str]):
    """Layers that read and write tensors of one letter."""
    return tuple(
        layer(
            i,
            f"layer{i}",
            "kgen",
            inputs=tuple(tensor(n, (1,)) for n in reads),
            outputs=tuple(tensor(n, (1,)) for n in writes),
        )
        for i, (reads, writes) in enumerate(pairs)
    )


def _edges(*pairs: tuple[str, str]):
    edges = layer_edges(_layers(*pairs))
    return (
        [(a, b, t.name) for a, b, t in edges.between],
        [(i, t.name) for i, t in edges.read],
        [(i, t.name) for i, t in edges.written],
    )


def test_a_branch_and_a_join() -> None:
    between, read, written = _edges(("x", "a"), ("a", "b"), ("ab", "y"))
    assert between == [(0, 1, "a"), (0, 2, "a"), (1, 2, "b")]
    assert (read, written) == ([(0, "x")], [(2, "y")])


def test_each_writer_of_parts_of_a_tensor_leads_to_its_reader() -> None:
    between, _, _ = _edges(("x", "a"), ("x", "a"), ("a", "y"))
    assert between == [(0, 2, "a"), (1, 2, "a")]


def test_a_tensor_read_twice_by_a_layer_is_one_edge() -> None:
    assert _edges(("", "a"), ("aa", "y"))[0] == [(0, 1, "a")]


def test_a_layer_that_writes_over_what_it_reads() -> None:
    between, read, written = _edges(("x", "a"), ("a", "a"))
    assert between == [(0, 1, "a")]
    assert (read, written) == ([(0, "x")], [(1, "a")])


def test_a_layer_before_its_writer_reads_from_outside() -> None:
    assert _edges(("a", "b"), ("b", "a")) == ([(0, 1, "b")], [(0, "a")], [(1, "a")])


def test_the_model_has_one_input_and_one_output() -> None:
    edges = layer_edges(realistic_report().layers)
    assert {t.name for _, t in edges.read} == {"x"}
    assert {t.name for _, t in edges.written} == {"sigmoid_0.tmp_0"}


letters = st.text("abcd", max_size=3)


@given(st.lists(st.tuples(letters, letters), max_size=12))
def test_edges_lead_onwards_and_each_input_is_accounted_for(pairs) -> None:
    between, read, _ = _edges(*pairs)
    assert all(a < b for a, b, _ in between)
    reached = {(b, name) for _, b, name in between} | set(read)
    assert reached == {(i, name) for i, (reads, _) in enumerate(pairs) for name in reads}


def test_many_writers_and_readers_of_one_tensor_stay_linear() -> None:
    edges = layer_edges(_layers(*[("", "a")] * 500, *[("a", "")] * 500))
    assert len(edges.between) == 500 * 16
