"""Fixtures: a model switch on loopback, and a connection to it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from model_switch import ModelSwitch, lone_job

from pycollective import _core


@pytest.fixture
def model() -> Iterator[ModelSwitch]:
    with ModelSwitch() as switch:
        yield switch


@pytest.fixture
def connection(model: ModelSwitch) -> Iterator[_core.Connection]:
    with _core.Connection.connect(lone_job(), model.address) as connection:
        yield connection
