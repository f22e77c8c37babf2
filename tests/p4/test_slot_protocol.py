"""The switch's side of the slot protocol: the table of docs/protocol.md section 3, row by row."""

from __future__ import annotations

import pytest

from .rig import (
    COPY,
    DATA,
    LANES,
    MISMATCH,
    OVERFLOW,
    RESULT,
    RETRANSMIT,
    SPECIAL,
    STATUS,
    SWITCH_IP,
    SWITCH_MAC,
    Rig,
    checksums_hold,
    ip,
    mac,
)

INT_MAX = 2**31 - 1
INT_MIN = -(2**31)


def test_result_goes_to_every_rank_when_the_last_part_arrives(rig: Rig) -> None:
    assert rig.send(0, [1, -2, 3]) == []
    assert rig.send(2, [10, -20, 30]) == []
    out = rig.send(1, [100, -200, 300])

    assert sorted(o.port for o in out) == [1, 2, 3]
    for o in out:
        rank = o.port - 1
        assert o.lanes == [111, -222, 333] + [0] * (LANES - 3)
        assert (o.ina.opcode, o.ina.rank, int(o.ina.flags)) == (RESULT, rank, DATA)
        assert (o.frame.dst, o.frame.src) == (mac(1, rank), SWITCH_MAC)
        assert (o.frame["IP"].dst, o.frame["IP"].src) == (ip(1, rank), SWITCH_IP)
        assert checksums_hold(o.frame)
    assert rig.count("job_packets") == 3
    assert rig.count("job_completions") == 1


def test_every_lane_is_added_on_its_own(rig: Rig) -> None:
    for rank in range(2):
        rig.send(rank, [(rank + 1) * lane for lane in range(LANES)])
    out = rig.send(2, [1000] * LANES)
    assert out[0].lanes == [3 * lane + 1000 for lane in range(LANES)]


def test_repeat_of_an_incomplete_chunk_is_answered_with_the_bitmap_and_not_added(rig: Rig) -> None:
    rig.send(0, [5])
    rig.send(2, [7])
    (status,) = rig.send(0, [5], flags=RETRANSMIT)

    assert status.port == 1
    assert (status.ina.opcode, status.ina.fingerprint) == (STATUS, 0b101)
    assert status.lanes is None
    assert checksums_hold(status.frame)
    assert rig.count("job_duplicates") == 1
    assert rig.send(1, [1])[0].lanes[0] == 13  # type: ignore[index]


def test_repeat_of_a_complete_chunk_is_answered_with_the_result_to_its_sender_alone(
    rig: Rig,
) -> None:
    for rank in range(3):
        rig.send(rank, [rank + 1], exponent=rank)
    (result,) = rig.send(1, [2], flags=RETRANSMIT, exponent=1)

    assert result.port == 2
    assert result.ina.opcode == RESULT
    assert int(result.ina.flags) == DATA | RETRANSMIT
    assert result.ina.exponent == 2
    assert result.lanes[0] == 6  # type: ignore[index]
    assert checksums_hold(result.frame)
    assert rig.count("job_duplicates") == 1
    assert rig.count("job_completions") == 1


@pytest.mark.parametrize(
    ("sequence", "chunk"),
    [(4, 9), (5, 8), (3, 1000)],
    ids=["older sequence", "older chunk", "older sequence with a larger chunk"],
)
def test_a_tag_older_than_the_slots_is_dropped_and_counted(
    rig: Rig, sequence: int, chunk: int
) -> None:
    rig.send(0, [1], sequence=5, chunk=9)
    assert rig.send(1, [50], sequence=sequence, chunk=chunk) == []
    assert rig.count("job_stale") == 1
    rig.send(1, [2], sequence=5, chunk=9)
    assert rig.send(2, [3], sequence=5, chunk=9)[0].lanes[0] == 6  # type: ignore[index]


def test_sequence_numbers_wrap(rig: Rig) -> None:
    rig.send(0, [1], sequence=0xFFFFFFFF)
    rig.send(0, [10], sequence=1)
    rig.send(1, [10], sequence=1)
    assert rig.send(2, [10], sequence=0xFFFFFFFF) == []
    assert rig.count("job_stale") == 1
    assert rig.send(2, [10], sequence=1)[0].lanes[0] == 30  # type: ignore[index]


def test_a_duplicate_held_back_over_two_reuses_of_its_slot_version_changes_nothing(
    rig: Rig,
) -> None:
    late = bytes(rig.frame(0, [1000], sequence=1, chunk=0, slot=2, slot_version=0))
    for use in range(3):
        # Uses of slot 2 alternate between its versions; each version is used again and again.
        for version in (0, 1):
            place = {"sequence": 1, "chunk": 2 * use + version, "slot": 2, "slot_version": version}
            for rank in range(2):
                rig.send(rank, [rank + 1], **place)
            if version == 0 and use == 2:
                # The slot version's third use has ranks 0 and 1; now the first use's frame comes.
                before = rig.count("job_stale")
                assert rig.inject(1, late) == []
                assert rig.count("job_stale") == before + 1
            out = rig.send(2, [3], **place)
            assert [o.lanes[0] for o in out] == [6, 6, 6]  # type: ignore[index]


def test_a_duplicate_held_back_over_two_reuses_is_not_taken_for_a_first_part(rig: Rig) -> None:
    """Without the tag this frame's bit would be clear, and it would count for rank 0."""
    late = bytes(rig.frame(0, [1000], sequence=1, chunk=0))
    for chunk in (0, 2):
        for rank in range(3):
            rig.send(rank, [1], sequence=1, chunk=chunk)
    rig.send(1, [20], sequence=1, chunk=4)
    rig.send(2, [300], sequence=1, chunk=4)
    assert rig.inject(1, late) == []
    assert rig.send(0, [4], sequence=1, chunk=4)[0].lanes[0] == 324  # type: ignore[index]


def test_the_two_versions_of_a_slot_are_independent(rig: Rig) -> None:
    for rank in range(3):
        rig.send(rank, [1], chunk=0, slot_version=0)
    rig.send(0, [10], chunk=8, slot_version=1)
    (again,) = rig.send(2, [1], chunk=0, slot_version=0, flags=RETRANSMIT)
    assert (again.ina.opcode, again.lanes[0]) == (RESULT, 3)  # type: ignore[index]


def test_a_new_epoch_begins_with_empty_slots_even_for_smaller_sequence_numbers(rig: Rig) -> None:
    rig.send(0, [1], sequence=900)
    rig.restart_job(1, 3, epoch=8)
    rig.send(0, [10], sequence=1)
    rig.send(1, [10], sequence=1)
    assert rig.send(2, [10], sequence=1)[0].lanes[0] == 30  # type: ignore[index]


@pytest.mark.parametrize(
    ("parts", "overflows"),
    [
        ((INT_MAX, 1, 0), True),
        ((INT_MIN, -1, 0), True),
        ((INT_MAX, 1, -1), True),
        ((INT_MAX - 1, 1, 0), False),
        ((INT_MIN + 1, -1, 0), False),
        ((INT_MAX, INT_MIN, 1), False),
    ],
)
def test_overflow_of_any_lane_is_flagged(
    rig: Rig, parts: tuple[int, int, int], overflows: bool
) -> None:
    for rank in range(2):
        rig.send(rank, [0] * (LANES - 1) + [parts[rank]])
    out = rig.send(2, [0] * (LANES - 1) + [parts[2]])
    assert {bool(int(o.ina.flags) & OVERFLOW) for o in out} == {overflows}
    (again,) = rig.send(0, [0] * (LANES - 1) + [parts[0]], flags=RETRANSMIT)
    assert bool(int(again.ina.flags) & OVERFLOW) is overflows


def test_overflow_of_one_chunk_does_not_stick_to_the_next(rig: Rig) -> None:
    for rank in range(3):
        rig.send(rank, [INT_MAX])
    for rank in range(2):
        rig.send(rank, [1], chunk=2)
    assert int(rig.send(2, [1], chunk=2)[0].ina.flags) == DATA


def test_exponent_of_the_result_is_the_largest_with_its_sign(rig: Rig) -> None:
    for rank, exponent in enumerate((-100, -7, -127)):
        out = rig.send(rank, [0], exponent=exponent)
    assert {o.ina.exponent for o in out} == {-7}


def test_special_flag_of_one_rank_reaches_all(rig: Rig) -> None:
    rig.send(0, [0])
    rig.send(1, [0], flags=SPECIAL)
    out = rig.send(2, [0])
    assert {int(o.ina.flags) for o in out} == {DATA | SPECIAL}


@pytest.mark.parametrize("odd", [0, 1, 2])
def test_another_fingerprint_is_flagged_to_all_whoever_has_it(rig: Rig, odd: int) -> None:
    for rank in range(3):
        out = rig.send(rank, [1], fingerprint=0x1111 if rank == odd else 0x2222)
    assert {bool(int(o.ina.flags) & MISMATCH) for o in out} == {True}


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_copy_delivers_the_roots_lanes_in_any_order(rig: Rig, order: tuple[int, int, int]) -> None:
    values = [7 * lane - 50 for lane in range(LANES)]
    rig.send(0, [99] * LANES, sequence=1)  # leave something in the accumulators
    for rank in order:
        out = rig.send(rank, values if rank == 0 else None, sequence=2, reduce_op=COPY)
    assert sorted(o.port for o in out) == [1, 2, 3]
    for o in out:
        assert o.lanes == values
        assert checksums_hold(o.frame)
    (again,) = rig.send(1, None, sequence=2, reduce_op=COPY, flags=RETRANSMIT)
    assert again.lanes == values


def test_header_only_chunk_is_a_barrier_with_exponent(rig: Rig) -> None:
    rig.send(0, [1234])
    for rank in range(3):
        out = rig.send(rank, None, chunk=2, exponent=rank - 5)
    assert [o.lanes for o in out] == [None] * 3
    assert {(o.ina.opcode, o.ina.exponent) for o in out} == {(RESULT, -3)}
    assert all(checksums_hold(o.frame) for o in out)


def test_a_job_of_one_rank_completes_at_once(rig: Rig) -> None:
    rig.add_job(2, world=1, first_port=4)
    (out,) = rig.send(0, [42], job=2)
    assert (out.port, out.ina.opcode, out.lanes[0]) == (4, RESULT, 42)  # type: ignore[index]


def test_a_job_of_thirty_two_ranks_uses_the_whole_bitmap(program: object) -> None:
    rig = Rig(program)  # type: ignore[arg-type]
    rig.add_job(1, world=32)
    for rank in range(31):
        assert rig.send(rank, [1 << rank]) == []
    out = rig.send(31, [0])
    assert len(out) == 32
    assert {o.lanes[0] for o in out} == {2**31 - 1}  # type: ignore[index]
