"""Problems to try tactics on: a strategy over all that the op allows, and a short hand."""

from hypothesis import strategies as st

from trtplug.kernels.problem import KernelProblem
from trtplug.ops.cbr import ACTIVATIONS, RESIDUALS, CbrAttributes
from trtplug.tensor import ShapeRange

LARGEST_CHANNELS = 80


def problem(
    x,
    outputs,
    kernel=(3, 3),
    dtype="float16",
    strides=(1, 1),
    pads=(1, 1, 1, 1),
    least=None,
    **attributes,
):
    """A problem on an input of sizes `x` [N, C, H, W]; `least` is the smallest it may be."""
    return KernelProblem(
        attributes=CbrAttributes(kernel_shape=kernel, strides=strides, pads=pads, **attributes),
        outputs=outputs,
        dtype=dtype,
        x=ShapeRange(name="x", min=tuple(least or x), opt=tuple(x), max=tuple(x)),
    )


@st.composite
def problems(draw, dtypes=("float16",)):
    """Any problem with channels to 80, sizes to 33, batch to 3, kernels to 7, pads to 7.

    Long ones have kernels of 8 to 70 along one axis, on few channels, and larger inputs to match.

    What some tactics are for is drawn as such: by chance hardly any problem would be 1x1 without
    padding, or have as few channels as a first layer.
    """
    kind = draw(st.sampled_from(KINDS))
    group, channels, outputs = draw(_channels(kind))
    dilations = draw(st.tuples(*2 * [st.integers(1, 2)]))
    flat = kind == "pointwise"
    kernel = (1, 1) if flat else draw(kernels(long=kind == "long"))
    pads = (0, 0, 0, 0) if flat else draw(st.tuples(*4 * [st.integers(0, 7)]))
    sizes = draw(input_sizes(kernel, dilations, pads))
    x = (draw(st.integers(1, 3)), channels, *sizes)
    dynamic = draw(st.tuples(*3 * [st.booleans()]))
    return KernelProblem(
        attributes=CbrAttributes(
            kernel_shape=kernel,
            strides=draw(st.tuples(*2 * [st.integers(1, 3)])),
            pads=pads,
            dilations=dilations,
            group=group,
            residual=draw(st.sampled_from(RESIDUALS)),
            **draw(activations()),
        ),
        outputs=outputs,
        dtype=draw(st.sampled_from(dtypes)),
        x=ShapeRange(name="x", min=x, opt=x, max=_grown(x, dynamic)),
    )


@st.composite
def kernels(draw, *, long):
    """Kernel height and width, to 7; of a long one one of them is 8 to 70, the other 1 or 2."""
    if not long:
        return draw(st.tuples(*2 * [st.integers(1, 7)]))
    sides = (draw(st.integers(1, 2)), draw(st.integers(8, 70)))
    return sides if draw(st.booleans()) else sides[::-1]


@st.composite
def input_sizes(draw, kernel, dilations, pads):
    """Height and width, to 33 or a little more than the window needs."""
    needed = [
        max(1, d * (k - 1) + 1 - pads[axis] - pads[axis + 2])
        for axis, (k, d) in enumerate(zip(kernel, dilations, strict=True))
    ]
    return tuple(draw(st.integers(n, max(33, n + 3))) for n in needed)


def _grown(x, dynamic):
    """The same sizes, one more on each dynamic axis."""
    batch, height, width = (int(flag) for flag in dynamic)
    return (x[0] + batch, x[1], x[2] + height, x[3] + width)


KINDS = ("dense", "pointwise", "stem", "depthwise", "grouped", "eights", "long")
"""Each as often: any, 1x1 without padding, few channels, a filter a channel, groups of any size,
groups of multiples of 8, kernels of 8 to 70 along one axis."""


@st.composite
def _channels(draw, kind):
    """Group, channels, outputs."""
    if kind in ("dense", "pointwise", "stem"):
        most = 4 if kind == "stem" else LARGEST_CHANNELS
        return 1, draw(st.integers(1, most)), draw(st.integers(1, LARGEST_CHANNELS))
    if kind == "long":
        channels = draw(st.integers(1, 10))
        one_each = draw(st.booleans())
        outputs = channels if one_each else draw(st.integers(1, 10))
        return channels if one_each else 1, channels, outputs
    if kind == "depthwise":
        channels = draw(st.integers(1, LARGEST_CHANNELS))
        return channels, channels, channels
    step = 8 if kind == "eights" else 1
    group = draw(st.integers(2, 4))
    most = LARGEST_CHANNELS // (group * step)
    inner, outer = draw(st.integers(1, most)), draw(st.integers(1, most))
    return group, group * inner * step, group * outer * step


@st.composite
def activations(draw):
    """Each activation, with parameters as exporters write them."""
    kind = draw(st.sampled_from(ACTIVATIONS))
    parameters = {
        "clip": st.sampled_from(({"min": 0.0, "max": 6.0}, {"min": -0.5}, {"max": 0.25})),
        "leaky_relu": st.builds(lambda a: {"alpha": a}, st.sampled_from((0.1, 0.01, -0.5))),
        "hard_sigmoid": st.just({"alpha": 0.2, "beta": 0.5}),
        "hard_swish": st.just({"alpha": 1 / 6, "beta": 0.5}),
        "gelu": st.sampled_from(({"alpha": 0.0}, {"alpha": 1.0})),
    }
    return {"activation": kind, **draw(parameters.get(kind, st.just({})))}
