"""Starts a benchmark: as ranks on this machine, or within the world that torchrun has made.

Writes the table as it comes; what the ranks are doing meanwhile is shown on standard error.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from rich.console import Console

from pycollective.bench import report
from pycollective.bench.measure import in_world, run_rank
from pycollective.bench.plan import Plan, Row
from pycollective.local_ranks import LocalRanks


def run(plan: Plan, ranks: int, json_path: str | None, csv_path: str | None) -> int:
    """Runs a benchmark and writes its figures.

    Parameters
    ----------
    ranks
        How many to start on this machine; under torchrun its world counts instead.
    json_path, csv_path
        Files to write besides; "-" writes to standard output instead of the table.

    Returns
    -------
    int
        Exit status: 0, or 1 when results were wrong.

    Raises
    ------
    PycollectiveError
        When a rank fails.
    """
    if in_world():
        return _run_in_world(plan, json_path, csv_path)
    table = None if "-" in (json_path, csv_path) else sys.stdout
    return _write(plan, ranks, _run_local(plan, ranks), table, json_path, csv_path)


def _run_in_world(plan: Plan, json_path: str | None, csv_path: str | None) -> int:
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    rows = run_rank(plan, "env://")
    if rank != 0:
        return int(sum(row.wrong for row in rows) > 0)
    table = None if "-" in (json_path, csv_path) else sys.stdout
    return _write(plan, world_size, rows, table, json_path, csv_path)


def _run_local(plan: Plan, ranks: int) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="pycollective-bench-") as scratch:
        gloo = f"file://{Path(scratch) / 'gloo'}"
        command = [sys.executable, "-m", "pycollective.bench.rank", plan.to_json(), gloo]
        with LocalRanks(command, ranks) as world:
            for line in world.lines():
                yield Row(**json.loads(line))


def _write(
    plan: Plan,
    world_size: int,
    rows: Iterator[Row],
    table: TextIO | None,
    json_path: str | None,
    csv_path: str | None,
) -> int:
    measured: list[Row] = []
    if table is not None:
        print(report.heading(plan, world_size), file=table, flush=True)
    console = Console(stderr=True)
    with console.status("starting ranks and switch") as status:
        for row in rows:
            measured.append(row)
            if table is not None:
                print(report.line(row), file=table, flush=True)
            status.update(f"measured {len(measured)} of {len(plan.sizes)} sizes")
    if table is not None:
        print(report.summary(measured), file=table, flush=True)
    _save(json_path, report.as_json(plan, world_size, measured))
    _save(csv_path, report.as_csv(measured))
    return int(any(row.wrong for row in measured))


def _save(path: str | None, text: str) -> None:
    if path == "-":
        sys.stdout.write(text)
    elif path is not None:
        Path(path).write_text(text)
