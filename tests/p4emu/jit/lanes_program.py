"""An IR program of the shape of all-reduce: N lanes added into registers, checksums in and out.

It has what matters for code generation (the extract of a wide header, one checksum over it before
and one after, N inlined lane controls with their copies in and out) and no protocol.
"""

from __future__ import annotations

from jit_rig import header, local_var, packet_var, program

from p4emu.ir.nodes import (
    BOOL,
    Assign,
    Binary,
    Bits,
    Const,
    Hash,
    Header,
    If,
    Program,
    Read,
    Register,
    RegisterRead,
    RegisterWrite,
    Stmt,
    Var,
)

WORD = Bits(32)
ROWS = 1024


def lanes_program(lanes: int) -> Program:
    """32-bit fields: control.f0 = row, f1 = keep mask, f2 = add mask, f3 = overflow (out)."""
    control = header("control", [32, 32, 32, 32, 16, 16])
    values = header("lanes", [32] * lanes)
    registers = [
        Register("Ingress.tag.sequences", WORD, ROWS),
        *(Register(f"Ingress.lane{n:03x}.accumulators", WORD, ROWS) for n in range(lanes)),
    ]
    sequence = local_var("sequence", WORD)
    overflow = local_var("overflow", WORD)
    row = local_var("row", WORD)
    body: list[Stmt] = [
        Assign(row, Read(control.fields[0])),
        RegisterRead(registers[0], sequence, Read(row)),
        RegisterWrite(registers[0], Read(row), Binary("+", Read(sequence), Const(1, WORD), WORD)),
        If(Read(values.valid), tuple(_lanes(control, values, registers[1:], row, overflow))),
        Assign(control.fields[3], Read(overflow)),
    ]
    ok = packet_var("meta.checksum", Bits(16))
    data = tuple(Read(field) for field in (*values.fields, *control.fields[:5]))
    condition = Binary("!=", Read(ok), Const(0, Bits(16)), BOOL)
    return program(
        headers=[control, values],
        variables=[ok],
        registers=registers,
        verify=(Hash(ok, "csum16", data),),
        ingress=(If(condition, tuple(body)),),
        compute=(Hash(control.fields[5], "csum16", data),),
    )


def _lanes(
    control: Header, values: Header, registers: list[Register], row: Var, overflow: Var
) -> list[Stmt]:
    stmts: list[Stmt] = []

    def local(name: str, value: Var | None = None) -> Var:
        var = local_var(name, WORD)
        if value is not None:
            stmts.append(Assign(var, Read(value)))
        return var

    def op(name: str, operator: str, left: Var, right: Var) -> Var:
        var = local_var(name, WORD)
        stmts.append(Assign(var, Binary(operator, Read(left), Read(right), WORD)))  # type: ignore[arg-type]
        return var

    for field, register in zip(values.fields, registers, strict=True):
        index = local("row", row)
        keep = local("keep", control.fields[1])
        add = local("add", control.fields[2])
        value = local("value", field)
        flow = local("overflow", overflow)
        stored = local_var("stored", WORD)
        stmts.append(RegisterRead(register, stored, Read(index)))
        left = op("left", "&", stored, keep)
        right = op("right", "&", value, add)
        stmts.append(Assign(value, Binary("+", Read(left), Read(right), WORD)))
        signs = Binary(
            "&",
            Binary("^", Read(left), Read(value), WORD),
            Binary("^", Read(right), Read(value), WORD),
            WORD,
        )
        stmts.append(Assign(flow, Binary("|", Read(flow), signs, WORD)))
        stmts.append(RegisterWrite(register, Read(index), Read(value)))
        stmts.append(Assign(field, Read(value)))
        stmts.append(Assign(overflow, Read(flow)))
    return stmts
