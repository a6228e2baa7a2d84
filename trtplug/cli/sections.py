"""Sections of the help of `trtplug build`, which has too many options for one list."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Mapping

BUILD_SECTIONS: Mapping[str, tuple[str, ...]] = {
    "What is built": (
        "target",
        "shape",
        "profile",
        "precision",
        "io_precision",
        "keep_fp32",
        "backend",
        "out",
        "config",
        "force",
        "dry_run",
        "format",
    ),
    "Builder": ("tf32", "optimization_level", "workspace", "weight_streaming"),
    "How it runs": ("repeat", "jobs", "timeout", "memory_limit", "trial_run", "wait"),
    "Kernels, timing caches and locks": (
        "pin",
        "ban",
        "prefer",
        "timing_cache",
        "require_cache",
        "locked",
        "avg_timing",
        "max_tactics",
        "tactic_source",
        "tactic_shared_memory",
    ),
    "Plugin": (
        "plugin",
        "plugin_sites",
        "plugin_tactics",
        "plugin_pairs",
        "evidence",
        "plugin_library",
    ),
    "More of enterprise TensorRT": (
        "aux_streams",
        "tiling",
        "l2_limit",
        "sparsity",
        "version_compatible",
        "exclude_lean_runtime",
        "hardware_compatibility",
        "strip",
        "refit",
        "build_route",
        "preview",
        "parser_flag",
        "builder_flag",
    ),
}
"""Heading -> names of options, in the order in which they are shown."""


class SectionedCommand(click.Command):
    """Shows the options of `trtplug build` by section; those that none names come last."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """One list a section."""
        found = {p.name: p.get_help_record(ctx) for p in self.get_params(ctx)}
        records = {name: record for name, record in found.items() if record is not None}
        for title, names in BUILD_SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([records.pop(name) for name in names])
        with formatter.section("Options"):
            formatter.write_dl(list(records.values()))
