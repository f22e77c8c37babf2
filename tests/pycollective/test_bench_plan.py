"""The benchmark's sizes, its data and the text it prints."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pycollective.bench import patterns, plan, report
from pycollective.errors import ConfigurationError, UnsupportedError


def make_plan(**changes: object) -> plan.Plan:
    values: dict[str, object] = {
        "collective": "all_reduce",
        "sizes": (4, 1024),
        "iterations": 20,
        "warmup": 5,
        "checks": 1,
        "dtype": "float",
        "op": "sum",
        "compare": None,
    }
    return plan.Plan(**{**values, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "size"), [("4", 4), ("64K", 65536), ("16M", 1 << 24), ("1g", 1 << 30)]
)
def test_sizes_are_read_as_nccl_tests_reads_them(text: str, size: int) -> None:
    assert plan.parse_size(text) == size


@pytest.mark.parametrize("text", ["", "M", "4.5K", "-4", "4T", "four"])
def test_a_size_that_does_not_parse_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="a size is"):
        plan.parse_size(text)


def test_sizes_grow_by_a_factor_up_to_the_end() -> None:
    assert plan.sizes(4, 1024, 4, None) == (4, 16, 64, 256, 1024)
    assert plan.sizes(4, 1000, 4, None) == (4, 16, 64, 256)


def test_sizes_grow_by_an_increment_which_is_a_megabyte_unless_said() -> None:
    assert plan.sizes(100, 400, None, 100) == (100, 200, 300, 400)
    assert plan.sizes(1 << 20, 3 << 20, None, None) == (1 << 20, 2 << 20, 3 << 20)


@pytest.mark.parametrize(
    ("begin", "end", "factor", "increment"),
    [(0, 4, 2, None), (8, 4, 2, None), (4, 8, 1, None), (4, 8, None, 0)],
)
def test_sizes_that_would_never_end_are_refused(
    begin: int, end: int, factor: int | None, increment: int | None
) -> None:
    with pytest.raises(ConfigurationError):
        plan.sizes(begin, end, factor, increment)


@pytest.mark.parametrize("wrong", [{"dtype": "double"}, {"op": "max"}, {"compare": "mpi"}])
def test_what_the_network_does_not_have_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(UnsupportedError):
        make_plan(**wrong)


def test_an_unknown_collective_is_refused_with_those_that_exist() -> None:
    with pytest.raises(UnsupportedError, match="all_reduce, broadcast, all_gather"):
        plan.collective("all_to_all")


def test_a_plan_survives_its_way_to_a_rank() -> None:
    assert plan.Plan.from_json(make_plan().to_json()) == make_plan()


def test_bus_bandwidth_counts_what_a_ring_would_send() -> None:
    assert plan.bus_factor("all_reduce", 4) == 1.5
    assert plan.bus_factor("all_gather", 4) == 0.75
    assert plan.bus_factor("broadcast", 4) == 1.0


def test_an_all_gather_divides_its_size_among_ranks() -> None:
    assert make_plan(collective="all_gather").count(1024, 4) == 64
    assert make_plan().count(1024, 4) == 256


@given(world_size=st.integers(1, 32), count=st.integers(0, 600))
def test_the_expected_sum_is_the_exact_sum_in_any_order(world_size: int, count: int) -> None:
    for dtype in plan.DTYPES:
        measured = make_plan(dtype=dtype)
        parts = [patterns.contribution(measured, rank, count) for rank in range(world_size)]
        exact = np.zeros(count, np.float64)
        for part in parts:
            exact += part
        expected = patterns.expected(measured, world_size, count)
        assert expected.dtype == plan.DTYPES[dtype]
        np.testing.assert_array_equal(expected.astype(np.float64), exact)
        backwards = np.zeros(count, plan.DTYPES[dtype])
        for part in reversed(parts):
            backwards += part
        assert patterns.wrong(backwards, expected) == 0


def test_ranks_contribute_different_data() -> None:
    parts = [patterns.contribution(make_plan(), rank, 100).tobytes() for rank in range(32)]
    assert len(set(parts)) == 32


def test_every_element_that_differs_in_a_bit_is_wrong() -> None:
    exact = np.array([1.0, 0.0, 2.0], np.float32)
    result = np.array([1.0, -0.0, np.nextafter(np.float32(2), np.float32(3))], np.float32)
    assert patterns.wrong(result, exact) == 2


ROWS = (
    plan.Row(1024, 256, "float", "sum", 100.0, 0.01024, 0.01536, 0, 200.0),
    plan.Row(4096, 1024, "float", "sum", 200.0, 0.02048, 0.03072, 3, 100.0),
)


def test_the_table_has_the_columns_of_nccl_tests() -> None:
    heading = report.heading(make_plan(compare="gloo"), 4).splitlines()
    assert heading[1].split() == [
        "#", "size", "count", "type", "redop", "time", "algbw", "busbw", "#wrong", "gloo", "ratio",
    ]  # fmt: skip
    assert report.line(ROWS[0]).split() == [
        "1024", "256", "float", "sum", "100.0", "0.0102", "0.0154", "0", "200.0", "2.00x",
    ]  # fmt: skip
    assert len(report.line(ROWS[0])) == len(heading[1])


def test_the_summary_says_when_something_was_wrong() -> None:
    assert "wrong elements: 0 OK" in report.summary(ROWS[:1])
    assert "wrong elements: 3 FAILED" in report.summary(ROWS)


def test_json_and_csv_have_all_figures() -> None:
    content = json.loads(report.as_json(make_plan(), 4, ROWS))
    assert content["world_size"] == 4
    assert [row["ratio"] for row in content["rows"]] == [2.0, 0.5]
    rows = list(csv.DictReader(io.StringIO(report.as_csv(ROWS))))
    assert [int(row["wrong"]) for row in rows] == [0, 3]
    assert [float(row["time"]) for row in rows] == [100.0, 200.0]
