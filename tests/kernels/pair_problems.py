"""Pairs to try tactics on: a short hand, and a strategy over all that the op allows."""

from hypothesis import strategies as st

from tests.kernels.problems import activations, input_sizes, kernels
from trtplug.kernels.problem import PairProblem
from trtplug.ops.cbr import RESIDUALS, CbrAttributes
from trtplug.ops.cbr_pair import CbrPairAttributes
from trtplug.tensor import ShapeRange

LARGEST_CHANNELS = 80
LARGEST_OUTPUTS = 150


def pair(
    x,
    outputs,
    kernel=(3, 3),
    dtype="float16",
    strides=(1, 1),
    pads=(1, 1, 1, 1),
    dilations=(1, 1),
    first=None,
    second=None,
    residual="none",
    least=None,
):
    """A pair on an input of sizes `x`; `first` and `second` are activations with parameters."""
    return PairProblem(
        attributes=CbrPairAttributes(
            depthwise=CbrAttributes(
                kernel_shape=kernel,
                strides=strides,
                pads=pads,
                dilations=dilations,
                group=x[1],
                **(first or {"activation": "clip", "min": 0.0, "max": 6.0}),
            ),
            pointwise=CbrAttributes(kernel_shape=(1, 1), residual=residual, **(second or {})),
        ),
        outputs=outputs,
        dtype=dtype,
        x=ShapeRange(name="x", min=tuple(least or x), opt=tuple(x), max=tuple(x)),
    )


@st.composite
def pairs(draw, dtypes=("float16",)):
    """Any pair with channels to 80, sizes to 33, batch to 3, kernels to 7 (to 70), pads to 7."""
    kernel = draw(kernels(long=draw(st.integers(0, 6)) == 6))
    dilations = draw(st.tuples(*2 * [st.integers(1, 2)]))
    pads = draw(st.tuples(*4 * [st.integers(0, 7)]))
    sizes = draw(input_sizes(kernel, dilations, pads))
    x = (draw(st.integers(1, 3)), draw(st.integers(1, LARGEST_CHANNELS)), *sizes)
    grown = tuple(n + int(axis != 1 and draw(st.booleans())) for axis, n in enumerate(x))
    return pair(
        grown,
        draw(st.integers(1, LARGEST_OUTPUTS)),
        kernel=kernel,
        dtype=draw(st.sampled_from(dtypes)),
        strides=draw(st.tuples(*2 * [st.integers(1, 3)])),
        pads=pads,
        dilations=dilations,
        first=draw(activations()),
        second=draw(activations()),
        residual=draw(st.sampled_from(RESIDUALS)),
        least=x,
    )
