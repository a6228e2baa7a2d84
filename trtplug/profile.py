"""GPU profiles: facts of one GPU each, read from `profiles/<name>.toml`, each with its source.

In: folders of TOML files. Out: frozen `GpuProfile` values. What is not known is None; no figure is
derived here. Loaded on every build, so it uses the standard library only (no pydantic).
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trtplug.errors import FileUnreadableError, ProfileInvalidError
from trtplug.files import read_text
from trtplug.settings import resource_folder
from trtplug.target import Sm, parse_sm

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from trtplug.settings import Settings

_STEM = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_SM = re.compile(r"sm_\d{2,3}")
_RESERVED = frozenset({"all", "local"})
"""Words that `--target` gives another meaning."""
_LIMIT = 2**63
"""No figure of a GPU comes near; above it a float or a reader's 64-bit integer could overflow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The public document that a figure came from."""

    title: str
    url: str
    note: str | None = None
    """Where a figure was computed: the formula and its inputs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DensePeak:
    """Highest rates of dense (not sparse) arithmetic, as the maker states them.

    A fused multiply-add counts as two operations. Accumulation is in FP32 (INT32 for int8) except
    where the name says otherwise: GeForce cards run FP16 accumulation at twice the rate.
    """

    fp32_flops_per_s: float | None = None
    """On CUDA cores."""
    tf32_flops_per_s: float | None = None
    fp16_flops_per_s: float | None = None
    fp16_accumulate_fp16_flops_per_s: float | None = None
    """Given only where it differs from `fp16_flops_per_s`."""
    bf16_flops_per_s: float | None = None
    fp8_flops_per_s: float | None = None
    fp8_accumulate_fp16_flops_per_s: float | None = None
    """Given only where it differs from `fp8_flops_per_s`."""
    int8_ops_per_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuProfile:
    """Facts of a GPU; None means that no public source was found."""

    name: str
    """The stem of its file, such as `rtx4090`: what `--target` takes."""
    gpu: str
    """The name it is sold under."""
    sm: Sm
    architecture: str
    aliases: tuple[str, ...] = ()
    """Further names that `--target` takes, among them the one the driver reports."""
    sm_count: int | None = None
    boost_clock_mhz: int | None = None
    tensor_boost_clock_mhz: int | None = None
    """Given only where the maker states another boost clock for tensor-core work."""
    memory_bytes: int | None = None
    """As sold; a GB of GPU memory is 2**30 bytes."""
    memory_bandwidth_bytes_per_s: int | None = None
    l2_bytes: int | None = None
    dense_peak: DensePeak = DensePeak()
    sources: tuple[tuple[str, Source], ...] = ()
    """Figure -> source, in order of the figures' names, such as `dense_peak.fp32_flops_per_s`."""

    def source_of(self, figure: str) -> Source | None:
        """Where a figure came from; None for one that the profile does not have."""
        return dict(self.sources).get(figure)


_INTEGERS = tuple(f.name for f in dataclasses.fields(GpuProfile) if f.type == "int | None")
_OF_THE_SM = (
    "shared_memory_per_sm_bytes",
    "shared_memory_per_block_bytes",
    "registers_per_sm",
    "registers_per_block",
)
"""Figures that a file may give, as those of the first releases did, and that nothing reads: they
are facts of the SM, and `trtplug.kernels.sm.SMS` has those."""
_RATES = tuple(f.name for f in dataclasses.fields(DensePeak))
_TEXTS = ("gpu", "sm", "architecture")
_TABLES = ("dense_peak", "sources", "source_of")


def find_profile(name: str, profiles: tuple[GpuProfile, ...]) -> GpuProfile | None:
    """The profile of that name, alias or GPU name; case, spaces, `-` and `_` do not matter."""
    key = _key(name)
    return next((p for p in profiles if key in map(_key, _names(p))), None)


def profiles_of(sm: Sm, profiles: tuple[GpuProfile, ...]) -> tuple[GpuProfile, ...]:
    """The GPUs that an engine built for `sm` serves."""
    return tuple(p for p in profiles if p.sm == sm)


def nearest_names(name: str, profiles: tuple[GpuProfile, ...], n: int = 3) -> tuple[str, ...]:
    """At most `n` targets (profile names and SMs) spelt like `name`, the most alike first."""
    import difflib

    meant = {_key(spelt): p.name for p in profiles for spelt in _names(p)}
    meant |= {_key(str(p.sm)): str(p.sm) for p in profiles}
    alike = difflib.get_close_matches(_key(name), meant, n=len(meant) or 1, cutoff=0.5)
    return tuple(dict.fromkeys(meant[key] for key in alike))[:n]


def _names(profile: GpuProfile) -> tuple[str, ...]:
    return (profile.name, profile.gpu, *profile.aliases)


def _key(name: str) -> str:
    return re.sub(r"[\s_-]+", "", name).lower()


def bundled_folders(settings: Settings) -> tuple[Path, ...]:
    """The folder that ships, then the user's own where `TRTPLUG_PROFILES` names one."""
    own = () if settings.profiles is None else (settings.profiles,)
    return (resource_folder("profiles"), *own)


def load_profiles(folders: tuple[Path, ...]) -> tuple[GpuProfile, ...]:
    """Every `*.toml` of the folders, in order of SM and name; a later folder replaces by name.

    Raises:
        ProfileInvalidError: a folder or file cannot be read, a file breaks the schema, or two
            profiles share a name.
    """
    paths = {path.stem: path for folder in folders for path in _files(folder)}
    owner: dict[str, GpuProfile] = {}
    for path in paths.values():
        profile = _read(path)
        for name in _names(profile):
            other = owner.setdefault(_key(name), profile)
            if other is not profile:
                problem = f"{name!r} already names the profile {other.name!r}"
                raise ProfileInvalidError(str(path), problem)
    return tuple(sorted(set(owner.values()), key=lambda p: (p.sm, p.name)))


def profiles_digest(profiles: tuple[GpuProfile, ...]) -> str:
    """SHA-256 of their canonical JSON, for store keys; the order given does not matter."""
    documents = [dataclasses.asdict(p) for p in sorted(profiles, key=lambda p: p.name)]
    text = json.dumps(documents, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == ".toml")
    except OSError as error:
        problem = f"the folder cannot be read: {error.strerror}"
        raise ProfileInvalidError(str(folder), problem) from error


def _read(path: Path) -> GpuProfile:
    try:
        table = tomllib.loads(read_text(path))
    except FileUnreadableError as error:
        raise ProfileInvalidError(str(path), f"cannot be read: {error.problem}") from error
    except (ValueError, RecursionError) as error:  # not TOML, nested without end
        raise ProfileInvalidError(str(path), f"is not TOML: {error}") from error
    problems = tuple(_problems(path.stem, table))
    if problems:
        raise ProfileInvalidError(str(path), "; ".join(problems))
    return _build(path.stem, table)


def _build(name: str, table: Mapping[str, Any]) -> GpuProfile:
    sources = {key: Source(**entry) for key, entry in table["sources"].items()}
    source_of = _flat(table["source_of"])
    rates = {key: float(value) for key, value in table.get("dense_peak", {}).items()}
    return GpuProfile(
        name=name,
        gpu=table["gpu"],
        sm=Sm(int(table["sm"][3:])),
        architecture=table["architecture"],
        aliases=tuple(table.get("aliases", ())),
        dense_peak=DensePeak(**rates),
        sources=tuple(
            (figure, sources[source_of[figure]])
            for figure in sorted(source_of)
            if figure not in _OF_THE_SM
        ),
        **{key: table[key] for key in _INTEGERS if key in table},
    )


def _problems(name: str, table: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with a file, all of it at once."""
    misshapen = [key for key in _TABLES if not isinstance(table.get(key, {}), dict)]
    if misshapen:
        yield from (f"{key} must be a table" for key in misshapen)
        return
    if not _STEM.fullmatch(name):
        yield f"the file name {name!r} must be lower-case letters, digits and single dashes"
    yield from _unknown("", table, (*_TEXTS, "aliases", *_INTEGERS, *_OF_THE_SM, *_TABLES))
    yield from _text_problems(table)
    yield from _name_problems(name, table)
    yield from _figure_problems(table)
    yield from _source_problems(table)


def _text_problems(table: Mapping[str, Any]) -> Iterator[str]:
    for key in _TEXTS:
        if key not in table:
            yield f"{key} is missing"
        elif not _is_text(table[key]):
            yield f"{key} must be a text, not {table[key]!r}"
    if _is_text(table.get("sm")) and not _SM.fullmatch(table["sm"]):
        yield f"sm must look like sm_89, not {table['sm']!r}"


def _name_problems(name: str, table: Mapping[str, Any]) -> Iterator[str]:
    aliases = table.get("aliases", [])
    if not isinstance(aliases, list) or not all(map(_is_text, aliases)):
        yield f"aliases must be a list of texts, not {aliases!r}"
        return
    for alias in (name, *aliases):
        if _key(alias) in _RESERVED or parse_sm(_key(alias)) is not None:
            yield f"the name {alias!r} is taken: --target gives it another meaning"


def _figure_problems(table: Mapping[str, Any]) -> Iterator[str]:
    yield from _unknown("dense_peak.", table.get("dense_peak", {}), _RATES)
    for key in (*_INTEGERS, *_OF_THE_SM):
        # `type(...) is int`: TOML's true is a Python int.
        if key in table and not (type(table[key]) is int and 0 < table[key] < _LIMIT):
            yield f"{key} must be a positive whole number, not {table[key]!r}"
    for key, value in table.get("dense_peak", {}).items():
        if type(value) not in (int, float) or not 0 < value < _LIMIT:
            yield f"dense_peak.{key} must be a positive number, not {value!r}"


def _source_problems(table: Mapping[str, Any]) -> Iterator[str]:
    sources, source_of = table.get("sources", {}), _flat(table.get("source_of", {}))
    for key, entry in sources.items():
        yield from _entry_problems(key, entry)
    rates = (f"dense_peak.{key}" for key in table.get("dense_peak", {}))
    figures = ("sm", *(key for key in (*_INTEGERS, *_OF_THE_SM) if key in table), *rates)
    yield from (f"{figure} has no source" for figure in figures if figure not in source_of)
    yield from (f"source_of.{key} belongs to no figure" for key in source_of if key not in figures)
    for figure, key in source_of.items():
        if not _is_text(key) or key not in sources:
            yield f"source_of.{figure} is {key!r}, which [sources] does not have"
    unused = [key for key in sources if key not in source_of.values()]
    yield from (f"sources.{key} backs no figure" for key in unused)


def _entry_problems(key: str, entry: object) -> Iterator[str]:
    if not isinstance(entry, dict):
        yield f"sources.{key} must be a table"
        return
    yield from _unknown(f"sources.{key}.", entry, ("title", "url", "note"))
    for field in ("title", "url", *(("note",) if "note" in entry else ())):
        if not _is_text(entry.get(field)):
            yield f"sources.{key} needs a {field}"
    if _is_text(entry.get("url")) and not entry["url"].startswith("https://"):
        yield f"sources.{key}.url must start with https://"


def _unknown(prefix: str, table: Mapping[str, Any], known: tuple[str, ...]) -> Iterator[str]:
    return (f"unknown key {prefix}{key}" for key in table if key not in known)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _flat(table: Mapping[str, Any]) -> dict[str, Any]:
    """`source_of` with the keys of its one sub-table written `dense_peak.<key>`."""
    outer = dict(table)
    inner = outer.pop("dense_peak", {})
    if not isinstance(inner, dict):
        return dict(table)
    return outer | {f"dense_peak.{key}": value for key, value in inner.items()}
