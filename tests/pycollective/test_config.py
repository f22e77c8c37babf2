"""Settings and memberships: what is wrong is said with the name of the variable."""

from __future__ import annotations

import dataclasses

import pytest

from pycollective.config import MAX_WORLD_SIZE, Membership, Settings, parse_ports
from pycollective.errors import ConfigurationError

MEMBERSHIP = Membership(
    job=1,
    rank=2,
    world_size=4,
    epoch=3,
    slots=128,
    lanes=256,
    address="udp:127.0.0.1:4001",
    mac="02:50:43:00:01:02",
    ipv4="10.0.1.3",
    switch_mac="02:50:43:ff:ff:fe",
    switch_ipv4="10.255.255.254",
)


def test_a_membership_survives_its_way_to_another_rank() -> None:
    assert Membership.from_json(MEMBERSHIP.to_json()) == MEMBERSHIP


def test_a_membership_of_another_version_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="same version"):
        Membership.from_json('{"job": 1}')


def test_a_membership_becomes_the_configuration_of_the_engine() -> None:
    config = MEMBERSHIP.job_config(deadline=7.0)
    assert (config.job, config.rank, config.world_size, config.epoch) == (1, 2, 4, 3)
    assert (config.slots, config.lanes) == (128, 256)
    assert (config.mac, config.ipv4) == (MEMBERSHIP.mac, MEMBERSHIP.ipv4)
    assert config.timers.deadline == 7.0


@pytest.mark.parametrize(
    "wrong",
    [
        {"rank": 4},
        {"rank": -1},
        {"world_size": 0},
        {"world_size": MAX_WORLD_SIZE + 1},
        {"address": "shm:port1"},
        {"address": "udp:127.0.0.1"},
        {"address": "udp:127.0.0.1:0"},
    ],
)
def test_impossible_memberships_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError):
        dataclasses.replace(MEMBERSHIP, **wrong)


def test_settings_of_an_empty_environment_are_a_world_of_ones_own() -> None:
    settings = Settings.from_environment({})
    assert settings == Settings(None, None, None, None, (), 30.0, None)


def test_settings_read_what_torchrun_sets() -> None:
    settings = Settings.from_environment(
        {"RANK": "3", "WORLD_SIZE": "8", "MASTER_ADDR": "node0", "MASTER_PORT": "29500"}
    )
    assert (settings.rank, settings.world_size) == (3, 8)
    assert settings.master == ("node0", 29500)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("RANK", "one"),
        ("WORLD_SIZE", "-4"),
        ("MASTER_PORT", "http"),
        ("PYCOLLECTIVE_CONTROLLER", "localhost"),
        ("PYCOLLECTIVE_PORTS", "udp:127.0.0.1:1"),
        ("PYCOLLECTIVE_DEADLINE", "soon"),
        ("PYCOLLECTIVE_DEADLINE", "0"),
        ("PYCOLLECTIVE_DEADLINE", "inf"),
    ],
)
def test_a_setting_that_does_not_parse_is_named(variable: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match=variable):
        Settings.from_environment({variable: value})


def test_ports_are_read_in_order_of_rank() -> None:
    assert parse_ports("4=udp:127.0.0.1:9004, 1=udp:127.0.0.1:9001") == (
        (4, "udp:127.0.0.1:9004"),
        (1, "udp:127.0.0.1:9001"),
    )


def test_a_switch_port_for_two_ranks_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="port 1 twice"):
        parse_ports("1=udp:127.0.0.1:9001,1=udp:127.0.0.1:9002")
