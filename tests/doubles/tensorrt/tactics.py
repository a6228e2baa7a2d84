"""Layers, their candidates and their timings: all of it follows from names, shapes and the GPU.

The log follows NVIDIA's sampleEditableTimingCache. A layer whose key is in the cache is not timed.
"""

from __future__ import annotations

import fnmatch
import hashlib
import os

from tensorrt import plugin_calls
from tensorrt.enums import BuilderFlag, TacticSource
from tensorrt.logger import Logger
from tensorrt.release import gpu_name, script

HEADER = (
    "tactic_id, cost(in ms), cost/fastest_cost, prediction_correlation, kernel_name, tactic_hash, "
    "tunable_parameter"
)
_FUSED_BEHIND = ("Relu", "Clip", "Sigmoid", "HardSwish", "LeakyRelu", "Add", "Mul")
_TILES = ("32x32x64", "64x32x64", "64x64x64", "128x64x32", "128x128x64", "256x64x32")


class BuildError(Exception):
    """The build ends; the builder says so in the log and returns None."""


def fuse(nodes: list) -> list[list]:
    """Nodes as layers: a convolution takes what only reads its result, as native fusion does."""
    readers: dict[str, list] = {}
    for node in nodes:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    layers, taken = [], set()
    for node in nodes:
        if id(node) in taken or node.op_type == "Constant":
            continue
        group = [node]
        while group[0].op_type in ("Conv", "MatMul", "Gemm"):
            behind = readers.get(group[-1].output[0], [])
            if len(behind) != 1 or behind[0].op_type not in _FUSED_BEHIND:
                break
            if id(behind[0]) in taken or not _only_reads(behind[0], group, layers):
                break
            group.append(behind[0])
        taken.update(map(id, group))
        layers.append(group)
    return layers


def _only_reads(node: object, group: list, layers: list[list]) -> bool:
    """Whether all that a node reads beside the group is computed already, or constant."""
    made = {o for layer in layers for n in layer for o in n.output} | {group[-1].output[0]}
    made |= {o for n in group for o in n.output}
    return all(i in made or not i or i.startswith(("w", "b", "const")) for i in node.input)


def choose_kernels(network: object, config: object, logger: Logger) -> list[dict]:
    """Every layer with its kernel; writes winners to the cache and tables to the log."""
    layers = []
    for group in fuse(network._nodes):
        plugin = network._plugins.get(group[0].output[0])
        if plugin is None:
            layers.append({"nodes": group, **_choose(group, network, config, logger)})
        else:
            plugin.profile = _profile_of(plugin, network, config)
            chosen = _choose_plugin(plugin, group, network, config, logger)
            layers.append({"nodes": group, **chosen})
    return layers


def _choose_plugin(
    layer: object, group: list, network: object, config: object, logger: Logger
) -> dict:
    """Nothing is fused across a plugin.

    That a plugin's tactics are in the log's tables, under which names and hashes, and that
    ERROR_ON_TIMING_CACHE_MISS sees them, is not documented: the double assumes that they are like
    any other op's.
    """
    try:
        found = plugin_calls.candidates(layer)
        combination, tactic = _best(layer, found, group, config, logger)
        layer.settle(combination, tactic)
    except (plugin_calls.PluginFault, BuildError) as fault:
        raise BuildError(str(fault)) from fault
    except Exception as error:
        # The bindings print what a plugin raises, whatever it is, and the builder finds no plugin.
        os.write(2, f"[ERROR] Exception thrown from a plugin: {error}\n".encode())
        raise BuildError(f"{layer.name}: could not find any implementation") from error
    return {"kernel": _plugin_kernel(layer, tactic), "plugin": layer}


def _best(layer: object, found: list, group: list, config: object, logger: Logger) -> tuple:
    if len(found) == 1:
        return found[0]  # it may not be timed at all
    name, key = layer_name(group), plugin_calls.cache_key(layer, found)
    numbers = {_plugin_number(layer, *candidate): candidate for candidate in found}
    number = None if key is None else _cached(name, key, list(numbers), config)
    if number is None:
        timed = [(n, layer.time(*candidate)) for n, candidate in numbers.items()]
        rows = [(_plugin_kernel(layer, numbers[n][1]), n, ms) for n, ms in timed]
        rows.sort(key=lambda row: row[2])
        number = rows[0][1]
        if key is not None:
            _keep(group, key, rows, config, logger)
    return numbers[number]


def _plugin_kernel(layer: object, tactic: int) -> str:
    return f"{layer.core.plugin_name}_{tactic}"


def _plugin_number(layer: object, combination: tuple, tactic: int) -> int:
    formats = ",".join(str(int(f)) for f in combination)
    return _number(layer.core.plugin_name, formats, str(tactic)) >> 16


def layer_name(group: list) -> str:
    return " + ".join(n.name or n.output[0] for n in group)


def cache_key(group: list, network: object, config: object) -> str:
    """Follows names, types, shapes, and the flags that change implementations."""
    flags = [f.name for f in (BuilderFlag.TF32, BuilderFlag.REFIT) if config.get_flag(f)]
    shapes = [network._dims.get(name) for n in group for name in (*n.input, *n.output)]
    told = repr((layer_name(group), [n.op_type for n in group], shapes, flags))
    return "0x" + hashlib.sha256(told.encode()).hexdigest()[:32]


def candidates(group: list, config: object) -> list[tuple[str, int, float]]:
    """Kernel, hash and cost in ms of each legal tactic; the fastest first."""
    names = [f"sm90_xmma_fprop_{group[0].op_type.lower()}_tilesize{t}_stage3" for t in _TILES]
    if not config.get_tactic_sources() & 1 << int(TacticSource.JIT_CONVOLUTIONS):
        names = names[:4]
    if config.max_num_tactics > 0:
        names = names[: config.max_num_tactics]
    rows = [(n, _number(n, "hash") >> 16, _cost(n, layer_name(group))) for n in names]
    return sorted(rows, key=lambda row: row[2])


def _cost(kernel: str, layer: str) -> float:
    place = (gpu_name(), str(script().get("drift", 0)))
    return round(0.004 + (_number(kernel, layer, *place) % 1000) / 1e5, 7)


def _number(*words: str) -> int:
    return int.from_bytes(hashlib.sha256("\0".join(words).encode()).digest()[:8], "big")


def _choose(group: list, network: object, config: object, logger: Logger) -> dict:
    if group[0].op_type in ("Reshape", "Shape", "Identity", "Squeeze", "Unsqueeze"):
        return {"kernel": ""}
    key, name, rows = (
        cache_key(group, network, config),
        layer_name(group),
        candidates(group, config),
    )
    number = _cached(name, key, [number for _, number, _ in rows], config)
    if number is None:
        _keep(group, key, rows, config, logger)
        return {"kernel": shown(rows[0][0])}
    if told("stubborn", name):
        config.get_timing_cache()._entries[key] = rows[0][1:]
    if told("stubborn", name) or told("deaf", name):
        number = rows[0][1]
    kernel = next(kernel for kernel, n, _ in rows if n == number)
    if told("unusable", kernel):
        raise BuildError(f"tactic 0x{number:x} of the timing cache cannot be used for {name}")
    return {"kernel": shown(kernel)}


def _cached(name: str, key: str, numbers: list[int], config: object) -> int | None:
    """The winner that the cache knows; None where the layer is to be timed."""
    cache = config.get_timing_cache()
    if _uses_cache(config) and key in cache._entries:
        wanted = cache._entries[key][0]
        if wanted not in numbers:
            raise BuildError(f"tactic 0x{wanted:x} of the timing cache cannot be used for {name}")
        return wanted
    strict = config.get_flag(BuilderFlag.ERROR_ON_TIMING_CACHE_MISS) and cache is not None
    # Seen in the field: some misses are not stopped (TensorRT-Model-Connect, PR 449).
    if strict and not told("leak", name):
        raise BuildError(f"timing cache miss for {name} (key: {key})")
    return None


def _uses_cache(config: object) -> bool:
    """Level 0 ignores the cache."""
    return config.get_timing_cache() is not None and config.builder_optimization_level > 0


def _keep(
    group: list, key: str, rows: list[tuple[str, int, float]], config: object, logger: Logger
) -> None:
    """The winner into the cache, the table into the log."""
    editable = config.get_flag(BuilderFlag.EDITABLE_TIMING_CACHE)
    if editable:
        _log_table(group, key, rows, logger)
    if _uses_cache(config):
        _, number, cost = rows[0]
        config.get_timing_cache()._entries[key] = (number, cost)
        if editable:
            logger.log(Logger.VERBOSE, f"Writing the best tactic (0x{number:x}) to cache")


def told(word: str, name: str) -> bool:
    return any(fnmatch.fnmatch(name, glob) for glob in script().get(word, ()))


def shown(kernel: str) -> str:
    """As the engine calls it."""
    return f"renamed_{_number(kernel) % 9999}" if told("unnamed", kernel) else kernel


def _profile_of(layer: object, network: object, config: object) -> list[tuple]:
    """Min, opt and max of each tensor; a plugin sees the first profile alone.

    Sizes that are not known are those of the network's first dynamic input: enough for a double.
    """
    shapes = config._profiles[0]._shapes if config._profiles else {}
    given = next(iter(shapes.values()), None)

    def filled(dims: list[int], end: int) -> list[int]:
        known = given[end] if given is not None and len(given[end]) == len(dims) else [1] * 8
        return [n if n >= 0 else known[axis] for axis, n in enumerate(dims)]

    return [tuple(filled(dims, end) for end in range(3)) for dims in layer.dims]


def _log_table(group: list, key: str, rows: list[tuple[str, int, float]], logger: Logger) -> None:
    nodes = "".join(f"[ONNX Layer: {n.name or n.output[0]}]" for n in group)
    fastest = rows[0][2]
    for line in (
        f"Autotuning op {layer_name(group)}(key: {key}): {nodes}",
        "Sorted table of all evaluated tactics:",
        HEADER,
        *(
            f"{i:4}, {cost:.7f}, {cost / fastest:.5f}, 0.50000, {kernel}, 0x{number:x},"
            for i, (kernel, number, cost) in enumerate(rows)
        ),
        f"The selected tactic is (tactic hash, cost(in ms)):0x{rows[0][1]:x},  {fastest:.7f}",
    ):
        logger.log(Logger.VERBOSE, line)
