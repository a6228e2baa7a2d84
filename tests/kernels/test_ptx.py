"""PTX versions: the oldest that target and instructions allow."""

import pytest

from trtplug.kernels.ptx import (
    drop_unread_variables,
    lower_version,
    needed_version,
    opcodes,
)
from trtplug.kernels.sm import SMS

PTX = """//
.version 9.5
.target {target}
.address_size 64

.global .align 4 .u32 _unread = 3;
.global .align 4 .b8 _read[8];

.visible .entry k(.param .u64 k_param_0)
{{
	.reg .pred %p<2>;
	ld.param.u64 %rd1, [k_param_0]; // cp.async in a comment
	mov.u64 %rd2, _read;
$L__BB0_1:
	{body}
	@%p1 bra $L__BB0_1;
	ret;
}}
"""


def text(body="add.s32 %r1, %r1, 1;", target="sm_75"):
    return PTX.format(body=body, target=target)


@pytest.mark.parametrize(
    ("body", "target", "version"),
    [
        ("add.s32 %r1, %r1, 1;", "sm_75", "6.3"),
        ("add.s32 %r1, %r1, 1;", "sm_89", "7.8"),
        ("add.s32 %r1, %r1, 1;", "sm_120", "8.7"),
        ("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1}, [%r2];", "sm_75", "6.5"),
        ("cp.async.cg.shared.global [%r1], [%rd1], 16, %r2;", "sm_75", "7.0"),
        ("@!%p1 cvt.rn.f16x2.f32 %r1, %f1, %f2;", "sm_75", "7.0"),
        ("{ cvt.rn.bf16.f32 %h1, %f1; }", "sm_75", "7.0"),
        ("max.NaN.f32 %f1, %f1, %f2;", "sm_75", "7.0"),
    ],
)
def test_lowers_to_what_is_needed(body, target, version):
    lowered, found = lower_version(text(body, target))
    assert found == version
    assert f".version {version}\n" in lowered
    assert lowered.replace(f".version {version}", ".version 9.5") == text(body, target)


@pytest.mark.parametrize("opcode", ["frobnicate.b32", "cvt.rn.bf16.f16", "ld.global.v8.f32"])
def test_keeps_the_version_for_what_it_does_not_know(opcode):
    assert lower_version(text("add.s32 %r1, %r1, 1;"))[1] < "9.5"
    given = text(f"{opcode} %r1, %r2;")
    assert lower_version(given) == (given, "9.5")


def test_never_raises_the_version():
    assert lower_version(text(target="sm_120").replace("9.5", "6.0"))[1] == "6.0"


def test_a_feature_target_keeps_its_version():
    assert lower_version(text(target="sm_90a"))[1] == "9.5"


def test_refuses_what_is_no_ptx():
    with pytest.raises(ValueError, match="version"):
        lower_version("hello")


def test_opcodes_leave_directives_labels_and_comments_out():
    assert opcodes(text()) == ("add.s32", "bra", "ld.param.u64", "mov.u64", "ret")


def test_drops_only_variables_that_nothing_reads():
    kept = drop_unread_variables(text())
    assert "_unread" not in kept
    assert ".global .align 4 .b8 _read[8];\n" in kept


def test_every_target_is_at_least_as_new_as_the_one_before():
    known = [facts.ptx for sm, facts in sorted(SMS.items()) if sm <= 110]
    assert known == sorted(known)
    assert needed_version("ret") == (6, 0)
