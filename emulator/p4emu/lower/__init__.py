"""Lowering: from the checked syntax tree to IR.

`lower(checked)` instantiates the package, inlines controls, actions and functions, flattens types
to scalars and makes the calling convention explicit. It knows the v1model architecture and nothing
of LLVM. Modules, from the ground up:

- `fold` builds expressions, `values` are places and values, `shapes` gives types their storage
- `scope` says what names stand for; `emit` collects statements
- `expressions`, `arguments`, `calls`, `statements` lower code; each builds on the one before
- `externs`, `tables`, `instances`, `parsers` lower what code uses and belongs to
- `pipeline` puts the blocks of `main` together
"""

from p4emu.lower.pipeline import lower

__all__ = ["lower"]
