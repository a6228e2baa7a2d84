"""Findings: one of a kind and line, with a count and the first place."""

from __future__ import annotations

import numpy as np

from trtplug.emulator.checks import Finding, Findings


def test_one_of_a_kind_and_line() -> None:
    findings = Findings()
    findings.block_ids = np.array([7, 9])
    bad = np.zeros((2, 32), bool)
    bad[1, 5:8] = True
    findings.lanes("race", 12, bad, lambda row, column: f"row {row} column {column}")
    findings.lanes("race", 12, bad, "again")
    findings.lanes("race", 10, bad[:, :1], "none")
    findings.lanes("misaligned", 3, bad, "other")
    first, second = findings.all()
    assert (first.kind, first.line, len(findings)) == ("misaligned", 3, 2)
    assert str(second) == "race: line 12, block 9 thread 5: row 1 column 5 (6 in all)"


def test_a_finding_of_no_line() -> None:
    finding = Finding(kind="unwritten", line=0, where="y", detail="element 3 was never written")
    assert str(finding) == "unwritten: y: element 3 was never written"
