"""The switch does what the .p4 file says: a changed file is a changed switch."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import p4emu

from .rig import DEFINES, LANES, SOURCE, Rig


def mutated(tmp_path: Path, file: str, old: str, new: str) -> p4emu.Program:
    """A copy of the program in which `old`, which must occur exactly once, reads `new`."""
    copy = tmp_path / "p4"
    shutil.copytree(SOURCE.parent, copy)
    text = (copy / file).read_text()
    assert text.count(old) == 1, f"{file} no longer has {old!r} exactly once"
    (copy / file).write_text(text.replace(old, new))
    return p4emu.compile(copy / SOURCE.name, defines=DEFINES)


@pytest.mark.parametrize("world", [1, 2, 5, 8])
def test_a_lane_that_adds_one_more_is_off_by_the_number_of_ranks(
    tmp_path: Path, world: int
) -> None:
    rig = Rig(mutated(tmp_path, "include/slot.p4", "right = value & add;", "right = value + 1;"))
    rig.add_job(1, world=world)
    for rank in range(world):
        out = rig.send(rank, [10 * lane for lane in range(LANES)])
    assert out[0].lanes == [world * 10 * lane + world for lane in range(LANES)]


def test_without_the_admission_table_a_strangers_packets_count(
    tmp_path: Path, program: p4emu.Program
) -> None:
    def sum_with_a_stranger(program: p4emu.Program, admission: bool) -> tuple[int, int, int]:
        rig = Rig(program)
        rig.add_job(1, world=2, admission=admission)
        stranger = rig.frame(1, [1000], source_mac="02:00:00:00:00:99")
        rig.inject(9, bytes(stranger))
        rig.send(0, [1])
        rig.send(1, [2])
        (again,) = rig.send(0, [1])
        assert again.lanes is not None
        return again.lanes[0], rig.count("job_packets"), rig.count("job_rejected")

    assert sum_with_a_stranger(program, True) == (3, 2, 1)
    open_door = mutated(
        tmp_path, "allreduce.p4", "} else if (admission.apply().miss) {", "} else if (false) {"
    )
    assert sum_with_a_stranger(open_door, False) == (1001, 2, 0)


def test_every_register_is_read_once_and_written_once_in_the_program(
    program: p4emu.Program,
) -> None:
    """The hardware discipline of one read-modify-write for each array and packet."""
    from p4emu.ir import nodes
    from p4emu.ir.walk import statements

    for register in program.ir.registers:
        accesses = [
            type(s)
            for block in (program.ir.ingress, program.ir.egress)
            for s in statements(block)
            if isinstance(s, (nodes.RegisterRead, nodes.RegisterWrite)) and s.register is register
        ]
        assert accesses == [nodes.RegisterRead, nodes.RegisterWrite], register.name


@pytest.mark.parametrize("lanes", [16, 64, 512])
def test_lane_count_is_a_parameter(lanes: int) -> None:
    program = p4emu.compile(SOURCE, defines={"INA_LANES": str(lanes), "INA_SLOTS": "8"})
    assert sum(".lane" in r.name for r in program.ir.registers) == lanes


def test_a_lane_count_the_program_has_no_repetition_for_is_an_error() -> None:
    with pytest.raises(p4emu.CompileError, match="INA_LANES must be 16, 32"):
        p4emu.compile(SOURCE, defines={"INA_LANES": "100"})
