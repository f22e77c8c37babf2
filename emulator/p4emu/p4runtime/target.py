"""`Target`: what requests act on, a switch and the P4Info by which its client names things."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from p4emu.p4runtime.schema import Schema

if TYPE_CHECKING:
    from p4emu.switch import Switch


@dataclass
class Target:
    """A switch with a program.

    Attributes
    ----------
    notes
        What clients attach to objects and get back unchanged, such as metadata, by object. The
        switch has no use for it.
    """

    switch: Switch
    schema: Schema
    notes: dict[Hashable, Any] = field(default_factory=dict)
