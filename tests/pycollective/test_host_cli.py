"""Every command explains itself, with an example."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from pycollective import cli


@pytest.mark.parametrize("command", [[], ["demo"], ["bench"], ["doctor"]])
def test_help_has_an_example(command: list[str]) -> None:
    answer = CliRunner().invoke(cli.app, [*command, "--help"])
    assert answer.exit_code == 0
    assert "Example: pycollective" in answer.output


def test_doctor_reports_and_returns_its_status() -> None:
    answer = CliRunner().invoke(cli.app, ["doctor"])
    assert answer.exit_code == 0, answer.output
    assert "P4 program" in answer.output


def test_the_package_is_light_until_it_is_used() -> None:
    # torch imports it when it is imported itself, and must not fail with the core or with gRPC.
    program = (
        "import sys, torch, pycollective\n"
        "loaded = {'pycollective._core', 'grpc', 'p4emu'} & set(sys.modules)\n"
        "assert not loaded, loaded\n"
        "assert 'pycollective' in torch.distributed.Backend.backend_list\n"
        "from pycollective import Communicator, DeadlineExceededError\n"
        "assert not hasattr(pycollective, 'nothing')\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
