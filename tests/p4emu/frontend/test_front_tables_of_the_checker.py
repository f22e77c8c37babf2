"""The side tables: what lowering reads about names, calls, constructions and tables."""

from __future__ import annotations

from front_rig import accepted, in_control, in_parser, nodes

from p4emu.frontend import ast
from p4emu.frontend.program import (
    ActionCall,
    BlockApply,
    BuiltinCall,
    ExternFunctionCall,
    ExternMethodCall,
    FunctionCall,
    TableApply,
)
from p4emu.frontend.types import BitsType, ControlType, ExternType, ParserType, StructType


def test_the_package_lists_its_blocks_with_the_types_inferred() -> None:
    program = accepted(in_control(""))
    assert program.main is not None
    package = program.construction(program.main)
    assert [str(a) for a in package.type.arguments] == ["headers_t", "meta_t"]
    kinds = []
    for argument in package.arguments:
        assert isinstance(argument.value, ast.ConstructorCallExpression)
        made = program.construction(argument.value)
        assert isinstance(made.type, ParserType | ControlType)
        kinds.append((argument.parameter.name, made.type.name))
    assert kinds == [("p", "P"), ("vr", "V"), ("ig", "I"), ("eg", "E"), ("ck", "V"), ("dep", "D")]


def test_calls_know_what_they_call() -> None:
    program = accepted(
        in_control(
            "a(1); meta.a = twice(meta.a); mark_to_drop(standard); t.apply(); sub.apply(meta.a);"
            " r.read(meta.wide, 0); hdr.eth.setValid(); hdr.stack.push_front(1);"
            " Sub.apply(meta.a);",
            "action a(bit<8> x) { meta.a = x; } table t { actions = { NoAction; } }"
            " Sub() sub; register<bit<32>>(8) r;",
        ).replace(
            "control I",
            "bit<8> twice(in bit<8> x) { return x + x; }\n"
            "control Sub(inout bit<8> x) { apply { x = x + 1; } }\ncontrol I",
        )
    )
    calls = [program.call(c) for c in nodes(program, ast.CallExpression)]
    kinds = [type(c) for c in calls]
    assert kinds == [
        ActionCall, FunctionCall, ExternFunctionCall, TableApply, BlockApply, ExternMethodCall,
        BuiltinCall, BuiltinCall, BlockApply,
    ]  # fmt: skip
    read = calls[5]
    assert isinstance(read, ExternMethodCall)
    assert read.type.arguments == (BitsType(32),)
    assert [(a.parameter.name, str(a.parameter.type)) for a in read.arguments] == [
        ("result", "bit<32>"),
        ("index", "bit<32>"),
    ]
    assert calls[8].instance is None  # type: ignore[union-attr]


def test_overloads_are_told_apart_by_their_arguments() -> None:
    program = accepted(
        in_parser(
            "state start { packet.extract(hdr.eth); packet.extract(hdr.opt, 8);"
            " transition accept; }"
        )
    )
    one, two = (program.call(c) for c in nodes(program, ast.CallExpression))
    assert isinstance(one, ExternMethodCall)
    assert isinstance(two, ExternMethodCall)
    assert (len(one.method.parameters), len(two.method.parameters)) == (1, 2)
    assert isinstance(one.type_arguments[0], StructType)


def test_named_arguments_go_to_their_parameters() -> None:
    program = accepted(
        in_control("r.read(index = 1, result = meta.wide);", "register<bit<32>>(8) r;")
    )
    (call,) = (program.call(c) for c in nodes(program, ast.CallExpression))
    assert isinstance(call, ExternMethodCall)
    first, second = call.arguments
    assert isinstance(first.value, ast.MemberExpression)
    assert isinstance(second.value, ast.IntLiteral)
    assert program.type_of(second.value) == BitsType(32)


def test_lists_are_converted_part_by_part() -> None:
    program = accepted(in_control("hdr.eth = { 1, 2, 3 };"))
    (expression,) = nodes(program, ast.ListExpression)
    assert str(program.own_type(expression)) == "tuple<int, int, int>"
    assert str(program.type_of(expression)) == "eth_t"
    assert [str(program.type_of(e)) for e in expression.elements] == [
        "bit<48>",
        "bit<48>",
        "bit<16>",
    ]
    assert program.constant(expression) == (1, 2, 3)


def test_tables_have_their_parts_resolved() -> None:
    program = accepted(
        in_control(
            "switch (t.apply().action_run) { a: { meta.a = 1; } default: {} }"
            " if (t.apply().hit) { meta.a = 2; }",
            "action a(inout bit<8> place, bit<8> x) { place = x; }"
            "table t { key = { meta.wide: ternary; meta.a: exact; }"
            " actions = { a(meta.a); NoAction; }"
            " default_action = a(meta.a, 5); const entries = { (1 &&& 3, 2): a(meta.a, 7); } }",
        )
    )
    (declaration,) = nodes(program, ast.TableDeclaration)
    table = program.table(declaration)
    assert [(str(k.type), k.match_kind) for k in table.keys] == [
        ("bit<32>", "ternary"),
        ("bit<8>", "exact"),
    ]
    assert [c.action.name for c in table.actions] == ["a", "NoAction"]
    assert table.actions[0].arguments[0].value is not None
    assert table.actions[0].arguments[1].value is None
    assert table.default is not None
    assert program.constant(table.default.arguments[1].value) == 5  # type: ignore[arg-type]
    (entry,) = table.entries
    assert isinstance(entry.keysets[0], ast.MaskExpression)
    assert program.constant(entry.keysets[0].mask) == 3
    assert program.type_of(entry.keysets[0].mask) == BitsType(32)
    assert table.const_entries
    assert not table.const_default


def test_constructor_parameters_reach_the_instance() -> None:
    program = accepted(
        in_control("sub.apply(meta.wide);", "Sub(16, r) sub;").replace(
            "control I",
            "register<bit<32>>(8) r;\ncontrol Sub(inout bit<32> x)(bit<32> n, register<bit<32>> q)"
            " { register<bit<32>>(n) own; apply { q.read(x, n); } }\ncontrol I",
        )
    )
    sub = next(i for i in nodes(program, ast.Instantiation) if i.name == "sub")
    made = program.construction(sub)
    assert [a.parameter.name for a in made.arguments] == ["n", "q"]
    assert program.constant(made.arguments[0].value) == 16  # type: ignore[arg-type]
    assert isinstance(made.arguments[1].parameter.type, ExternType)


def test_checking_is_deterministic() -> None:
    text = in_control("meta.a = 1 + meta.a;")
    first, second = accepted(text), accepted(text)
    assert first.errors == second.errors
    assert [type(d) for d in first.program.declarations] == [
        type(d) for d in second.program.declarations
    ]
