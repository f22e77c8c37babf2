"""The controller against a real p4emu switch that runs the real program, over real P4Runtime."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from p4.v1 import p4runtime_pb2 as p4rt

import p4emu
from p4emu.p4runtime import Server
from pycollective.controller import (
    Controller,
    ControllerError,
    NotPrimaryError,
    PoolExhaustedError,
    ProgramMismatchError,
    SwitchRefusedError,
    default_workers,
)
from pycollective.controller.schema import canonical, update
from pycollective.switch_process import default_program

SLOTS = 16
DEFINES = {"INA_LANES": "16", "INA_SLOTS": str(SLOTS)}


@pytest.fixture(scope="module")
def program() -> p4emu.Program:
    return p4emu.compile(default_program(), defines=DEFINES)


@pytest.fixture
def switch(program: p4emu.Program) -> Iterator[p4emu.Switch]:
    with p4emu.Switch(program) as switch:
        yield switch


@pytest.fixture
def server(switch: p4emu.Switch) -> Iterator[str]:
    server = Server(switch, "127.0.0.1:0")
    yield server.start()
    server.stop()


@pytest.fixture
def controller(server: str) -> Iterator[Controller]:
    with Controller(server) as controller:
        yield controller


def entries(switch: p4emu.Switch) -> dict[str, int]:
    tables = ("admission", "jobs", "l2")
    counts = {t: len(switch.entries(f"SwitchIngress.{t}")) for t in tables}
    counts["receivers"] = len(switch.entries("SwitchEgress.receivers"))
    counts["groups"] = len(switch.multicast_groups())
    return counts


def test_what_the_program_offers_is_read_from_its_p4info(controller: Controller) -> None:
    assert controller.lanes == 16
    assert controller.pool_slots == SLOTS


def test_a_job_is_admitted_with_exactly_its_ranks_slots_and_group(
    controller: Controller, switch: p4emu.Switch
) -> None:
    job = controller.create_job(3, [7, 8, 9], slots=4)

    assert (job.number, job.world_size, job.slots, job.lanes, job.members) == (1, 3, 4, 16, 0b111)
    assert job.workers == default_workers(1, 3, [7, 8, 9])
    assert switch.multicast_groups() == {1: [(7, 1), (8, 2), (9, 3)]}
    (entry,) = switch.entries("SwitchIngress.jobs")
    assert entry.params["epoch"] == job.epoch
    assert (entry.params["slot_base"], entry.params["slot_limit"]) == (0, 4)
    assert entries(switch) == {"admission": 3, "jobs": 1, "l2": 3, "receivers": 3, "groups": 1}


def test_destroying_a_job_leaves_nothing_of_it(
    controller: Controller, switch: p4emu.Switch
) -> None:
    stays = controller.create_job(2, [1, 2], slots=4)
    before = entries(switch)
    goes = controller.create_job(3, [3, 4, 5], slots=4)
    controller.destroy_job(goes)
    assert entries(switch) == before
    assert list(controller.jobs()) == [stays.number]


def test_jobs_get_disjoint_slices_and_a_gap_is_used_again(controller: Controller) -> None:
    first, second, third = (controller.create_job(1, [1], slots=n) for n in (4, 6, 6))
    assert [j.slot_base for j in (first, second, third)] == [0, 4, 10]
    controller.destroy_job(second)
    again = controller.create_job(1, [1], slots=5)
    assert (again.number, again.slot_base) == (second.number, 4)
    assert again.epoch != second.epoch


def test_an_exhausted_pool_says_what_was_asked_and_what_is_free(
    controller: Controller, switch: p4emu.Switch
) -> None:
    controller.create_job(1, [1], slots=10)
    before = entries(switch)
    with pytest.raises(PoolExhaustedError, match=r"asked for 7 slots.*of 16 has 6 \(1 jobs\)"):
        controller.create_job(1, [1], slots=7)
    assert entries(switch) == before
    controller.create_job(1, [1])  # takes the six that are left
    with pytest.raises(PoolExhaustedError, match="has 0"):
        controller.create_job(1, [1])


@pytest.mark.parametrize("world", [0, 33])
def test_a_job_has_one_to_thirty_two_ranks(controller: Controller, world: int) -> None:
    with pytest.raises(PoolExhaustedError, match=f"1 to 32 ranks.*asked for {world}"):
        controller.create_job(world, list(range(1, 40)))


def test_a_restarted_controller_finds_the_jobs_of_the_last_one(server: str) -> None:
    with Controller(server) as controller:
        old = controller.create_job(2, [1, 2], slots=4)
    with Controller(server) as controller:
        assert list(controller.jobs()) == [old.number]
        new = controller.create_job(2, [3, 4], slots=4)
        assert (new.number, new.slot_base) == (2, 4)
        assert new.epoch != old.epoch
        controller.destroy_job(old)
        assert list(controller.jobs()) == [new.number]


def test_a_job_that_cannot_be_written_whole_is_taken_back(
    controller: Controller, switch: p4emu.Switch
) -> None:
    """Someone else's entry is in the way of the second rank's."""
    worker = default_workers(1, 2, [1, 2])[1]
    mac = int(worker.mac.replace(":", ""), 16)
    switch.insert(
        "SwitchIngress.l2",
        p4emu.TableEntry((p4emu.Match(mac),), "SwitchIngress.forward", {"port": 9}),
    )
    before = entries(switch)
    with pytest.raises(SwitchRefusedError, match="ALREADY_EXISTS"):
        controller.create_job(2, [1, 2])
    assert entries(switch) == before


def test_counters_are_those_of_the_job(controller: Controller, switch: p4emu.Switch) -> None:
    job = controller.create_job(1, [1])
    switch.write_counter("SwitchIngress.job_packets", job.number, p4emu.CounterValue(5, 500))
    switch.write_counter("SwitchIngress.job_stale", job.number, p4emu.CounterValue(2, 0))
    counters = controller.counters(job.number)
    assert (counters.packets, counters.bytes, counters.stale) == (5, 500, 2)
    assert (counters.duplicates, counters.rejected, counters.completions) == (0, 0, 0)


def test_loading_a_program_over_p4runtime_replaces_the_program() -> None:
    with p4emu.Switch() as switch:
        server = Server(switch, "127.0.0.1:0")
        address = server.start()
        try:
            with Controller(address) as controller:
                with pytest.raises(ProgramMismatchError, match="runs no all-reduce program"):
                    controller.create_job(1, [1])
                controller.load(default_program(), {"INA_LANES": "32", "INA_SLOTS": "8"})
                assert (controller.lanes, controller.pool_slots) == (32, 8)
                controller.create_job(1, [1])
                controller.load(default_program(), DEFINES)
                assert controller.jobs() == {}
        finally:
            server.stop()


def test_a_program_with_an_error_is_refused_with_its_place(tmp_path: object) -> None:
    with p4emu.Switch() as switch:
        server = Server(switch, "127.0.0.1:0")
        address = server.start()
        try:
            with (
                Controller(address) as controller,
                pytest.raises(p4emu.CompileError, match="INA_LANES must be 16"),
            ):
                controller.load(default_program(), {"INA_LANES": "17"})
        finally:
            server.stop()


def test_a_second_controller_with_the_same_election_id_is_not_primary(server: str) -> None:
    with Controller(server, election_id=5):
        with pytest.raises(ControllerError):
            Controller(server, election_id=5)
        with pytest.raises(NotPrimaryError, match="election id 5.*this one has 4"):
            Controller(server, election_id=4)


def test_a_switch_that_is_not_there_is_an_error_in_time() -> None:
    with pytest.raises(ControllerError, match=r"no P4Runtime server answered at 127\.0\.0\.1:1 "):
        Controller("127.0.0.1:1", timeout=0.3)


def test_a_switch_that_goes_away_is_an_error_and_closing_does_not_hang(
    switch: p4emu.Switch,
) -> None:
    server = Server(switch, "127.0.0.1:0")
    controller = Controller(server.start(), timeout=2.0)
    server.stop()
    with pytest.raises(ControllerError, match="check that it still runs"):
        controller.create_job(1, [1])
    controller.close()
    assert "p4runtime-stream" not in {t.name for t in threading.enumerate()}


def test_a_refused_update_says_which_and_why(controller: Controller) -> None:
    entity = p4rt.Entity()
    entity.table_entry.table_id = 12345
    with pytest.raises(SwitchRefusedError, match="NOT_FOUND: update 0: .*0x3039") as caught:
        controller._client.write([update(p4rt.Update.INSERT, entity)])
    assert caught.value.code == "NOT_FOUND"


@pytest.mark.parametrize(
    ("value", "expected"), [(0, b"\0"), (1, b"\1"), (255, b"\xff"), (256, b"\1\0")]
)
def test_values_are_written_in_their_shortest_form(value: int, expected: bytes) -> None:
    assert canonical(value) == expected
