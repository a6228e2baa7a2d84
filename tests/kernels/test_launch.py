"""Launches and outputs on sizes that are no numbers yet, against those on numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.backends.trt.plugin_expressions import Builder, Expression
from tests.kernels.kernels import PAIRS, SHARED_BYTES, SINGLES
from tests.kernels.pair_problems import pair, pairs
from tests.kernels.problems import problem, problems
from trtplug.kernels.catalog import CATALOG
from trtplug.kernels.problem import check_range
from trtplug.ops.cbr import output_shape
from trtplug.target import Sm


class Symbol:
    """As little as a size needs: `+ - * //` with the size on the left; anything else fails."""

    def __init__(self, expression: Expression) -> None:
        self.expression = expression

    def _with(self, operation: str, other) -> Symbol:
        right = other.expression if isinstance(other, Symbol) else Builder().constant(other)
        return Symbol(Builder().operation(operation, self.expression, right))

    def __add__(self, other):
        return self._with("SUM", other)

    def __sub__(self, other):
        return self._with("SUB", other)

    def __mul__(self, other):
        return self._with("PROD", other)

    def __floordiv__(self, other):
        return self._with("FLOOR_DIV", other)


def symbols(sizes) -> list[Symbol]:
    return [Symbol(Expression(n, False)) for n in sizes]


def plain(values) -> tuple[int, ...]:
    return tuple(v.expression.hidden if isinstance(v, Symbol) else v for v in values)


@given(st.one_of(problems(("float", "float16")), pairs()), st.booleans())
def test_symbols_give_what_numbers_give(given, largest):
    sizes = given.x.max if largest else given.x.min
    assert plain(given.output(symbols(sizes))) == given.output(sizes)
    for tactic in CATALOG.legal(given, Sm(90), SHARED_BYTES):
        made = tactic.launch(given, symbols(sizes))
        wanted = tactic.launch(given, sizes)
        assert plain(made.grid) == wanted.grid
        assert made.block == wanted.block
        assert all(isinstance(n, int) for n in (*wanted.grid, *made.block, made.shared_bytes))


@given(problems(("float", "float16")))
def test_an_output_is_as_the_op_has_it(given):
    sizes = given.x.max
    assert given.output(sizes) == output_shape(sizes, given.weight_shape, given.attributes)


def test_a_tactic_of_the_other_op_is_refused():
    for tactic, other in ((PAIRS[0], problem((1, 8, 4, 4), 8)), (SINGLES[0], pair_of_8())):
        with pytest.raises(TypeError, match="is no tactic for"):
            tactic.launch(other, (1, 8, 4, 4))
        with pytest.raises(TypeError, match="is no tactic for"):
            tactic.generate(other, Sm(80))


def pair_of_8():
    return pair((1, 8, 4, 4), 8)


def test_each_op_has_its_kernel():
    assert {t.kernel for t in SINGLES}.isdisjoint(t.kernel for t in PAIRS)


@given(problems(), st.lists(st.integers(-1, 1), min_size=4, max_size=4), st.booleans())
def test_a_range_is_taken_where_it_lies_inside(given, steps, at_the_end):
    ends = [list(given.x.min), list(given.x.max)]
    moved = ends[int(at_the_end)]
    moved[:] = [n + step for n, step in zip(moved, steps, strict=True)]
    inside = all(
        low <= a and b <= high
        for low, a, b, high in zip(given.x.min, *ends, given.x.max, strict=True)
    )
    if inside:
        check_range(given, *ends)
    else:
        with pytest.raises(ValueError, match="kernels for inputs"):
            check_range(given, *ends)


def test_another_rank_is_no_range():
    with pytest.raises(ValueError, match="kernels for inputs"):
        check_range(problem((1, 8, 4, 4), 8), (1, 8, 4), (1, 8, 4))
