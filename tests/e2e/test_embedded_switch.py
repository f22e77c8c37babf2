"""Nothing configured, all ranks on one machine: rank 0 starts a switch that ends with the job."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import environment, marked, wait_for, wait_until_gone

from pycollective.local_ranks import LocalRanks, RankFailedError

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone"]


@pytest.fixture
def mark() -> Iterator[str]:
    """A mark for the test's processes; none of them may be left when it ends."""
    mark = uuid.uuid4().hex
    yield mark
    try:
        wait_until_gone(mark)
    finally:
        for process in marked(mark):
            os.kill(process, signal.SIGKILL)


def launch(
    command: list[str], script: Path, mark: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*command, str(script)],
        env=environment(mark, OMP_NUM_THREADS="1", **variables),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def write(folder: Path, text: str) -> Path:
    script = folder / "script.py"
    script.write_text(text)
    return script


def test_a_script_needs_only_the_backends_name(tmp_path: Path, mark: str) -> None:
    script = write(
        tmp_path,
        "import torch, torch.distributed as dist\n"
        "dist.init_process_group('pycollective')\n"
        "tensor = torch.ones(1000) * (dist.get_rank() + 1)\n"
        "dist.all_reduce(tensor)\n"
        "print('sum', tensor.unique().tolist())\n"
        "dist.destroy_process_group()\n",
    )
    ended = launch([*TORCHRUN, "--nproc-per-node", "3"], script, mark)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("[6.0]") == 3


def test_a_script_that_forgets_to_destroy_its_group_ends_well(tmp_path: Path, mark: str) -> None:
    script = write(
        tmp_path,
        "import torch, torch.distributed as dist\n"
        "dist.init_process_group('pycollective')\n"
        "dist.all_reduce(torch.ones(1000))\n"
        "dist.barrier(async_op=True)\n",
    )
    ended = launch([*TORCHRUN, "--nproc-per-node", "2"], script, mark)
    assert ended.returncode == 0, ended.stderr


def test_groups_of_some_ranks_have_switches_of_their_own(tmp_path: Path, mark: str) -> None:
    script = write(
        tmp_path,
        "import torch, torch.distributed as dist\n"
        "dist.init_process_group('pycollective')\n"
        "groups = [dist.new_group([0, 2]), dist.new_group([1])]\n"
        "tensor = torch.tensor([1 << dist.get_rank()], dtype=torch.int32)\n"
        "dist.all_reduce(tensor, group=groups[dist.get_rank() % 2])\n"
        "print([tensor.item()])\n"
        "dist.barrier()\n"
        "dist.destroy_process_group()\n",
    )
    ended = launch([*TORCHRUN, "--nproc-per-node", "3"], script, mark)
    assert ended.returncode == 0, ended.stderr
    assert (ended.stdout.count("[2]"), ended.stdout.count("[5]")) == (1, 2)


NUMPY = (
    "import numpy as np\n"
    "from pycollective import Communicator\n"
    "for _ in range(2):\n"
    "    with Communicator.create() as comm:\n"
    "        total = comm.allreduce(np.full(1000, comm.rank + 1, np.int32))\n"
    "        print('sum', np.unique(total).tolist(), flush=True)\n"
)


def test_numpy_ranks_meet_at_an_address_and_may_do_so_again(mark: str) -> None:
    command = [sys.executable, "-c", NUMPY]
    with LocalRanks(command, 3, environment(mark)) as ranks:
        assert list(ranks.lines()) == ["sum [6]"] * 2


def test_numpy_ranks_meet_under_torchrun_and_may_do_so_again(tmp_path: Path, mark: str) -> None:
    ended = launch([*TORCHRUN, "--nproc-per-node", "2"], write(tmp_path, NUMPY), mark)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("[3]") == 4


def test_a_process_alone_is_a_world_of_one(mark: str, tmp_path: Path) -> None:
    ended = launch([sys.executable], write(tmp_path, NUMPY), mark)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines() == ["sum [1]"] * 2


def test_the_switch_ends_when_rank_0_is_killed(tmp_path: Path, mark: str) -> None:
    script = write(
        tmp_path,
        "import signal\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from pycollective import Communicator\n"
        "with ThreadPoolExecutor(1) as pool:\n"  # not even the thread that made it need stay
        "    comm = pool.submit(Communicator.create).result()\n"
        "print(comm.allreduce(2.5 * __import__('numpy').ones(1, 'f')), flush=True)\n"
        "signal.pause()\n",
    )
    with subprocess.Popen(
        [sys.executable, str(script)], env=environment(mark), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "[2.5]\n"
        wait_for(mark, "p4emu run")
        process.kill()
    wait_until_gone(mark)


def test_a_forked_child_does_not_take_the_switch_with_it(tmp_path: Path, mark: str) -> None:
    script = write(
        tmp_path,
        "import os, sys\n"
        "import numpy as np\n"
        "from pycollective import Communicator\n"
        "comm = Communicator.create()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    sys.exit(7)\n"
        "_, status = os.waitpid(child, 0)\n"
        "print(os.waitstatus_to_exitcode(status), comm.allreduce(np.ones(1, 'f')))\n",
    )
    ended = launch([sys.executable], script, mark)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "7 [1.]\n"


def test_a_program_with_an_error_is_shown_to_all_ranks(tmp_path: Path, mark: str) -> None:
    program = tmp_path / "broken.p4"
    program.write_text("#include <core.p4>\nheader h_t {\n    bit<8> a\n}\n")
    script = write(tmp_path, "from pycollective import Communicator\nCommunicator.create()\n")
    command = [sys.executable, str(script)]
    with (
        pytest.raises(RankFailedError, match=r"broken\.p4:4:1: error") as caught,
        LocalRanks(command, 2, environment(mark, PYCOLLECTIVE_P4=str(program))) as ranks,
    ):
        list(ranks.lines())
    assert "FabricError" in str(caught.value) or "refused by rank 0" in str(caught.value)


def test_a_running_switch_needs_a_port_for_each_rank(tmp_path: Path, mark: str) -> None:
    script = write(tmp_path, "from pycollective import Communicator\nCommunicator.create()\n")
    ended = launch([sys.executable], script, mark, PYCOLLECTIVE_CONTROLLER="127.0.0.1:9")
    assert ended.returncode == 1
    assert "PYCOLLECTIVE_PORTS must name a switch port for each of 1 ranks" in ended.stderr
