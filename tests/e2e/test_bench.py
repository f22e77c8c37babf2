"""`pycollective bench` as people run it: real ranks, a real switch, every result checked."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import environment, wait_until_gone

from pycollective.switch_process import default_program

BENCH = [sys.executable, "-m", "pycollective", "bench"]
SHORT = ["-b", "4", "-e", "64K", "-f", "16", "-n", "3", "-w", "1"]


@pytest.fixture
def mark() -> Iterator[str]:
    mark = uuid.uuid4().hex
    yield mark
    wait_until_gone(mark)


def run(command: list[str], mark: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        env=environment(mark, OMP_NUM_THREADS="1", **variables),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_all_reduce_is_measured_beside_gloo_and_checked(
    tmp_path: Path, mark: str, switch_environment: dict[str, str]
) -> None:
    figures = tmp_path / "figures.json"
    command = [*BENCH, "all_reduce", *SHORT, "--ranks", "3", "--compare", "gloo"]
    ended = run([*command, "--json", str(figures)], mark, **switch_environment)
    assert ended.returncode == 0, ended.stderr
    table = [line.split() for line in ended.stdout.splitlines() if not line.startswith("#")]
    assert [row[:4] for row in table] == [
        [str(size), str(size // 4), "float", "sum"] for size in (4, 64, 1024, 16384)
    ]
    assert all(row[7] == "0" and row[9].endswith("x") for row in table)
    assert "# wrong elements: 0 OK" in ended.stdout
    content = json.loads(figures.read_text())
    assert content["world_size"] == 3
    for row in content["rows"]:
        assert row["algbw"] == pytest.approx(row["size"] / row["time"] / 1e3)
        assert row["busbw"] == pytest.approx(row["algbw"] * 4 / 3)
        assert row["ratio"] == pytest.approx(row["other_time"] / row["time"])


@pytest.mark.parametrize(
    ("collective", "dtype"),
    [("broadcast", "int32"), ("all_gather", "float"), ("all_reduce", "int32")],
)
def test_other_collectives_and_types_are_checked_too(
    collective: str, dtype: str, mark: str, switch_environment: dict[str, str]
) -> None:
    command = [*BENCH, collective, *SHORT, "--ranks", "2", "-d", dtype, "-c", "2", "--csv", "-"]
    ended = run(command, mark, **switch_environment)
    assert ended.returncode == 0, ended.stderr
    rows = list(csv.DictReader(io.StringIO(ended.stdout)))
    assert [(row["size"], row["dtype"], row["wrong"]) for row in rows] == [
        (str(size), dtype, "0") for size in (4, 64, 1024, 16384)
    ]


def test_a_switch_that_adds_wrongly_is_found_out(tmp_path: Path, mark: str) -> None:
    shutil.copytree(default_program().parent, tmp_path / "p4")
    lane = tmp_path / "p4" / "include" / "slot.p4"
    right, wrong = "right = value & add;", "right = (value & add) + 1;"
    assert lane.read_text().count(right) == 1
    lane.write_text(lane.read_text().replace(right, wrong))
    program = tmp_path / "p4" / "allreduce.p4"
    command = [*BENCH, "all_reduce", "-b", "1K", "-e", "1K", "-n", "1", "-w", "0", "--ranks", "2"]
    ended = run([*command, "-d", "int32"], mark, PYCOLLECTIVE_P4=str(program))
    assert ended.returncode == 1, ended.stderr
    assert "# wrong elements: 512 FAILED" in ended.stdout


def test_under_torchrun_its_ranks_are_measured(
    mark: str, switch_environment: dict[str, str]
) -> None:
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command = [*torchrun, "--nproc-per-node", "2", "-m", "pycollective", *BENCH[3:], "all_reduce"]
    ended = run([*command, *SHORT, "--compare", "gloo"], mark, **switch_environment)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("# wrong elements: 0 OK") == 1
    assert "all_reduce, 2 ranks" in ended.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["all_reduce", "-d", "double"], "the network sums float and int32"),
        (["all_reduce", "-o", "prod"], "the network supports sum"),
        (["all_to_all"], "all_reduce, broadcast, all_gather"),
        (["all_reduce", "-b", "some"], "a size is a number of bytes"),
        (["all_reduce", "-b", "8", "-e", "4"], "found 8 to 4"),
        (["all_reduce", "--compare", "mpi"], "a comparison is with gloo"),
    ],
)
def test_what_cannot_be_measured_is_said_at_once(
    arguments: list[str], message: str, mark: str
) -> None:
    ended = run([*BENCH, *arguments], mark)
    assert ended.returncode == 2
    assert message in ended.stderr
    assert "Traceback" not in ended.stderr
