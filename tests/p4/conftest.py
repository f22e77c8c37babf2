"""Fixtures for the tests of the P4 program: it is compiled once, each test gets a fresh switch."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import p4emu

from .rig import DEFINES, SOURCE, Rig


@pytest.fixture(scope="session")
def program() -> p4emu.Program:
    return p4emu.compile(SOURCE, defines=DEFINES)


@pytest.fixture
def rig(program: p4emu.Program) -> Iterator[Rig]:
    """A fresh switch with job 1 of three ranks on ports 1 to 3."""
    rig = Rig(program)
    rig.add_job(1, world=3)
    yield rig
    rig.switch.close()
