"""What a timing cache is valid for; TensorRT's blob has a part of it, so we keep it beside.

Source: contents are specific to device, CUDA, TensorRT build and flags that change implementations
(TensorRT 10.16 documentation, builder performance); caches need the same major.minor.patch.build
(support policies). A blob's header has the GPU's UUID and the build's commit (see `blob`), and
neither driver nor flags.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from trtplug.store import key_of

if TYPE_CHECKING:
    from trtplug.backends.gpu import Machine


_INDIFFERENT = frozenset({"trial_run", "pin", "ban", "prefer"})
"""Flags that change no kernel and no timing: pins, bans and preferences edit a cache, and an edited
one is never kept. Any other flag counts: a cache too many costs the time of a build, a cache too
few may give wrong tactics."""

_ID_DIGITS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheIdentity:
    """One store entry for each of these; all fields must be equal for a cache to be attached."""

    gpu: str
    """Name as the driver gives it: two GPUs of one SM can differ in everything that is timed."""
    sm: str
    driver: str
    cuda: str
    builder: str
    """Full build of TensorRT, such as `11.4.0.106`."""
    flags: Mapping[str, str]
    """Those that may change implementations, see `implementation_flags`."""

    @property
    def entry_id(self) -> str:
        """Name of the entry in the store: 16 hexadecimal digits."""
        return key_of({**_plain(self), "flags": dict(self.flags)})[:_ID_DIGITS]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One field in which two things differ."""

    field: str
    wanted: str
    found: str

    def __str__(self) -> str:
        return f"{self.field}: {self.found or 'none'}, not {self.wanted or 'none'}"


def implementation_flags(flags: Mapping[str, str]) -> dict[str, str]:
    """The flags that a cache depends on, in order of their names."""
    return {name: flags[name] for name in sorted(flags) if name not in _INDIFFERENT}


def identity_differences(wanted: CacheIdentity, found: CacheIdentity) -> tuple[Difference, ...]:
    """All fields that differ, flags one by one."""
    plain = mapping_differences(_plain(wanted), _plain(found))
    return plain + mapping_differences(wanted.flags, found.flags, "flag ")


def machine_differences(identity: CacheIdentity, machine: Machine) -> tuple[Difference, ...]:
    """Fields in which a cache's machine differs from this one; what is not known here differs.

    Any GPU of this machine will do. The builder is compared where one is installed.
    """
    names = [gpu.name for gpu in machine.gpus]
    same = [gpu for gpu in machine.gpus if gpu.name == identity.gpu]
    sms = {str(gpu.sm) for gpu in same or machine.gpus}
    here = {
        "gpu": identity.gpu if same else ", ".join(names),
        "sm": identity.sm if identity.sm in sms else ", ".join(sorted(sms)),
        "driver": machine.driver or "",
        "cuda": machine.cuda or "",
        "builder": machine.tensorrt or identity.builder,
    }
    return mapping_differences(here, {name: _plain(identity)[name] for name in here})


def mapping_differences(
    wanted: Mapping[str, str], found: Mapping[str, str], prefix: str = ""
) -> tuple[Difference, ...]:
    """Names whose values differ, or that only one of the two has."""
    names = dict.fromkeys((*wanted, *found))
    return tuple(
        Difference(field=prefix + n, wanted=wanted.get(n, ""), found=found.get(n, ""))
        for n in names
        if wanted.get(n) != found.get(n)
    )


def _plain(identity: CacheIdentity) -> dict[str, str]:
    return {f.name: getattr(identity, f.name) for f in fields(identity) if f.name != "flags"}
