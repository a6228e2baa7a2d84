"""What the facts of a step mean: `yes`, `no` or `not known`, and why, in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

Facts = dict[str, Any]
Word = Literal["yes", "no", "not known"]
Answer = tuple[Word, str]

_EXACT = 1e-3
_LEAK_BYTES_A_CHANGE = 16 << 10
"""Modules take tens of KiB; free memory is reported in steps of 2 MiB."""
_ALIGNMENT_BYTES = 16


def table(f: Facts) -> Answer:
    if not f["table"]:
        return "no", f"{f['native_tables']} tables of native operations, no table of the plugin"
    shown = ", ".join(f"{kernel} {number}" for kernel, number in f["candidates"])
    return "yes", f"it lists {shown}"


def pinned(f: Facts) -> Answer:
    if f["pin"] != "built":
        return "no", f"{f['pin']}; {f.get('pinned_built', '')}".rstrip("; ")
    cold, now = f["tactic_cold"], f["tactic_pinned"]
    if cold == now:
        return "no", f"the edit was taken, and tactic {now} runs as before"
    return "yes", f"tactic {cold} ran before, {now} after"


def miss(name: str) -> Callable[[Facts], Answer]:
    def answer(f: Facts) -> Answer:
        if f["strict_full"] != "built":
            return "not known", f"it fails with a full cache too: {f['strict_full']}"
        if f[name].startswith("not asked"):
            return "not known", f[name]
        return ("no", "it built all the same") if f[name] == "built" else ("yes", f[name])

    return answer


def stable(f: Facts) -> Answer:
    count = f"{f['keys'][0]} and {f['keys'][1]} keys in two processes"
    if not f["same_keys"]:
        return "no", f"{count}, not the same ones"
    return "yes", f"{count}; after a driver update: not known, run this again then and compare"


def same_winners(f: Facts) -> Answer:
    if not f["same_keys"]:
        return "not known", "the two builds have other keys"
    count = f["other_winners"]
    return ("no" if count else "yes"), f"{count} of {f['keys'][0]} keys have another winner"


def works(f: Facts) -> Answer:
    if f["built"] != "yes":
        return "no", f"no engine: {f['built']}"
    if f["run"] != "yes":
        return "no", f"the engine does not run: {f['run']}"
    if f["error"] > _EXACT:
        return "no", f"wrong numbers, by up to {f['error']:.3g}"
    return "yes", "built, run, numbers right"


def cubin(f: Facts) -> Answer:
    if f.get("ptx_run") != "yes" or f["ptx_error"] > _EXACT:
        return "not known", f"the same kernel as PTX does not work either: {f.get('ptx_built')}"
    return works(f)


def cluster(f: Facts) -> Answer:
    if f["sm"] < 90:
        return "not known", f"sm_{f['sm']} has no clusters"
    return works(f)


def arch_specific(f: Facts) -> Answer:
    if "built" not in f:
        return "not known", f"sm_{f['sm']} has no target of its own"
    return works(f)


def refit(f: Facts) -> Answer:
    if f["built"] != "yes":
        return "no", f"no engine with REFIT: {f['built']}"
    if "refitter" in f:
        return "not known", f["refitter"]
    if "after" not in f:
        return "no", f"the plugin's weight is not among those that can be set: {f['names']}"
    changed = f["after"] != f["before"]
    return ("yes" if changed else "no"), f"added {f['before']} before, {f['after']} after"


def reformats(f: Facts) -> Answer:
    native, plugin = f["native"], f["plugin"]
    if plugin["layers_us"] is None:
        return "not known", "these bindings have no profiler"
    names = [n for n in plugin["layers_us"] if "reformat" in n.lower() or "copy" in n.lower()]
    whole = f"{plugin['median_us']:.2f} us with it, {native['median_us']:.2f} us without (medians)"
    shown = ", ".join(f"{n} {t:.2f} us" for n, t in plugin["layers_us"].items())
    return ("yes" if names else "no"), f"{len(names)} by their names; {whole}; its layers: {shown}"


def routes(f: Facts) -> Answer:
    if not f["offered"]:
        return "not known", "this TensorRT offers no build routes (they came with 11.1, on Linux)"
    shown = ", ".join(f["conv"]) or "none"
    return ("yes" if f["conv"] else "no"), f"{len(f['conv'])} of {f['routes']} name it: {shown}"


def metadata(f: Facts) -> Answer:
    kept, layers = len(f["metadata"]), f["plugin_layers"]
    return ("yes" if kept >= layers > 0 else "no"), f"of {layers} plugin layers, {kept} have it"


def no_tactic(f: Facts) -> Answer:
    said = f["no_tactic"]
    if said.startswith("not asked"):
        return "not known", said
    return ("no" if said.startswith("built") else "yes"), said


def marked(f: Facts) -> Answer:
    several = [name for name, offered in f["tactics"] if offered > 1]
    if not several:
        return "not known", "every site was offered one tactic alone"
    known = [name for name in several if name is not None]
    shown = ", ".join(known) or "none"
    return (
        "yes" if len(known) == len(several) else "no"
    ), f"of {len(several)} sites, read: {shown}"


def leak(f: Facts) -> Answer:
    if f["built"] != "yes":
        return "not known", f"no engine: {f['built']}"
    if f["device_bytes"] is None:
        return "not known", "the driver does not tell how much memory is free"
    each = max(f["device_bytes"], f["host_bytes"]) / f["changes"]
    seen = f"{f['device_bytes']} bytes of the device, {f['host_bytes']} of the host"
    word: Word = "yes" if each > _LEAK_BYTES_A_CHANGE else "no"
    return word, f"{seen}, after {f['changes']} runs with another shape each"


def collide(f: Facts) -> Answer:
    if f["built"] != "yes":
        return "not known", f"no engine: {f['built']}"
    count = len(f["keys"])
    return ("yes" if count == 1 else "no"), f"{count} keys for two plugins"


def order(f: Facts) -> Answer:
    if f["built"] != "yes":
        return "no", f"no engine: {f['built']}"
    return ("yes" if f["added"] == [1.0, 2.0] else "no"), f"outputs hold x + {f['added']}"


def aligned(f: Facts) -> Answer:
    if f["built"] != "yes":
        return "not known", f"no engine: {f['built']}"
    offsets = f["offsets"]
    bad = [n for n in offsets if n % _ALIGNMENT_BYTES]
    return ("no" if bad else "yes"), f"three tensors of odd size lie at {offsets} of their pages"


def padding(f: Facts) -> Answer:
    counts = {n: f[n] for n in ("behind_input", "behind_conv")}
    if not all(isinstance(n, int) for n in counts.values()):
        return "not known", str(counts)
    shown = ", ".join(f"{n.replace('_', ' ')}: {v} of 256" for n, v in counts.items())
    return ("no" if any(counts.values()) else "yes"), f"pixels whose padding is not zero: {shown}"


def key_names(f: Facts) -> Answer:
    if not f["again"]:
        return "not known", "two builds of one network have other keys"
    return ("no" if f["renamed"] else "yes"), f"{f['keys'][0]} keys, nodes called otherwise"


def function(f: Facts) -> Answer:
    if f["built"] != "yes":
        return "no", f["built"]
    good = f["error"] is not None and f["error"] < 2e-2
    return ("yes" if good else "no"), f"relative error against ONNX Runtime: {f['error']}"


def numbers(f: Facts) -> Answer:
    errors = {n: f[n]["relative_error"] for n in ("plugin-always", "plugin-never")}
    shown = ", ".join(f"{n} {e:.2g}" for n, e in errors.items())
    return ("yes" if max(errors.values()) <= 2e-2 else "no"), f"relative errors: {shown}"


def faster(f: Facts) -> Answer:
    ours, native = f["plugin-always"], f["plugin-never"]
    shown = f"{ours['median_us']:.2f} us against {native['median_us']:.2f} us (medians)"
    if max(ours["samples_us"]) < min(native["samples_us"]):
        return "yes", f"{shown}; every sample is faster"
    if min(ours["samples_us"]) > max(native["samples_us"]):
        return "no", f"{shown}; every sample is slower"
    return "no", f"{shown}; the samples overlap"


def not_asked(why: str) -> Callable[[Facts], Answer]:
    return lambda _: ("not known", why)
