"""The kit: what TensorRT's builder process needs to offer our kernels for the sites of a model.

A folder with `kit.json` and one `<SHA-256>.ptx` for each kernel. The parent writes it and makes the
model with nodes of `trtplug.ops.plugin_layer`, each with the digest of its site; the child that
builds reads it. All kernels of a site read the same packing of weights and bias: those lie in the
model once, whichever kernel TensorRT takes. What a kernel's tensors are, `Tactic.formats`
says.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trtplug.errors import DocumentError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from trtplug.kernels.catalog import Catalog  # noqa: TC004
    from trtplug.kernels.family import AnyTactic
    from trtplug.kernels.problem import AnyProblem  # noqa: TC004
    from trtplug.ops.cbr import CbrAttributes


SCHEMA = "trtplug.plugin-kit/1"
KIT_FILE = "kit.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class KitKernel:
    """One kernel that a site offers."""

    tactic: str
    """Name of the tactic."""
    ptx_sha256: str
    """Of the PTX text, which is the file `<ptx_sha256>.ptx`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KitSite:
    """One convolution (or pair), and the kernels that TensorRT may choose from.

    Its digest holds all that a time depends on and no more, so two convolutions that are alike and
    offer the same kernels are one site, and are timed once.
    """

    problem: AnyProblem
    kernels: tuple[KitKernel, ...]
    catalog: Catalog | None = dataclasses.field(default=None, compare=False, repr=False)
    """Where tactics are looked up; trtplug's own where none is given."""

    def __post_init__(self) -> None:
        """Refuses kernels that cannot be offered together.

        Raises:
            ValueError: none, an unknown or repeated tactic, or two packings.
        """
        tactics = self.tactics
        if len({t.number for t in tactics}) != len(tactics) or not tactics:
            raise ValueError(f"{[k.tactic for k in self.kernels]}: each tactic once, one at least")
        packings = {t.packing(self.problem) for t in tactics}
        if len(packings) != 1:
            raise ValueError(f"packings of one site: {', '.join(sorted(packings))}")

    @property
    def op(self) -> str:
        """`CBR` or `CBRPair`."""
        return self.problem.op

    @property
    def tactics(self) -> tuple[AnyTactic, ...]:
        """The tactic of each kernel.

        Raises:
            ValueError: the op has no tactic of that name.
        """
        from trtplug.kernels.catalog import CATALOG

        there = {t.name: t for t in (self.catalog or CATALOG).of(self.problem)}
        unknown = [k.tactic for k in self.kernels if k.tactic not in there]
        if unknown:
            raise ValueError(f"{self.op} has no tactic {unknown[0]!r}")
        return tuple(there[k.tactic] for k in self.kernels)

    @property
    def packing(self) -> str:
        """Name of the packing that all kernels read."""
        return self.tactics[0].packing(self.problem)

    @property
    def digest(self) -> str:
        """SHA-256, in hex, over all of it: the site's name and its identity in a timing cache."""
        written = {
            "schema": SCHEMA,
            **_site_to_json(self),
            "packing": self.packing,
            "numbers": [t.number for t in self.tactics],
        }
        canonical = json.dumps(written, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Kit:
    """All sites of a model, by their digest."""

    sm: int
    """Number of the SM that the kernels are for, such as 90."""
    sites: Mapping[str, KitSite]


def make_kit(sm: int, sites: Iterable[KitSite]) -> Kit:
    """A kit of these sites; equal ones become one."""
    return Kit(sm=sm, sites={site.digest: site for site in sites})


def ptx_digest(ptx: str) -> str:
    """What a kernel is known by."""
    return hashlib.sha256(ptx.encode()).hexdigest()


def write_kit(kit: Kit, ptx: Mapping[str, str], folder: Path) -> None:
    """Writes `kit.json` and the kernels into an existing folder.

    `ptx` is digest -> PTX, of every kernel in the kit; others are ignored.

    Raises:
        KeyError: a kernel of the kit is not among them.
    """
    for digest in sorted({k.ptx_sha256 for s in kit.sites.values() for k in s.kernels}):
        (folder / f"{digest}.ptx").write_text(ptx[digest], encoding="utf-8")
    sites = {digest: _site_to_json(site) for digest, site in sorted(kit.sites.items())}
    written = {"schema": SCHEMA, "sm": kit.sm, "sites": sites}
    (folder / KIT_FILE).write_text(json.dumps(written, indent=1), encoding="utf-8")


def read_kit(folder: Path, catalog: Catalog | None = None) -> Kit:
    """The kit in a folder; its tactics are looked up in `catalog`, trtplug's own by default.

    Raises:
        DocumentError: it cannot be read, has another schema, or is damaged.
    """
    path = folder / KIT_FILE
    text = _read(path, SCHEMA)
    try:
        written = json.loads(text)
        if written["schema"] != SCHEMA:
            raise ValueError(f"schema {written['schema']!r} is not {SCHEMA}")
        kit = make_kit(
            int(written["sm"]), (_site_from_json(s, catalog) for s in written["sites"].values())
        )
        if set(kit.sites) != set(written["sites"]):
            raise ValueError("a site's contents do not match its digest")
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DocumentError(path=str(path), problem=str(error), wanted=SCHEMA) from error
    return kit


def read_ptx(folder: Path, digest: str) -> str:
    """The PTX of a kernel.

    Raises:
        DocumentError: it cannot be read, or is another text than the digest was made of.
    """
    path = folder / f"{digest}.ptx"
    text = _read(path, "PTX")
    if ptx_digest(text) != digest:
        raise DocumentError(
            path=str(path), problem="its SHA-256 is not the one in its name", wanted="PTX"
        )
    return text


def _read(path: Path, wanted: str) -> str:
    try:
        return path.read_bytes().decode("utf-8", errors="replace")
    except OSError as error:
        problem = (error.strerror or str(error)).lower()
        raise DocumentError(path=str(path), problem=problem, wanted=wanted) from error


def problem_to_plain(problem: AnyProblem) -> dict[str, Any]:
    """All that kernels are generated from, as JSON can hold it."""
    x = problem.x
    return {
        "attributes": dataclasses.asdict(problem.attributes),
        "outputs": problem.outputs,
        "dtype": problem.dtype,
        # Not the input's name: it means nothing to a kernel.
        "x": {"min": x.min, "opt": x.opt, "max": x.max},
    }


def _site_to_json(site: KitSite) -> dict[str, Any]:
    kernels = [dataclasses.asdict(kernel) for kernel in site.kernels]
    return {"op": site.op, **problem_to_plain(site.problem), "kernels": kernels}


def _site_from_json(read: dict[str, Any], catalog: Catalog | None) -> KitSite:
    from trtplug.kernels.problem import KernelProblem, PairProblem
    from trtplug.ops.cbr_pair import CbrPairAttributes
    from trtplug.tensor import ShapeRange

    x = ShapeRange(name="x", **{key: tuple(sizes) for key, sizes in read["x"].items()})
    fixed = {"outputs": read["outputs"], "dtype": read["dtype"], "x": x}
    attributes = read["attributes"]
    problem: AnyProblem
    if read["op"] == "CBR":
        problem = KernelProblem(attributes=_attributes(attributes), **fixed)
    else:
        both = {name: _attributes(given) for name, given in attributes.items()}
        problem = PairProblem(attributes=CbrPairAttributes(**both), **fixed)
    kernels = tuple(KitKernel(**k) for k in read["kernels"])
    return KitSite(problem=problem, kernels=kernels, catalog=catalog)


def _attributes(read: dict[str, Any]) -> CbrAttributes:
    from trtplug.ops.cbr import CbrAttributes

    values: Any = {k: tuple(v) if isinstance(v, list) else v for k, v in read.items()}
    return CbrAttributes(**values)


# A line on top of each kernel's PTX says whose it is. TensorRT puts the PTX of the tactic that it
# took into the engine: found there, it says what the builder's log and inspector may not.
_MARK = re.compile(rb"// trtplug site=([0-9a-f]{64}) tactic=(\d{1,9})")
_LONGEST_BYTES = 110
_CHUNK_BYTES = 1 << 24


def mark_ptx(ptx: str, site: str, number: int) -> str:
    """A kernel's PTX with the line on top; `site` is a digest, `number` that of the tactic."""
    return f"// trtplug site={site} tactic={number}\n{ptx}"


def find_marks(file: Path) -> Mapping[str, tuple[int, ...]]:
    """Site -> numbers of the tactics whose kernels lie in a file.

    Raises:
        OSError: it cannot be read.
    """
    found: dict[str, set[int]] = {}
    with file.open("rb") as stream:
        rest = b""
        while chunk := stream.read(_CHUNK_BYTES):
            data = rest + chunk
            # A mark at the very end may go on in the next chunk, where it is found whole.
            rest = data[-_LONGEST_BYTES:]
            last = len(chunk) < _CHUNK_BYTES
            for match in _MARK.finditer(data):
                if last or match.end() < len(data):
                    found.setdefault(match[1].decode(), set()).add(int(match[2]))
    return {site: tuple(sorted(numbers)) for site, numbers in found.items()}
