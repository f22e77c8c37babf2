"""A switch with the objects program, served over P4Runtime, new for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from p4runtime_rig import OBJECTS, Client, Names

import p4emu
from p4emu.p4runtime import Server


@pytest.fixture(scope="session")
def program() -> p4emu.Program:
    return p4emu.compile(OBJECTS)


@pytest.fixture(scope="session")
def names(program: p4emu.Program) -> Names:
    return Names(program.p4info)


@pytest.fixture
def switch(program: p4emu.Program) -> Iterator[p4emu.Switch]:
    with p4emu.Switch(program) as switch:
        yield switch


@pytest.fixture
def address(switch: p4emu.Switch) -> Iterator[str]:
    server = Server(switch, "127.0.0.1:0", device_config=OBJECTS.read_bytes())
    yield server.start()
    server.stop()


@pytest.fixture
def client(address: str) -> Iterator[Client]:
    """The primary client."""
    with Client(address) as client:
        assert client.arbitrate().arbitration.status.code == 0
        yield client
