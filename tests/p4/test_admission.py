"""Who may touch which slot, and what the switch says to those who may not."""

from __future__ import annotations

import pytest

from .rig import (
    CONTRIBUTE,
    DATA,
    LANES,
    NACK,
    PROBE,
    PROBE_REPLY,
    SLOTS,
    Rig,
    checksums_hold,
    ip,
    mac,
)


@pytest.mark.parametrize(
    "stranger",
    [
        {"port": 2},
        {"source_mac": mac(1, 1)},
        {"source_ip": ip(1, 1)},
        {"rank": 1},
        {"rank": 32},
        {"rank": 0xFFFF},
    ],
    ids=lambda s: " ".join(f"{k}={v}" for k, v in s.items()),
)
def test_a_worker_with_one_wrong_property_is_dropped_and_counted(
    rig: Rig, stranger: dict[str, object]
) -> None:
    fields = dict(stranger)
    port = fields.pop("port", 1)
    claimed = fields.pop("rank", 0)
    frame = rig.frame(0, [1000], **fields)  # type: ignore[arg-type]
    frame["INA"].rank = claimed
    assert rig.inject(port, bytes(frame)) == []  # type: ignore[arg-type]
    assert rig.count("job_rejected") == 1
    assert rig.count("job_packets") == 0
    for rank in range(3):
        out = rig.send(rank, [1])
    assert out[0].lanes[0] == 3  # type: ignore[index]


@pytest.mark.parametrize(("job", "counted_as"), [(2, 2), (255, 255), (256, 0), (65535, 0)])
def test_an_unknown_job_is_counted_under_its_number_or_under_zero(
    rig: Rig, job: int, counted_as: int
) -> None:
    frame = rig.frame(0, [1])
    frame["INA"].job = job
    assert rig.inject(1, bytes(frame)) == []
    assert rig.count("job_rejected", counted_as) == 1


def test_jobs_with_disjoint_slices_do_not_touch_each_other(program: object) -> None:
    rig = Rig(program)  # type: ignore[arg-type]
    rig.add_job(1, world=2, first_port=1, base=0, limit=SLOTS // 2)
    rig.add_job(2, world=2, first_port=3, base=SLOTS // 2, limit=SLOTS // 2)
    for slot in range(SLOTS // 2):
        rig.send(0, [1], job=1, slot=slot)
        rig.send(0, [100], job=2, slot=slot)
    for slot in range(SLOTS // 2):
        mine = rig.send(1, [2], job=1, slot=slot)
        theirs = rig.send(1, [200], job=2, slot=slot)
        assert [(o.port, o.lanes[0]) for o in mine] == [(1, 3), (2, 3)]  # type: ignore[index]
        assert [(o.port, o.lanes[0]) for o in theirs] == [(3, 300), (4, 300)]  # type: ignore[index]


def test_a_slot_outside_the_slice_is_refused_with_the_reason(program: object) -> None:
    rig = Rig(program)  # type: ignore[arg-type]
    rig.add_job(1, world=2, limit=SLOTS // 2)
    (nack,) = rig.send(0, [1], slot=SLOTS // 2)
    assert (nack.port, nack.ina.opcode, nack.ina.fingerprint) == (1, NACK, 2)
    assert nack.lanes is None
    assert checksums_hold(nack.frame)
    assert rig.count("job_packets") == 0


def test_another_epoch_is_refused_with_the_jobs_epoch(rig: Rig) -> None:
    (nack,) = rig.send(0, [1], epoch=6)
    assert (nack.ina.opcode, nack.ina.fingerprint, nack.ina.epoch) == (NACK, 1, 7)


@pytest.mark.parametrize("full", [False, True])
def test_a_probe_is_turned_round_with_the_programs_lane_count(rig: Rig, full: bool) -> None:
    (reply,) = rig.send(1, [1] * LANES if full else None, opcode=PROBE)
    assert (reply.port, reply.ina.opcode, reply.ina.lane_count) == (2, PROBE_REPLY, LANES)
    assert reply.lanes is None
    assert int(reply.ina.flags) & DATA == 0
    assert checksums_hold(reply.frame)
    assert rig.count("job_packets") == 0


@pytest.mark.parametrize("opcode", [0, 2, 3, 5, 6, 7, 255])
def test_what_only_a_switch_may_say_is_malformed_from_a_host(rig: Rig, opcode: int) -> None:
    assert opcode not in (CONTRIBUTE, PROBE)
    assert rig.send(0, [1], opcode=opcode) == []
    assert rig.count("malformed", 2) == 1
