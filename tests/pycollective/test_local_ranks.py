"""Ranks as real processes: they get their place in the world, and end together."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from pycollective.local_ranks import LocalRanks, RankFailedError

SHOW = "import os; print(os.environ['RANK'], os.environ['WORLD_SIZE'], os.environ['EXTRA'])"
SLEEP = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"


def ranks(program: str, world_size: int) -> LocalRanks:
    return LocalRanks([sys.executable, "-c", program], world_size, {"EXTRA": "yes"})


def test_rank_0_is_heard_and_knows_its_world() -> None:
    with ranks(SHOW, 3) as world:
        assert list(world.lines()) == ["0 3 yes"]


def test_all_ranks_meet_at_one_address(tmp_path: Path) -> None:
    program = (
        "import os, pathlib; pathlib.Path(os.environ['EXTRA'], os.environ['RANK']).write_text("
        "os.environ['MASTER_ADDR'] + ':' + os.environ['MASTER_PORT'])"
    )
    with LocalRanks([sys.executable, "-c", program], 3, {"EXTRA": str(tmp_path)}) as world:
        assert list(world.lines()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1", "2"]
    assert len({path.read_text() for path in tmp_path.iterdir()}) == 1


def test_a_rank_that_fails_is_named_with_what_it_said_and_the_others_are_ended() -> None:
    program = (
        "import os, sys, time\nif os.environ['RANK'] == '2': sys.exit('no luck')\ntime.sleep(60)"
    )
    with (
        pytest.raises(RankFailedError, match="rank 2 ended with status 1; it said: no luck"),
        ranks(program, 3) as world,
    ):
        list(world.lines())


def test_leaving_early_ends_all_ranks() -> None:
    with ranks(SLEEP, 2) as world:
        process = int(next(iter(world.lines())))
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
