"""The printed form of a program: what people read in `p4emu ir` and in error messages."""

from __future__ import annotations

from p4emu.ir import dump
from p4emu.ir.dump import format_expr
from p4emu.ir.nodes import (
    BOOL,
    Action,
    ActionCall,
    Apply,
    Assign,
    Binary,
    Bits,
    Block,
    Const,
    Emit,
    Entry,
    Extract,
    Goto,
    Header,
    If,
    Key,
    KeyMatch,
    KeysetAny,
    KeysetRange,
    KeysetValue,
    Leave,
    Mux,
    Program,
    Read,
    Register,
    RegisterRead,
    RegisterWrite,
    Select,
    Slice,
    State,
    Switch,
    Table,
    Var,
)


def test_a_program_reads_top_down() -> None:
    kind = Var("hdr.h.kind", Bits(8), "packet")
    valid = Var("hdr.h.$valid", BOOL, "packet")
    header = Header("hdr.h", (kind,), valid)
    port = Var("standard_metadata.egress_spec", Bits(9), "packet")
    param = Var("port", Bits(9), "local")
    old, new = Var("tmp", Bits(8), "local"), Var("tmp", Bits(8), "local")
    register = Register("Ingress.seen", Bits(8), 256)
    table = Table(
        "Ingress.route",
        (Key("kind", Read(kind), "ternary"),),
        (Action("Ingress.forward", (param,), (Assign(port, Read(param)),)), Action("drop", (), ())),
        ActionCall(1),
        64,
        (Entry((KeyMatch(1, 3),), ActionCall(0, (9,)), 1),),
        const_default=True,
    )
    program = Program(
        "demo",
        [header],
        [port],
        {"egress_spec": port},
        ["NoError"],
        {
            "start": State(
                "start",
                (Extract(header),),
                Select(
                    (Read(kind),),
                    (
                        ((KeysetValue(1),), "more"),
                        ((KeysetValue(2, 6),), "more"),
                        ((KeysetRange(8, 9),), "more"),
                        ((KeysetAny(),), "reject"),
                    ),
                ),
            ),
            "more": State("more", (), Goto("accept")),
        },
        ingress=(
            Block(
                "exit",
                (
                    RegisterRead(register, old, Read(kind)),
                    Assign(new, Binary("+", Read(old), Const(1, Bits(8)), Bits(8))),
                    RegisterWrite(register, Read(kind), Read(new)),
                    If(Read(valid), (Apply(table),), (Leave("exit"),)),
                ),
            ),
            Switch(Read(kind), (((1, 2), ()),), (Assign(kind, Const(16, Bits(8))),)),
        ),
        deparser=(Emit(header),),
        tables=[table],
        registers=[register],
    )
    assert (
        dump(program)
        == """\
program demo
errors NoError

header hdr.h (valid: hdr.h.$valid)
  bit<8> hdr.h.kind

packet variables
  bit<9> standard_metadata.egress_spec

register Ingress.seen: bit<8>[256]

table Ingress.route
  key kind: ternary = hdr.h.kind
  action 0 Ingress.forward(bit<9> port)
    standard_metadata.egress_spec = port
  action 1 drop()
  const default drop()
  entry 1: 0x1/0x3 -> Ingress.forward(9)
  size 64

parser
  state start
    extract hdr.h
    select hdr.h.kind
      0x1 -> more
      0x2 &&& 0x6 -> more
      0x8..0x9 -> more
      _ -> reject
  state more
    goto accept

verify

ingress
  local bit<8> tmp
  local bit<8> tmp~2
  local bit<9> port
  block exit
    tmp = Ingress.seen[hdr.h.kind]
    tmp~2 = (tmp + 8w1)
    Ingress.seen[hdr.h.kind] = tmp~2
    if hdr.h.$valid
      apply Ingress.route
    else
      leave exit
  switch hdr.h.kind
    case 1, 2
    default
      hdr.h.kind = 8w0x10

egress

compute

deparser
  emit hdr.h
"""
    )


def test_expressions_show_types_where_they_matter() -> None:
    var = Var("x", Bits(16, signed=True), "local")
    negative = Const(-3, Bits(16, signed=True))
    condition = Binary("<", Read(var), negative, BOOL)
    expr = Mux(condition, Slice(Read(var), 7, 0), Const(2, Bits(8)))
    assert format_expr(expr) == "((x < 16s-3) ? x[7:0] : 8w2)"
