"""The kit: what TensorRT's builder process needs to offer our kernels for the sites of a model.

A folder with `kit.json` and one `<SHA-256>.ptx` for each kernel. The parent writes it and makes the
model with nodes of `trtplug.ops.plugin_layer`, each with the digest of its site; the child that
builds reads it. All kernels of a site read the same packing of weights and bias: those lie in the
model once, whichever kernel TensorRT takes. What a kernel's tensors are, `trtplug.kernels.formats`
says.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trtplug.errors import DocumentError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from trtplug.kernels.pair_catalog import PairTactic
    from trtplug.kernels.pair_problem import PairProblem  # noqa: TC004
    from trtplug.kernels.problem import Problem  # noqa: TC004
    from trtplug.kernels.tactic import Tactic
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

    problem: Problem | PairProblem
    kernels: tuple[KitKernel, ...]

    def __post_init__(self) -> None:
        """Refuses kernels that cannot stand side by side.

        Raises:
            ValueError: none, an unknown or repeated tactic, or two packings or types of the input.
        """
        tactics = self.tactics
        if len({t.number for t in tactics}) != len(tactics) or not tactics:
            raise ValueError(f"{[k.tactic for k in self.kernels]}: each tactic once, one at least")
        for what, values in (("packings", self._packings()), ("types of x", self._x_dtypes())):
            if len(values) != 1:
                raise ValueError(f"{what} of one site: {', '.join(sorted(values))}")

    @property
    def op(self) -> str:
        """`CBR` or `CBRPair`."""
        from trtplug.kernels.problem import Problem

        return "CBR" if isinstance(self.problem, Problem) else "CBRPair"

    @property
    def tactics(self) -> tuple[Tactic | PairTactic, ...]:
        """The tactic of each kernel.

        Raises:
            ValueError: a name that is none of the op's.
        """
        return tuple(_tactic(kernel.tactic, self.op) for kernel in self.kernels)

    @property
    def packing(self) -> str:
        """Name of the packing that all kernels read, see `trtplug.kernels.packing_key`."""
        (packing,) = self._packings()
        return packing

    @property
    def x_dtype(self) -> str:
        """Type of the input: another than the problem's for stems that read FP32."""
        (dtype,) = self._x_dtypes()
        return dtype

    @property
    def digest(self) -> str:
        """SHA-256, in hex, over all of it: the site's name and its identity in a timing cache."""
        told = {
            "schema": SCHEMA,
            **_site_to_json(self),
            "packing": self.packing,
            "numbers": [t.number for t in self.tactics],
        }
        canonical = json.dumps(told, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    def _packings(self) -> set[str]:
        from trtplug.kernels.packing_key import packing_of

        return {packing_of(t, self.problem) for t in self.tactics}

    def _x_dtypes(self) -> set[str]:
        from trtplug.kernels.either import x_dtype_of_either

        return {x_dtype_of_either(t, self.problem) for t in self.tactics}


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

    Args:
        kit: what to write.
        ptx: digest -> PTX, of every kernel in the kit; others are passed over.
        folder: where.

    Raises:
        KeyError: a kernel of the kit is not among them.
    """
    for digest in sorted({k.ptx_sha256 for s in kit.sites.values() for k in s.kernels}):
        (folder / f"{digest}.ptx").write_text(ptx[digest], encoding="utf-8")
    sites = {digest: _site_to_json(site) for digest, site in sorted(kit.sites.items())}
    told = {"schema": SCHEMA, "sm": kit.sm, "sites": sites}
    (folder / KIT_FILE).write_text(json.dumps(told, indent=1), encoding="utf-8")


def read_kit(folder: Path) -> Kit:
    """The kit in a folder.

    Raises:
        DocumentError: it cannot be read, has another schema, or is damaged.
    """
    path = folder / KIT_FILE
    text = _read(path, SCHEMA)
    try:
        told = json.loads(text)
        if told["schema"] != SCHEMA:
            raise ValueError(f"schema {told['schema']!r} is not {SCHEMA}")
        kit = make_kit(int(told["sm"]), (_site_from_json(s) for s in told["sites"].values()))
        if set(kit.sites) != set(told["sites"]):
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


def _tactic(name: str, op: str) -> Tactic | PairTactic:
    from trtplug.kernels.catalog import find_tactic
    from trtplug.kernels.pair_catalog import find_pair_tactic

    found = find_tactic(name) if op == "CBR" else find_pair_tactic(name)
    if found is None:
        raise ValueError(f"{op} has no tactic {name!r}")
    return found


def problem_to_plain(problem: Problem | PairProblem) -> dict[str, Any]:
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


def _site_from_json(told: dict[str, Any]) -> KitSite:
    from trtplug.kernels.pair_problem import PairProblem
    from trtplug.kernels.problem import Problem
    from trtplug.ops.cbr_pair import CbrPairAttributes
    from trtplug.tensor import ShapeRange

    x = ShapeRange(name="x", **{key: tuple(sizes) for key, sizes in told["x"].items()})
    fixed = {"outputs": told["outputs"], "dtype": told["dtype"], "x": x}
    attributes = told["attributes"]
    problem: Problem | PairProblem
    if told["op"] == "CBR":
        problem = Problem(attributes=_attributes(attributes), **fixed)
    else:
        both = {name: _attributes(given) for name, given in attributes.items()}
        problem = PairProblem(attributes=CbrPairAttributes(**both), **fixed)
    return KitSite(problem=problem, kernels=tuple(KitKernel(**k) for k in told["kernels"]))


def _attributes(told: dict[str, Any]) -> CbrAttributes:
    from trtplug.ops.cbr import CbrAttributes

    values: Any = {k: tuple(v) if isinstance(v, list) else v for k, v in told.items()}
    return CbrAttributes(**values)
