"""The intermediate representation: node types, printer, verifier.

`nodes` defines it, `verify(program)` checks it, `dump(program)` prints it, `walk` visits it.
"""

from p4emu.ir.dump import dump
from p4emu.ir.verify import IRError, verify

__all__ = ["IRError", "dump", "verify"]
