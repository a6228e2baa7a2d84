"""A lock checked: against itself, its bundle, this machine, and a build that replays it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtplug.backends.find import read_machine
from trtplug.bundle.engine_file import canonical_sha256
from trtplug.bundle.manifest import read_manifest
from trtplug.errors import LockMismatchError, LockUnqualifiedError, UsageError
from trtplug.files import file_inside
from trtplug.lock.diff import diff_locks, input_differences, tactic_differences
from trtplug.lock.lock import LOCK, Lock, read_lock
from trtplug.lock.policy import OVERRIDE_SEPARATOR, ban_problems, is_tactic, parse_pin
from trtplug.settings import from_flag
from trtplug.store import sha256_of
from trtplug.timing.files import CACHE, Flawed, read_pair
from trtplug.timing.identity import Difference, implementation_flags, mapping_differences

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from trtplug.backends.backend import Backend
    from trtplug.backends.gpu import Machine
    from trtplug.bundle.manifest import Manifest, ManifestModel, ManifestTarget
    from trtplug.lock.lock import LockTactic
    from trtplug.timing.files import Sidecar


def consistency_problems(lock: Lock) -> tuple[str, ...]:
    """Where a lock contradicts itself: keys, layers, and the overrides that it was made with."""
    if lock.tactics is None:
        return ()
    return (*_key_problems(lock), *_layer_problems(lock), *_override_problems(lock))


def _key_problems(lock: Lock) -> Iterator[str]:
    tactics = lock.tactics or ()
    for key, count in Counter(t.key for t in tactics).items():
        if count > 1:
            yield f"{key}: listed {count} times"
    keys = lock.timing_cache.keys if lock.timing_cache is not None else len(tactics)
    if keys != len(tactics):
        # The number in the file may have any length, so it is not quoted.
        yield f"timing_cache.keys is not {len(tactics)}, the number of tactics"


def _layer_problems(lock: Lock) -> Iterator[str]:
    """Layers whose tactic is not the one of their key."""
    winners = lock.winners
    for layer in lock.layers:
        if layer.cache_key is not None and winners.get(layer.cache_key) != layer.tactic_hash:
            recorded = winners.get(layer.cache_key)
            yield f"{layer.name}: tactic {layer.tactic_hash}, its key has {recorded}"


def _override_problems(lock: Lock) -> Iterator[str]:
    """Flags of `--pin` and `--ban` that the tactics and layers of the lock do not fulfil."""
    try:
        pin, ban = (from_flag(lock.flags.get(f, ""), OVERRIDE_SEPARATOR) for f in ("pin", "ban"))
        pins = tuple(map(parse_pin, pin))
    except (UsageError, ValueError) as error:
        yield f"flags: {error}"
        return
    for given in pins:
        here = [t for t in lock.tactics or () if given.layer in _names(lock, t)]
        if not here or not all(is_tactic(given.tactic, t.kernel, t.tactic_hash) for t in here):
            yield f"flag pin: {given.layer}={given.tactic} does not match the tactics"
    yield from ban_problems(ban, {x.name: x.kernel for x in lock.layers if x.kernel is not None})


def _names(lock: Lock, tactic: LockTactic) -> set[str]:
    """What a pin may call the operation of a key."""
    layers = {x.name for x in lock.layers if x.cache_key == tactic.key}
    return {*layers, *tactic.onnx_nodes, *([tactic.op] if tactic.op is not None else [])}


# --- against its bundle ---


@dataclass(frozen=True, slots=True, kw_only=True)
class LockCheck:
    """How one target's lock compares with its bundle."""

    target: str
    lock: Lock
    problems: tuple[str, ...]


def verify_locks(folder: Path) -> tuple[LockCheck, ...]:
    """Every lock of a bundle: against the manifest, the engine's bytes and the timing cache.

    Raises:
        DocumentError: a manifest or lock is missing, or cannot be read.
    """
    manifest = read_manifest(folder)
    checks = []
    for target in manifest.targets:
        lock = read_lock(folder / target.sm / LOCK)
        problems = (
            *map(str, _manifest_differences(lock, manifest, target)),
            *_engine_problems(folder, lock),
            *_cache_problems(folder, lock),
            *consistency_problems(lock),
        )
        checks.append(LockCheck(target=target.target, lock=lock, problems=problems))
    return tuple(checks)


def _manifest_differences(
    lock: Lock, manifest: Manifest, target: ManifestTarget
) -> tuple[Difference, ...]:
    """Fields in which manifest and lock differ."""
    plain = mapping_differences(_fields(target, manifest.model), _fields(lock, lock.model))
    return plain + mapping_differences(target.flags, lock.flags, "flag ")


def _fields(target: Lock | ManifestTarget, model: ManifestModel) -> dict[str, str]:
    """What manifest and lock both have."""
    return {
        "model": model.sha256,
        "target": target.target,
        "backend": f"{target.backend} {target.backend_version}",
        "shapes": " ".join(target.shapes),
        "precision": target.precision,
        "engine": target.engine.file,
        "engine sha256": target.engine.sha256,
    }


def _engine_problems(folder: Path, lock: Lock) -> Iterator[str]:
    engine = lock.engine
    file = _inside(folder, engine.file)
    if file is None:
        yield f"{engine.file}: missing, or outside the bundle"
    elif sha256_of(file) != engine.sha256:
        yield f"{engine.file}: SHA-256 does not match the lock"
    elif canonical_sha256(file) != engine.canonical_sha256:
        yield f"{engine.file}: canonical digest does not match the lock"


def _cache_problems(folder: Path, lock: Lock) -> Iterator[str]:
    cache = lock.timing_cache
    if cache is None:
        return
    file = _inside(folder, cache.file)
    if file is None:
        yield f"{cache.file}: missing, or outside the bundle"
        return
    entry = read_pair(file.with_name(file.name + ".json"), file, None)
    if isinstance(entry, Flawed):
        yield f"{cache.file}: {entry}"
    elif entry.sidecar.sha256 != cache.sha256:
        yield f"{cache.file}: SHA-256 does not match the lock"
    else:
        winners = tactic_differences(lock, entry.sidecar.winners)
        for difference in (*winners, *_identity_differences(lock, entry.sidecar)):
            yield f"{cache.file}: {difference}"


def _identity_differences(lock: Lock, sidecar: Sidecar) -> tuple[Difference, ...]:
    """Where the sidecar of a lock's cache has another machine, builder or build."""
    identity = sidecar.identity
    found = {f: getattr(identity, f) for f in ("gpu", "sm", "driver", "cuda", "builder")}
    wanted = {"builder": lock.backend_version, **_gpu(lock)}
    plain = mapping_differences(wanted, found)
    return plain + mapping_differences(implementation_flags(lock.flags), identity.flags, "flag ")


def _gpu(lock: Lock) -> dict[str, str]:
    gpu = lock.gpu
    if gpu is None:
        return {}
    return {"gpu": gpu.name, "sm": gpu.sm, "driver": gpu.driver, "cuda": gpu.cuda}


def _inside(folder: Path, path: str) -> Path | None:
    """A regular file of the bundle; None for anything else."""
    file = file_inside(folder, path)
    return file if file is not None and file.is_file() else None


# --- against this machine ---


def qualify(lock: Lock, machine: Machine, backend_version: str | None) -> tuple[Difference, ...]:
    """Where this machine differs from the lock's; empty where the lock is qualified here.

    Any GPU of the same name will do. On another GPU, driver, CUDA or builder a lock is unqualified:
    its tactics may not exist there, or be wrong. A lock of a builder that needed no GPU is bound to
    that builder's version alone.

    Args:
        lock: to replay.
        machine: this one.
        backend_version: of the builder here; None where it is not installed.
    """
    wanted = {"backend version": lock.backend_version, **_gpu(lock)}
    found = {"backend version": backend_version or ""}
    if lock.gpu is not None:
        same = [gpu for gpu in machine.gpus if gpu.name == lock.gpu.name]
        sms = [str(gpu.sm) for gpu in same or machine.gpus]
        found |= {
            "gpu": same[0].name if same else ", ".join(gpu.name for gpu in machine.gpus),
            "sm": lock.gpu.sm if lock.gpu.sm in sms else ", ".join(sms),
            "driver": machine.driver or "",
            "cuda": machine.cuda or "",
        }
    return mapping_differences(wanted, found)


def require_qualified(lock: Lock, path: str, machine: Machine, backend_version: str | None) -> None:
    """Raises LockUnqualifiedError where `qualify` finds a difference."""
    if differ := qualify(lock, machine, backend_version):
        raise LockUnqualifiedError(path=path, differences=tuple(map(str, differ)))


def check_lock(lock: Lock, path: str, backend: Backend) -> None:
    """Refuses a lock that cannot be replayed on this machine.

    Raises:
        LockMismatchError: another backend recorded it.
        LockUnqualifiedError: it was recorded on another GPU, driver or version.
    """
    differ = mapping_differences({"backend": lock.backend}, {"backend": backend.name})
    require_replayed(path, differ)
    require_qualified(lock, path, read_machine(), backend.version())


# --- against a build that replays it ---


def replay_problems_before(
    lock: Lock, requested: Lock, winners: Mapping[str, str], sidecar: Sidecar
) -> tuple[str, ...]:
    """Why a locked build must not begin; empty where it may.

    Args:
        lock: to replay.
        requested: of the requested build; only its inputs are compared.
        winners: key -> tactic hash of the timing cache that would be attached.
        sidecar: of that cache.
    """
    if lock.tactics is None:
        return ("the lock records no tactics to replay",)
    if lock.timing_cache is None:
        return ("the lock names no timing cache",)
    problems = [
        *map(str, input_differences(lock, requested)),
        *map(str, tactic_differences(lock, winners)),
        *(f"{CACHE}: {d}" for d in _identity_differences(lock, sidecar)),
    ]
    if sidecar.sha256 != lock.timing_cache.sha256:
        problems.append(f"{CACHE}: SHA-256 does not match the lock")
    # A changed tactic contradicts its layers too: reporting both would repeat it.
    inner = () if problems else consistency_problems(lock)
    return (*problems, *(f"the lock contradicts itself: {p}" for p in inner))


def replay_problems_after(lock: Lock, made: Lock, winners: Mapping[str, str]) -> tuple[str, ...]:
    """Where a locked build differs from its lock; empty where it does not.

    The engine's bytes are not compared: one choice of tactics gives other bytes in each build.

    Args:
        lock: that was replayed.
        made: of the build.
        winners: key -> tactic hash of the timing cache after the build. Compared key by key, since
            the builder's own flag for misses was reported to miss some.
    """
    diff = diff_locks(lock, made)
    layers = (
        f"layer {c.name}: {'; '.join(map(str, c.differences)) or c.kind}"
        for c in diff.layers
        if c.kind != "renamed"
    )
    return (
        *map(str, diff.inputs),
        *map(str, tactic_differences(lock, winners)),
        *layers,
        *(
            f"node {c.node}: {c.after or 'in no layer'}, not {c.before or 'none'}"
            for c in diff.nodes
        ),
        *(f"site {d}" for d in diff.sites),
    )


def require_replayed(path: str, problems: Sequence[str | Difference]) -> None:
    """Raises LockMismatchError where there are any."""
    if problems:
        raise LockMismatchError(path=path, differences=tuple(map(str, problems)))


def require_same_digest(path: str, lock: Lock, made: Lock) -> None:
    """For a builder that records no tactics: the engines themselves must agree.

    Raises:
        LockMismatchError: their canonical digests differ.
    """
    name = "engine canonical sha256"
    wanted, found = lock.engine.canonical_sha256, made.engine.canonical_sha256
    differ = mapping_differences({name: wanted}, {name: found})
    require_replayed(path, differ)
