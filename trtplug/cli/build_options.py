"""Options of `trtplug build` that only enterprise TensorRT has, as typer takes them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trtplug.cli.options import parse_bytes
from trtplug.errors import FileUnreadableError, UsageError

if TYPE_CHECKING:
    from trtplug.backends.options import PluginLibrary, TrtOptions

Profile = Annotated[
    list[str] | None,
    typer.Option(
        help="One more optimization profile: NAME=MIN[:OPT:MAX], with ; between inputs; repeatable."
    ),
]
AvgTiming = Annotated[
    int | None,
    typer.Option(min=1, max=64, help="[trt] How often each tactic is timed."),
]
MaxTactics = Annotated[
    int | None,
    typer.Option(min=1, max=10000, help="[trt] Most tactics timed for a layer."),
]
Tiling = Annotated[str | None, typer.Option(help="[trt] none, fast, moderate or full.")]
L2Limit = Annotated[
    str | None,
    typer.Option(help="[trt] What tiling may take of the L2 cache."),
]
AuxStreams = Annotated[
    int | None,
    typer.Option(min=0, max=64, help="[trt] Most streams beside the main one."),
]
TacticSharedMemory = Annotated[
    str | None,
    typer.Option(help="[trt] Limit on a tactic's shared memory, such as 48KiB."),
]
Sparsity = Annotated[
    bool | None,
    typer.Option("--sparsity", help="[trt] Use sparse kernels for 2:4 weights."),
]
VersionCompatible = Annotated[
    bool | None,
    typer.Option("--version-compatible", help="[trt] Loads in later versions too."),
]
ExcludeLeanRuntime = Annotated[
    bool | None,
    typer.Option(
        "--exclude-lean-runtime",
        help="[trt] Leave the lean runtime out of a version-compatible engine.",
    ),
]
HardwareCompatibility = Annotated[
    str | None,
    typer.Option(help="[trt] none, ampere_plus or same_compute_capability."),
]
Strip = Annotated[
    bool | None,
    typer.Option("--strip", help="[trt] Leave refittable weights out."),
]
Refit = Annotated[
    str | None,
    typer.Option(help="[trt] all or identical: which weights may be set later."),
]
TacticSource = Annotated[
    list[str] | None,
    typer.Option(help="[trt] +NAME or -NAME, such as -JIT_CONVOLUTIONS."),
]
Preview = Annotated[
    list[str] | None,
    typer.Option(help="[trt] Preview feature, +NAME or -NAME; repeatable."),
]
ParserFlag = Annotated[
    list[str] | None,
    typer.Option(help="[trt] ONNX parser flag, +NAME or -NAME; repeatable."),
]
BuilderFlag = Annotated[
    list[str] | None,
    typer.Option(help="[trt] Builder flag, such as STRICT_NANS; repeatable."),
]
BuildRoute = Annotated[
    str | None,
    typer.Option(help="[trt] Compiler's route, such as '-a=on -b=2'."),
]
PluginLibraries = Annotated[
    list[Path] | None,
    typer.Option(help="[trt] Shared library with plugins; repeatable."),
]
TrialRun = Annotated[
    bool | None,
    typer.Option(
        "--trial-run/--no-trial-run",
        help="[trt] Load and run the finished engine once.  [default: on]",
    ),
]
Wait = Annotated[
    bool | None,
    typer.Option(
        "--wait/--no-wait",
        help="[trt] Wait while another build holds the GPU.  [default: on]",
    ),
]


def trt_options(options: dict[str, Any]) -> TrtOptions:
    """From options by name, as given on the command line or in trtplug.toml.

    Raises:
        UsageError: a value that cannot be meant.
        FileUnreadableError: a plugin library that cannot be read.
    """
    from trtplug.backends.options import TrtOptions

    plain = ("avg_timing", "max_tactics", "aux_streams", "sparsity", "version_compatible")
    more = ("exclude_lean_runtime", "strip", "build_route", "trial_run")
    given = {k: options[k] for k in (*plain, *more) if k in options}
    for key in ("tiling", "hardware_compatibility", "refit"):
        if key in options:
            given[key] = options[key].lower()
    for key, name in (
        ("l2_limit", "l2_limit_bytes"),
        ("tactic_shared_memory", "tactic_shared_memory_bytes"),
    ):
        if key in options:
            given[name] = parse_bytes(options[key], f"--{key.replace('_', '-')}")
    for key, name in (
        ("tactic_source", "tactic_sources"),
        ("preview", "preview"),
        ("parser_flag", "parser_flags"),
    ):
        if key in options:
            given[name] = tuple(signed_name(v, f"--{key.replace('_', '-')}") for v in options[key])
    if "builder_flag" in options:
        given["builder_flags"] = tuple(v.upper() for v in options["builder_flag"])
    if "plugin_library" in options:
        given["plugin_libraries"] = tuple(_library(Path(p)) for p in options["plugin_library"])
    return TrtOptions(**given)


def signed_name(value: str, option: str) -> str:
    """`+name`, `-name` or `name` as `+NAME` or `-NAME`.

    Raises:
        UsageError: there is no name.
    """
    sign = value[0] if value[:1] in ("+", "-") else "+"
    name = value.lstrip("+-").upper()
    if not name:
        raise UsageError(f"{option} {value!r} names nothing", f"write {option} +NAME or -NAME")
    return sign + name


def _library(path: Path) -> PluginLibrary:
    import hashlib

    from trtplug.backends.options import PluginLibrary

    try:
        data = path.read_bytes()
    except OSError as error:
        problem = (error.strerror or str(error)).lower()
        raise FileUnreadableError(path=str(path), problem=problem) from error
    return PluginLibrary(path=str(path.resolve()), sha256=hashlib.sha256(data).hexdigest())
