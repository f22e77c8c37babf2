"""The control plane: a P4Runtime server for one `Switch`.

How a request travels:

    server (gRPC) -> arbitration (may this client write?) -> pipeline (which program?)
                  -> entities (which kind of object?) -> tables | cells | replication -> Switch

`schema` reads a P4Info, `values` byte strings, `status` turns refusals into gRPC's statuses. What a
client sends as device config is a `bundle` of P4 sources; that module needs no gRPC. Nothing here
decides what happens to packets.

Main types: `Server`, `make_bundle`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from p4emu.p4runtime.bundle import make_bundle
    from p4emu.p4runtime.server import Server

# Loaded on first use: making a bundle needs no gRPC.
_LAZY = {"Server": "p4emu.p4runtime.server", "make_bundle": "p4emu.p4runtime.bundle"}

__all__ = ["Server", "make_bundle"]


def __getattr__(name: str) -> Any:
    home = _LAZY.get(name)
    if home is None:
        raise AttributeError(f"module 'p4emu.p4runtime' has no attribute {name!r}")
    return getattr(import_module(home), name)
