"""The main loop in machine code."""

from trtplug.kernels.sass import find_main_loop


def sass(lines):
    """Text as nvdisasm prints it. Labels, which end in a colon, become the addresses they name."""
    code = [line for line in lines if not line.endswith(":")]
    labels = {
        line[:-1]: sum(not other.endswith(":") for other in lines[:place]) * 16
        for place, line in enumerate(lines)
        if line.endswith(":")
    }
    return "\n".join(
        f"        /*{number * 16:04x}*/                   {_resolved(line, labels)} ;"
        for number, line in enumerate(code)
    )


def _resolved(line, labels):
    for label, address in labels.items():
        line = line.replace(f"`({label})", hex(address))
    return line


TAIL = [".L_x_9:", "BRA `(.L_x_9)"]


def test_counts_parts_of_the_loop_that_lie_out_of_line():
    loop = find_main_loop(
        sass(
            [
                "MOV R1, c[0x0][0x28]",
                ".L_x_0:",
                "LDSM.16.M88.4 R4, [R2]",
                "@P0 BRA `(.L_x_2)",
                ".L_x_1:",
                "HMMA.16816.F32 R8, R4, R6, R8",
                "@!P1 BRA `(.L_x_0)",
                "EXIT",
                ".L_x_2:",
                "LDGSTS.E.BYPASS.128 [R2], [R6.64], P0",
                "LDGSTS.E.BYPASS.128 [R3], [R6.64], P0",
                "BRA `(.L_x_1)",
                *TAIL,
            ]
        )
    )
    assert loop is not None
    assert (loop.instructions, loop.mma) == (7, 1)
    assert dict(loop.counts) == {"BRA": 3, "HMMA": 1, "LDGSTS": 2, "LDSM": 1}
    assert loop.mma_share == 1 / 7


def test_takes_the_inner_loop_of_two_with_as_many_products():
    loop = find_main_loop(
        sass(
            [
                ".L_x_0:",
                "MOV R1, R2",
                ".L_x_1:",
                "HMMA.16816.F32 R8, R4, R6, R8",
                "@P0 BRA `(.L_x_1)",
                "@P1 BRA `(.L_x_0)",
                "EXIT",
                *TAIL,
            ]
        )
    )
    assert loop is not None
    assert loop.instructions == 2


def test_a_guarded_call_out_of_line_is_a_jump():
    loop = find_main_loop(
        sass(
            [
                ".L_x_0:",
                "HMMA.16816.F32 R8, R4, R6, R8",
                "@!P1 CALL.REL.NOINC `(.L_x_1)",
                "BRA `(.L_x_0)",
                ".L_x_1:",
                "EXIT",
                *TAIL,
            ]
        )
    )
    assert loop is not None
    assert loop.instructions == 3


def test_straight_code_has_no_main_loop():
    text = sass(["HMMA.16816.F32 R8, R4, R6, R8", "EXIT", *TAIL])
    assert find_main_loop(text) is None
    assert find_main_loop("") is None
