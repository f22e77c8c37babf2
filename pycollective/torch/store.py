"""Meeting over a torch store: where rank 0 can be reached is told in the store.

Only the address goes through the store; the ranks then talk to rank 0 directly, as in
`pycollective.rendezvous`, because a closed connection tells that a rank has gone and a store does
not.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from datetime import timedelta

import torch.distributed as dist
from torch._C._distributed_c10d import PrefixStore, Store, TCPStore

from pycollective.errors import RendezvousError
from pycollective.rendezvous import Guest, Host

_KEY = "pycollective/rendezvous"


class StoreMeeting:
    """Meets the other ranks of one group; `store` must be that group's own.

    Parameters
    ----------
    host
        Address of this machine that rank 0 listens at.
    """

    def __init__(self, store: Store, host: str) -> None:
        self._store = store
        self._host = host

    def host(self, world_size: int) -> Host:
        """Begins to listen, as rank 0, and tells the others where."""
        key = secrets.token_hex(16)
        host = Host((self._host, 0), world_size, key)
        self._store.set(_KEY, json.dumps([*host.address, key]))
        return host

    def join(self, rank: int, world_size: int, timeout: float) -> Guest:
        """Finds rank 0, as any other rank.

        Raises
        ------
        RendezvousError
            When rank 0 has not said where it is after `timeout` seconds, or does not answer.
        """
        try:
            self._store.wait([_KEY], timedelta(seconds=timeout))
        except (dist.DistError, RuntimeError) as error:
            raise RendezvousError(
                f"rank {rank} waited {timeout:.0f} s for rank 0 to say in the store where it "
                "listens; see what rank 0 says"
            ) from error
        host, port, key = json.loads(self._store.get(_KEY))
        return Guest.join((host, port), rank, world_size, timeout, key)


def agent_meeting(
    environment: Mapping[str, str], master: tuple[str, int], rank: int, world_size: int
) -> StoreMeeting:
    """A meeting under torchrun, whose agent has a store at MASTER_PORT and so occupies the port.

    Every call of a rank meets the calls of the same number of the other ranks.
    """
    store = TCPStore(*master, world_size, is_master=False, timeout=timedelta(seconds=60))
    restart = environment.get("TORCHELASTIC_RESTART_COUNT", "0")
    call = store.add(f"pycollective/{restart}/calls/{rank}", 1)
    return StoreMeeting(PrefixStore(f"pycollective/{restart}/{call}", store), master[0])


def own_address(environment: Mapping[str, str] = os.environ) -> str:
    """Address of this machine at which other ranks can reach rank 0."""
    return environment.get("MASTER_ADDR") or "127.0.0.1"
