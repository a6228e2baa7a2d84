"""How far imports reach: `lint-imports` holds their direction, this the longest chain of them,
with and without those for types alone."""

from __future__ import annotations

import graphlib

import grimp
import pytest

LONGEST_CHAIN = 18


def longest_chain(imports: dict[str, set[str]]) -> list[str]:
    """The longest path of modules that import one another.

    Raises:
        graphlib.CycleError: they import one another in a circle.
    """
    best: dict[str, list[str]] = {}
    for module in graphlib.TopologicalSorter(imports).static_order():
        rest = max((best[m] for m in sorted(imports[module])), key=len, default=[])
        best[module] = [module, *rest]
    return max(best.values(), key=len)


@pytest.mark.parametrize("types_too", [False, True])
def test_longest_chain(types_too: bool):
    graph = grimp.build_graph(
        "trtplug", exclude_type_checking_imports=not types_too, cache_dir=None
    )
    imports = {m: set(graph.find_modules_directly_imported_by(m)) for m in graph.modules}
    # The package names its functions for type checkers alone; all modules import it.
    assert imports["trtplug"] <= {"trtplug.api", "trtplug.build.api"}
    imports["trtplug"] = set()
    chain = longest_chain(imports)
    assert len(chain) <= LONGEST_CHAIN, "\n".join([f"{len(chain)} modules:", *chain])


def test_the_measure_itself():
    assert longest_chain({"a": {"b", "c"}, "b": {"c"}, "c": set(), "d": {"c"}}) == ["a", "b", "c"]
