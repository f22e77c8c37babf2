"""A p4emu process: it says where it is, says why it does not start, and ends when told."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from pycollective.controller import Controller
from pycollective.errors import FabricError
from pycollective.switch_process import SwitchProcess, default_program


def test_it_says_where_it_is_and_ends_when_told() -> None:
    with SwitchProcess.start(None, 2) as switch:
        assert set(switch.addresses.ports) == {1, 2}
        assert all(
            address.startswith("udp:127.0.0.1:") for address in switch.addresses.ports.values()
        )
        with Controller(switch.addresses.grpc):
            pass
        os.kill(switch.pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(switch.pid, 0)
    switch.stop()


def test_it_outlives_the_thread_that_started_it() -> None:
    started: list[SwitchProcess] = []
    thread = threading.Thread(target=lambda: started.append(SwitchProcess.start(None, 1)))
    thread.start()
    thread.join()
    with started[0] as switch, Controller(switch.addresses.grpc):
        os.kill(switch.pid, 0)


def test_a_program_that_is_missing_is_said_to_be(tmp_path: Path) -> None:
    with pytest.raises(FabricError, match=r"exit status \d+ .* it said: .*nowhere\.p4"):
        SwitchProcess.start(tmp_path / "nowhere.p4", 1)


def test_a_type_error_is_shown_with_its_place(tmp_path: Path) -> None:
    program = tmp_path / "wrong.p4"
    program.write_text("const bit<8> a = true;\n")
    with pytest.raises(FabricError, match=r"(?s)wrong\.p4:1:\d+: error: .*\^"):
        SwitchProcess.start(program, 1)


def test_a_switch_that_takes_too_long_is_ended() -> None:
    with pytest.raises(FabricError, match="not ready after 0 s"):
        SwitchProcess.start(default_program(), 1, timeout=0.0)
