"""Layers, their candidates and their timings: all of it follows from names, shapes and the GPU.

A layer whose key is in the cache is not timed. Convolutions and poolings are the classic tuner's,
as in TensorRT 10.16 at the default level, all others the compiler's.
"""

from __future__ import annotations

import fnmatch
import hashlib
import os

from tensorrt import plugin_calls
from tensorrt.enums import BuilderFlag, TacticSource
from tensorrt.logger import Logger
from tensorrt.release import gpu_name, script
from tensorrt.tuner_log import RUNNERS, TunerLog, formats

CLASSIC = {
    "Conv": "CaskConvolution",
    "MaxPool": "CaskPooling",
    "AveragePool": "CaskPooling",
    "GlobalAveragePool": "CaskPooling",
}
"""ONNX operator -> the runner of the classic tuner that times it; the compiler times the others."""
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


class Tuning:
    """One build: its network, its configuration, what it prints, and what its cache holds."""

    def __init__(self, network: object, config: object, logger: Logger) -> None:
        self.network, self.config = network, config
        self.editable = config.get_flag(BuilderFlag.EDITABLE_TIMING_CACHE)
        self.log = TunerLog(logger, editable=self.editable)
        self.cache = config.get_timing_cache() if _uses_cache(config) else None
        place, kept = ("Global", "") if self.cache is not None else ("Local", "not ")
        logger.log(
            Logger.INFO,
            f"{place} timing cache in use. Profiling results in this builder pass will "
            f"{kept}be stored.",
        )

    def cached(self, name: str, key: str, numbers: list[int]) -> tuple[int, float] | None:
        """The winner that the cache knows; None where the layer is to be timed."""
        if self.cache is not None and key in self.cache._entries:
            wanted = self.cache._entries[key]
            if wanted[0] not in numbers:
                raise BuildError(
                    f"tactic 0x{wanted[0]:x} of the timing cache cannot be used for {name}"
                )
            return wanted
        strict = self.config.get_flag(BuilderFlag.ERROR_ON_TIMING_CACHE_MISS)
        # Seen in the field: some misses are not stopped (TensorRT-Model-Connect, PR 449).
        if strict and self.config.get_timing_cache() is not None and not told("leak", name):
            raise BuildError(f"timing cache miss for {name} (key: {key})")
        return None

    def keep(self, key: str, tactic: int, time_ms: float, runner: int | None) -> None:
        """The winner into the cache; `runner` is None for the compiler's."""
        if self.cache is not None:
            self.cache._entries[key] = (tactic, time_ms)
            if runner is not None:
                self.cache._runners[key] = runner

    def typed(self, names: list[str]) -> list[tuple[str, list[int]]]:
        network = self.network
        return [
            (network._dtypes.get(n, "FLOAT"), network._dims.get(n, []))
            for n in names
            if n and n not in network._constants
        ]


def choose_kernels(network: object, config: object, logger: Logger) -> list[dict]:
    """Every layer with its kernel; writes winners to the cache and tables to the log."""
    tuning = Tuning(network, config, logger)
    layers = []
    for group in fuse(network._nodes):
        plugin = network._plugins.get(group[0].output[0])
        if plugin is not None:
            plugin.profile = _profile_of(plugin, network, config)
            layers.append({"nodes": group, **_choose_plugin(tuning, plugin, group)})
        elif group[0].op_type in CLASSIC:
            layers.append({"nodes": group, **_choose_classic(tuning, group)})
        else:
            layers.append({"nodes": group, **_choose_compiled(tuning, group)})
    _time_reformats(tuning, layers)
    for profile in range(1, len(config._profiles)):
        _repeat(tuning, layers, profile)
    return layers


def _border(group: list) -> tuple[list[str], list[str]]:
    """Tensors that a layer reads, and that it writes."""
    inside = {o for n in group for o in n.output}
    read = dict.fromkeys(i for n in group for i in n.input if i and i not in inside)
    return list(read), [group[-1].output[0]]


def _choose_classic(tuning: Tuning, group: list) -> dict:
    """The linear combination of formats is always taken: the other costs two reformats."""
    name, runner = layer_name(group), CLASSIC[group[0].op_type]
    tuning.log.computing(name)
    chosen = _combination(tuning, group, name, runner, last=False)
    read, written = (tuning.typed(names) for names in _border(group))
    if told("combinations", name):
        _combination(tuning, group, name, runner, last=True)
    else:
        tuning.log.invalid(name, runner, formats(read, written, last=True))
    kernel, tactic, time_ms = chosen
    return {
        "kernel": shown(kernel),
        "tactic": tactic,
        "runner": runner,
        "formats": formats(read, written),
        "time_ms": time_ms,
    }


def _combination(
    tuning: Tuning, group: list, name: str, runner: str, *, last: bool
) -> tuple[str, int, float]:
    config = tuning.config
    read, written = (tuning.typed(names) for names in _border(group))
    combination = formats(read, written, last)
    key = cache_key(group, tuning.network, config, combination if last else "")
    rows = candidates(group, config, last=last)
    found = tuning.cached(name, key, [number for _, number, _ in rows])
    if found is None:
        tuning.log.classic(name, runner, combination, _unsorted(rows), key)
        tuning.keep(key, *rows[0][1:], RUNNERS[runner])
        return rows[0]
    number, time_ms = found
    if told("stubborn", name):
        tuning.cache._entries[key] = rows[0][1:]
    if told("stubborn", name) or told("deaf", name):
        number = rows[0][1]
    kernel = next(kernel for kernel, n, _ in rows if n == number)
    if told("unusable", kernel):
        raise BuildError(f"tactic 0x{number:x} of the timing cache cannot be used for {name}")
    tuning.log.hit(name, runner, combination, number, time_ms)
    return kernel, number, time_ms


def _unsorted(rows: list[tuple]) -> list[tuple]:
    """The classic tuner prints rows as it times them."""
    return sorted(rows, key=lambda row: row[0])


def _time_reformats(tuning: Tuning, layers: list[dict]) -> None:
    """What stands before a layer that has two combinations is timed in both directions."""
    tuning.log.computing_reformats()
    for layer in layers:
        name = layer_name(layer["nodes"])
        if layer["nodes"][0].op_type not in CLASSIC or not told("combinations", name):
            continue
        tensor = _border(layer["nodes"])[0][0]
        ends = [formats(tuning.typed([tensor]), [], last)[:-4] for last in (False, True)]
        for one, other in (ends, ends[::-1]):
            combination = f"{one} -> {other}"
            who = f"Optimizer Reformat({tensor} -> <out>)"
            rows = [("", n, _cost(str(n), combination)) for n in (0x3E8, 0x0)]
            key = _hashed(tensor, combination)
            found = tuning.cached(who, key, [0x3E8, 0x0])
            if found is not None:
                tuning.log.hit(who, "Reformat", combination, *found)
                continue
            tuning.log.classic(who, "Reformat", combination, rows, key)
            tuning.keep(key, *min(rows, key=lambda row: row[2])[1:], RUNNERS["Reformat"])


def _repeat(tuning: Tuning, layers: list[dict], profile: int) -> None:
    """Each further profile asks for every layer again, and finds what the first one timed."""
    for layer in layers:
        if "runner" in layer:
            name = f"{layer_name(layer['nodes'])} [profile {profile}]"
            tuning.log.computing(name)
            tuning.log.hit(
                name, layer["runner"], layer["formats"], layer["tactic"], layer["time_ms"]
            )


def _choose_plugin(tuning: Tuning, layer: object, group: list) -> dict:
    """Nothing is fused across a plugin.

    One table for each combination of formats, with the plugin's own tactic numbers (seen in 10.16).
    That ERROR_ON_TIMING_CACHE_MISS sees plugins, and the name in the engine's `TacticName`, are the
    double's assumption.
    """
    try:
        tuning.log.computing(layer_name(group))
        combination, tactic = _best(tuning, layer, group)
        layer.settle(combination, tactic)
    except (plugin_calls.PluginFault, BuildError) as fault:
        raise BuildError(str(fault)) from fault
    except Exception as error:
        # The bindings print what a plugin raises, whatever it is, and the builder finds no plugin.
        os.write(2, f"[ERROR] Exception thrown from a plugin: {error}\n".encode())
        raise BuildError(f"{layer.name}: could not find any implementation") from error
    return {"kernel": _plugin_kernel(layer, tactic), "plugin": layer, "tactic": tactic}


def _best(tuning: Tuning, layer: object, group: list) -> tuple:
    found = plugin_calls.candidates(layer)
    if len(found) == 1:
        return found[0]  # it may not be timed at all
    by_combination: dict[tuple, list[int]] = {}
    for combination, tactic in found:
        by_combination.setdefault(combination, []).append(tactic)
    winners = [
        (_plugin_combination(tuning, layer, group, combination, tactics), combination)
        for combination, tactics in by_combination.items()
    ]
    (_, tactic), combination = min(winners, key=lambda winner: winner[0][0])
    return combination, tactic


def _plugin_combination(
    tuning: Tuning, layer: object, group: list, combination: tuple, tactics: list[int]
) -> tuple[float, int]:
    """Milliseconds and number of the tactic that is taken for one combination of formats."""
    name = layer_name(group)
    key = plugin_calls.cache_key(layer, [(combination, t) for t in tactics])
    last = any(f.name != "LINEAR" for f in combination)
    read, written = (tuning.typed(names) for names in _border(group))
    label = formats(read, written, last)
    found = None if key is None else tuning.cached(name, key, tactics)
    if found is not None:
        tuning.log.hit(name, "PluginV3", label, *found)
        return found[1], found[0]
    rows = [("", tactic, layer.time(combination, tactic)) for tactic in tactics]
    tuning.log.classic(name, "PluginV3", label, rows, key)
    _, tactic, time_ms = min(rows, key=lambda row: row[2])
    if key is not None:
        tuning.keep(key, tactic, time_ms, RUNNERS["PluginV3"])
    return time_ms, tactic


def _plugin_kernel(layer: object, tactic: int) -> str:
    return f"{layer.core.plugin_name}_{tactic}"


def layer_name(group: list) -> str:
    return " + ".join(n.name or n.output[0] for n in group)


def cache_key(group: list, network: object, config: object, combination: str = "") -> str:
    """Follows names (of an editable cache), types, shapes, and flags that change kernels."""
    flags = [f.name for f in (BuilderFlag.TF32, BuilderFlag.REFIT) if config.get_flag(f)]
    shapes = [network._dims.get(name) for n in group for name in (*n.input, *n.output)]
    name = layer_name(group) if config.get_flag(BuilderFlag.EDITABLE_TIMING_CACHE) else ""
    return _hashed(repr((name, [n.op_type for n in group], shapes, flags)), combination)


def _hashed(*words: str) -> str:
    return "0x" + hashlib.sha256("\0".join(words).encode()).hexdigest()[:32]


def candidates(group: list, config: object, *, last: bool = False) -> list[tuple[str, int, float]]:
    """Kernel, hash and cost in ms of each legal tactic; the fastest first."""
    kind = f"nhwc_{group[0].op_type.lower()}" if last else group[0].op_type.lower()
    names = [f"sm90_xmma_fprop_{kind}_tilesize{t}_stage3" for t in _TILES]
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


def _choose_compiled(tuning: Tuning, group: list) -> dict:
    """The compiler's: it says nothing of what it took from the cache."""
    if group[0].op_type in ("Reshape", "Shape", "Identity", "Squeeze", "Unsqueeze"):
        return {"kernel": ""}
    name = layer_name(group)
    key, rows = cache_key(group, tuning.network, tuning.config), candidates(group, tuning.config)
    foreign = f"{{ForeignNode[{group[0].name or group[0].output[0]}]}}"
    tuning.log.computing(foreign)
    found = tuning.cached(name, key, [number for _, number, _ in rows])

    def table() -> None:
        if found is None:
            nodes = [n.name or n.output[0] for n in group]
            tuning.log.compiler(name, nodes, rows, key, tuning.cache is not None)

    read, written = (tuning.typed(names) for names in _border(group))
    whole = [("", 0, rows[0][2])]
    tuning.log.classic(foreign, "Myelin", formats(read, written), whole, None, table)
    if found is None:
        tuning.keep(key, *rows[0][1:], None)
        return {"kernel": shown(rows[0][0])}
    kernel = next(kernel for kernel, n, _ in rows if n == found[0])
    if told("unusable", kernel):
        raise BuildError(f"tactic 0x{found[0]:x} of the timing cache cannot be used for {name}")
    return {"kernel": shown(kernel)}


def _uses_cache(config: object) -> bool:
    """Level 0 ignores the cache."""
    return config.get_timing_cache() is not None and config.builder_optimization_level > 0


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
