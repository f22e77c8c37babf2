"""Errors of the core become the exceptions that users catch, with the core's own words."""

from __future__ import annotations

import numpy as np
import pytest

from pycollective import _core, errors


def simulated_error(**timers: float) -> _core.Error:
    """A real error value: an all-reduce of two ranks whose switch never answers."""
    job = {
        "job": 1, "world_size": 2, "epoch": 1, "slots": 4, "mac": "02:50:43:00:01:00",
        "switch_mac": "02:50:43:ff:ff:fe", "ipv4": "10.0.1.1", "switch_ipv4": "10.255.255.254",
    }  # fmt: skip
    config = _core.JobConfig(rank=0, timers=_core.Timers(**timers), **job)
    simulation = _core.Simulation(lambda port, frame: [], [config], seed=1)
    zeros = np.zeros(4, np.float32)
    number = simulation.all_reduce(0, zeros, zeros, _core.DataType.FLOAT32)
    simulation.run()
    error = simulation.error(0, number)
    assert error is not None
    return error


def test_a_silent_switch_becomes_switch_unreachable_with_the_fields_of_the_core() -> None:
    error = simulated_error(connect_timeout=0.5)
    exception = errors.from_core(error)
    assert type(exception) is errors.SwitchUnreachableError
    assert str(exception) == error.text
    assert (exception.job, exception.rank) == (1, 0)
    assert exception.waited == pytest.approx(0.5, abs=0.2)


def test_every_error_code_has_an_exception_but_none() -> None:
    codes = {code.name for code in _core.ErrorCode} - {"NONE"}
    assert codes == set(errors._EXCEPTIONS)


@pytest.mark.parametrize(
    ("exception", "builtin"),
    [
        (errors.DeadlineExceededError, TimeoutError),
        (errors.SwitchUnreachableError, ConnectionError),
        (errors.MismatchError, ValueError),
        (errors.ReductionOverflowError, OverflowError),
        (errors.UnsupportedError, ValueError),
        (errors.ConfigurationError, ValueError),
    ],
)
def test_exceptions_can_be_caught_as_the_builtin_of_their_kind(
    exception: type[Exception], builtin: type[Exception]
) -> None:
    assert issubclass(exception, builtin)
    assert issubclass(exception, errors.PycollectiveError)
    assert str(exception("why")) == "why"
