"""The controller against a real p4emu switch that runs the real program, over real P4Runtime."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from p4.v1 import p4runtime_pb2 as p4rt

import p4emu
from p4emu.p4runtime import Server
from pycollective.controller import (
    Controller,
    ControllerError,
    Job,
    NotPrimaryError,
    PoolExhaustedError,
    ProgramMismatchError,
    SwitchRefusedError,
    WorkerAddress,
    default_workers,
)
from pycollective.controller.entries import entities_of
from pycollective.controller.schema import canonical, update
from pycollective.errors import ConfigurationError
from pycollective.switch_process import SwitchProcess, default_program

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
    """How much there is of jobs; what is not of a job, the memory for epochs, is left out."""
    tables = ("admission", "l2")
    counts = {t: len(switch.entries(f"SwitchIngress.{t}")) for t in tables}
    counts["jobs"] = len(job_entries(switch))
    counts["receivers"] = len(switch.entries("SwitchEgress.receivers"))
    counts["groups"] = len(switch.multicast_groups())
    return counts


def job_entries(switch: p4emu.Switch) -> dict[int, p4emu.TableEntry]:
    entries = switch.entries("SwitchIngress.jobs")
    return {entry.keys[0].value: entry for entry in entries if entry.keys[0].value != 0}


def workers(*ports: int) -> list[WorkerAddress]:
    """Hosts of a real network."""
    return [
        WorkerAddress(port, f"02:00:00:00:00:{port:02x}", f"192.168.1.{port}") for port in ports
    ]


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
    entry = job_entries(switch)[1]
    assert entry.params["epoch"] == job.epoch != 0
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
    with pytest.raises(
        PoolExhaustedError, match=r"asked for 7 slots.*of 16 has 6 \(1 jobs\)"
    ) as caught:
        controller.create_job(1, [1], slots=7)
    assert (caught.value.asked, caught.value.free) == (7, 6)
    assert entries(switch) == before
    controller.create_job(1, [1])  # takes the six that are left
    with pytest.raises(PoolExhaustedError, match="has 0"):
        controller.create_job(1, [1])


@pytest.mark.parametrize("world", [0, 33])
def test_a_job_has_one_to_thirty_two_ranks(controller: Controller, world: int) -> None:
    with pytest.raises(PoolExhaustedError, match=f"1 to 32 ranks.*asked for {world}"):
        controller.create_job(world, list(range(1, 40)))


def test_a_restarted_controller_finds_the_jobs_of_the_last_one(
    server: str, switch: p4emu.Switch
) -> None:
    with Controller(server) as controller:
        old = controller.create_job(2, [1, 2], slots=4)
        real = controller.create_job(2, [5, 6], slots=3, workers=workers(5, 6))
    with Controller(server) as controller:
        assert controller.jobs() == {1: old, 2: real}
        new = controller.create_job(2, [3, 4], slots=4)
        assert (new.number, new.slot_base) == (3, 7)
        controller.destroy_job(controller.jobs()[old.number])
        controller.destroy_job(real)
        assert controller.jobs() == {3: new}
        controller.destroy_job(new)
    assert not any(entries(switch).values())


def test_no_two_jobs_of_a_switch_get_the_same_epoch(server: str, switch: p4emu.Switch) -> None:
    """A slot tells its jobs apart by the epoch; a restarted controller must not repeat one."""
    given = []
    for _ in range(3):
        with Controller(server) as controller:
            for _ in range(2):
                job = controller.create_job(1, [1])
                given.append(job.epoch)
                controller.destroy_job(job)
    assert given == [(given[0] + i - 1) % 0xFFFF + 1 for i in range(6)]
    # At the end of the numbers it begins again, at 1, but for an epoch that is in use.
    (memory,) = switch.entries("SwitchIngress.jobs")
    last = {**memory.params, "epoch": 0xFFFF}
    switch.modify("SwitchIngress.jobs", p4emu.TableEntry(memory.keys, memory.action, last))
    with Controller(server) as controller:
        first = controller.create_job(1, [1], slots=1)
        assert first.epoch == 1
        switch.modify("SwitchIngress.jobs", p4emu.TableEntry(memory.keys, memory.action, last))
        assert controller.create_job(1, [1], slots=1).epoch == 2


def test_what_a_controller_left_undone_does_not_stop_the_next_one(
    controller: Controller, switch: p4emu.Switch
) -> None:
    """It ended after any of its writes; the job is not there, but most of it is."""
    for written in range(1, 11):
        job = controller.create_job(3, [7, 8, 9], slots=4)
        whole = entities_of(controller._schema, job, {})
        assert len(whole) == 11
        for entity in reversed(whole[written:]):
            controller._client.write([update(p4rt.Update.DELETE, entity)])
        assert controller.jobs() == {}
        again = controller.create_job(1, [3], slots=4)
        assert again.number == job.number
        assert entries(switch) == {"admission": 1, "jobs": 1, "l2": 1, "receivers": 1, "groups": 1}
        controller.destroy_job(again)
    assert not any(entries(switch).values())


def test_multicast_groups_of_others_are_left_alone(
    controller: Controller, switch: p4emu.Switch
) -> None:
    switch.set_multicast_group(1, [(1, 0), (2, 0)])
    job = controller.create_job(1, [3])
    assert job.number == 2
    controller.destroy_job(job)
    assert switch.multicast_groups() == {1: [(1, 0), (2, 0)]}


def test_a_host_can_be_a_worker_of_two_jobs_and_twice_of_one(
    controller: Controller, switch: p4emu.Switch
) -> None:
    host, other = workers(5, 6)
    one = controller.create_job(2, [5, 6], slots=4, workers=[host, other])
    two = controller.create_job(2, [5, 5], slots=4, workers=[host, host])
    assert entries(switch)["l2"] == 2
    controller.destroy_job(one)
    (left,) = switch.entries("SwitchIngress.l2")
    assert left.keys == (p4emu.Match(int(host.mac.replace(":", ""), 16)),)
    controller.destroy_job(two)
    assert not any(entries(switch).values())


def test_ending_a_job_that_has_ended_leaves_its_successor_alone(controller: Controller) -> None:
    old = controller.create_job(1, [1])
    controller.destroy_job(old)
    new = controller.create_job(1, [1])
    assert new.number == old.number
    controller.destroy_job(old)
    assert controller.jobs() == {new.number: new}


@pytest.mark.parametrize(
    ("port", "mac", "ipv4", "message"),
    [
        (511, "02:00:00:00:00:01", "10.0.0.1", "a switch port is 0 to 510, found 511"),
        (1, "02:00:00:00:01", "10.0.0.1", "is written as 02:50:43:00:01:00, found"),
        (1, "02:00:00:00:00:zz", "10.0.0.1", "is written as 02:50:43:00:01:00, found"),
        (1, "01:00:5e:00:00:01", "10.0.0.1", "the MAC address of a group"),
        (1, "02:00:00:00:00:01", "10.0.0.256", "is written as 10.0.1.1, found '10.0.0.256'"),
        (1, "02:00:00:00:00:01", "host1", "is written as 10.0.1.1, found 'host1'"),
    ],
)
def test_what_is_no_address_is_refused(port: int, mac: str, ipv4: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        WorkerAddress(port, mac, ipv4)


def test_workers_at_other_ports_than_the_ranks_are_refused(
    controller: Controller, switch: p4emu.Switch
) -> None:
    for addresses in (workers(5), workers(6, 5), workers(5, 6, 7)):
        with pytest.raises(ConfigurationError, match=r"switch ports are \[5, 6\]"):
            controller.create_job(2, [5, 6], workers=addresses)
    assert not any(entries(switch).values())


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


def test_a_controller_with_a_lower_election_id_is_not_primary(server: str) -> None:
    with (
        Controller(server, election_id=5),
        pytest.raises(NotPrimaryError, match="election id 5 is primary.*this one has 4"),
    ):
        Controller(server, election_id=4)
    # The switch takes no lower one after a higher one has left, either.
    with pytest.raises(NotPrimaryError, match="election id 5 is primary, or was"):
        Controller(server, election_id=4)


def test_controllers_with_the_same_election_id_take_turns(server: str) -> None:
    with (
        Controller(server, election_id=5) as first,
        pytest.raises(NotPrimaryError, match=r"has the election id 5.*within 0\.3 s"),
    ):
        Controller(server, election_id=5, timeout=0.3)
    with ThreadPoolExecutor(4) as pool:

        def create(port: int) -> Job:
            with Controller(server, election_id=5) as controller:
                return controller.create_job(1, [port], slots=2)

        jobs = list(pool.map(create, [1, 2, 3, 4]))
    assert {job.number for job in jobs} == {1, 2, 3, 4}
    assert len({job.slot_base for job in jobs}) == len({job.epoch for job in jobs}) == 4
    first.close()


def test_a_controller_that_was_replaced_says_so(server: str) -> None:
    with Controller(server, election_id=1) as old, Controller(server, election_id=2) as new:
        with pytest.raises(NotPrimaryError, match=r"not primary any more.*connect again"):
            old.create_job(1, [1])
        assert new.create_job(1, [1]).number == 1


def test_a_switch_that_is_not_there_is_an_error_in_time() -> None:
    with pytest.raises(ControllerError, match=r"no P4Runtime server answered at 127\.0\.0\.1:1 "):
        Controller("127.0.0.1:1", timeout=0.3)


def test_a_switch_that_goes_away_is_an_error_and_closing_does_not_hang(
    switch: p4emu.Switch,
) -> None:
    before = set(threading.enumerate())
    server = Server(switch, "127.0.0.1:0")
    controller = Controller(server.start(), timeout=2.0)
    assert "controller-stream" in {t.name for t in set(threading.enumerate()) - before}
    server.stop()
    with pytest.raises(ControllerError, match="check that it still runs"):
        controller.create_job(1, [1])
    controller.close()
    assert "controller-stream" not in {t.name for t in set(threading.enumerate()) - before}


def test_a_switch_that_is_killed_is_an_error_that_names_it() -> None:
    with SwitchProcess.start(None, 1) as process:
        address = process.addresses.grpc
        with Controller(address, timeout=5.0) as controller:
            controller.load(default_program(), DEFINES)
            job = controller.create_job(1, [1])
            os.kill(process.pid, signal.SIGKILL)
            for call in (controller.jobs, lambda: controller.destroy_job(job),
                         lambda: controller.create_job(1, [1])):  # fmt: skip
                with pytest.raises(ControllerError, match=f"the switch at {address} did not"):
                    call()


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
