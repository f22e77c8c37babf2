"""The syntax tree's construction: one method for each action that grammar.lark names.

A method gets the values of all symbols of its rule, tokens included, and returns the rule's value:
a node, or a list of nodes that the enclosing rule makes a tuple of. Methods of `_head` rules also
declare names and open scopes for the parser. `Builder` is the parser's and nobody else's.

Statements and declarations only; expressions and types are in build_expressions.py.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from p4emu.frontend import ast
from p4emu.frontend.build_expressions import ExpressionBuilder
from p4emu.frontend.tokens import Token

Values = Any
"""The values of a rule's symbols; what they are, the rule in grammar.lark says."""


class Builder(ExpressionBuilder):
    """Actions for declarations, statements and tables."""

    # --- annotations

    def annotated(self, v: Values) -> Any:
        annotations, node = v
        if not hasattr(node, "annotations"):
            self.diagnostics.error(
                annotations[0].source, "an annotation cannot stand here", "remove it"
            )
            return node
        return dataclasses.replace(node, annotations=tuple(annotations))

    def annotation(self, v: Values) -> ast.Annotation:
        return ast.Annotation(v[1].source, v[1].text)

    def unstructured_annotation(self, v: Values) -> ast.Annotation:
        tokens = tuple(ast.AnnotationToken(t.source, t.kind, t.text) for t in v[2].body)
        return ast.Annotation(v[1].source, v[1].text, tokens)

    def list_annotation(self, v: Values) -> ast.Annotation:
        return ast.Annotation(v[1].source, v[1].text, expressions=tuple(v[3]), structured=True)

    def kv_annotation(self, v: Values) -> ast.Annotation:
        return ast.Annotation(v[1].source, v[1].text, pairs=tuple(v[3]), structured=True)

    # --- parameters

    def parameter(self, v: Values) -> ast.Parameter:
        annotations, direction, type_, name = v[:4]
        self.names.declare_object(name.text)
        default = v[5] if len(v) > 4 else None
        return ast.Parameter(name.source, tuple(annotations), direction, type_, name.text, default)

    default_parameter = parameter

    def no_direction(self, v: Values) -> str:
        return ""

    def text(self, v: Values) -> str:
        return str(v[0].text)

    def first_type_parameter(self, v: Values) -> list[ast.TypeParameter]:
        return [ast.TypeParameter(v[0].source, v[0].text)]

    def more_type_parameters(self, v: Values) -> list[ast.TypeParameter]:
        v[0].append(ast.TypeParameter(v[2].source, v[2].text))
        return list(v[0])

    # --- scopes and heads

    def close_scope(self, v: Values) -> Any:
        self.names.close()
        return v[0]

    def block_head_named(self, v: Values) -> Values:
        """A type of its own, then a scope with the type parameters."""
        self.names.declare_type(v[1].text)
        self.names.open()
        for parameter in v[2]:
            self.names.declare_type(parameter.name)
        return v

    struct_head = block_head_named
    extern_head = block_head_named

    def enum_head(self, v: Values) -> Values:
        self.names.declare_type(v[-1].text)
        return v

    typed_enum_head = enum_head

    def function_head(self, v: Values) -> Values:
        self.names.declare_object(v[1].text)
        self.names.open()
        for parameter in v[2]:
            self.names.declare_type(parameter.name)
        return v

    def action_head(self, v: Values) -> Token:
        self.names.declare_object(v[1].text)
        self.names.open()
        return v[1]  # type: ignore[no-any-return]

    def state_head(self, v: Values) -> Token:
        self.names.open()
        return v[1]  # type: ignore[no-any-return]

    def block_head(self, v: Values) -> Token:
        self.names.open()
        return v[0]  # type: ignore[no-any-return]

    # --- type declarations

    def struct_type_declaration(self, v: Values) -> ast.StructDeclaration:
        self.names.close()
        kind, name, parameters = v[0]
        return ast.StructDeclaration(
            name.source, (), kind.text, name.text, tuple(parameters), tuple(v[2])
        )

    def struct_field(self, v: Values) -> ast.StructField:
        return ast.StructField(v[2].source, tuple(v[0]), v[1], v[2].text)

    def enum_declaration(self, v: Values) -> ast.EnumDeclaration:
        name = v[0][1]
        return ast.EnumDeclaration(name.source, (), name.text, None, tuple(v[2]))

    def typed_enum_declaration(self, v: Values) -> ast.EnumDeclaration:
        _, underlying, name = v[0]
        return ast.EnumDeclaration(name.source, (), name.text, underlying, tuple(v[2]))

    def first_identifier(self, v: Values) -> list[ast.EnumMember]:
        return [ast.EnumMember(v[0].source, v[0].text)]

    def more_identifiers(self, v: Values) -> list[ast.EnumMember]:
        v[0].append(ast.EnumMember(v[2].source, v[2].text))
        return v[0]  # type: ignore[no-any-return]

    def specified_identifier(self, v: Values) -> ast.EnumMember:
        return ast.EnumMember(v[0].source, v[0].text, v[2])

    def error_declaration(self, v: Values) -> ast.ErrorDeclaration:
        return ast.ErrorDeclaration(v[0].source, tuple(v[2]))

    def match_kind_declaration(self, v: Values) -> ast.MatchKindDeclaration:
        return ast.MatchKindDeclaration(v[0].source, tuple(v[2]))

    def typedef_declaration(self, v: Values) -> ast.TypedefDeclaration:
        self.names.declare_type(v[2].text)
        return ast.TypedefDeclaration(v[2].source, (), v[1], v[2].text)

    def newtype_declaration(self, v: Values) -> ast.NewtypeDeclaration:
        self.names.declare_type(v[2].text)
        return ast.NewtypeDeclaration(v[2].source, (), v[1], v[2].text)

    # --- externs, functions, packages

    def extern_declaration(self, v: Values) -> ast.ExternDeclaration:
        self.names.close()
        _, name, parameters = v[0]
        return ast.ExternDeclaration(name.source, (), name.text, tuple(parameters), tuple(v[2]))

    def function_prototype(self, v: Values) -> ast.MethodPrototype:
        return_type, name, type_parameters = v[0]
        return ast.MethodPrototype(
            name.source, (), return_type, name.text, tuple(type_parameters), tuple(v[2])
        )

    def method(self, v: Values) -> ast.MethodPrototype:
        self.names.close()
        return v[0]  # type: ignore[no-any-return]

    def extern_function(self, v: Values) -> ast.MethodPrototype:
        self.names.close()
        return v[1]  # type: ignore[no-any-return]

    def abstract_method(self, v: Values) -> ast.MethodPrototype:
        self.names.close()
        prototype: ast.MethodPrototype = v[1]
        return dataclasses.replace(prototype, abstract=True)

    def constructor(self, v: Values) -> ast.MethodPrototype:
        return ast.MethodPrototype(v[0].source, (), None, v[0].text, (), tuple(v[2]))

    def function_declaration(self, v: Values) -> ast.FunctionDeclaration:
        self.names.close()
        head: ast.MethodPrototype = v[0]
        assert head.return_type is not None
        return ast.FunctionDeclaration(
            head.source,
            (),
            head.return_type,
            head.name,
            head.type_parameters,
            head.parameters,
            v[1],
        )

    def package_declaration(self, v: Values) -> ast.PackageDeclaration:
        _, name, type_parameters = v[0]
        return ast.PackageDeclaration(
            name.source, (), name.text, tuple(type_parameters), tuple(v[2])
        )

    def instantiation(self, v: Values) -> ast.Instantiation:
        type_, _, arguments, _, name, members, _ = v
        self.names.declare_object(name.text)
        return ast.Instantiation(
            name.source, (), type_, tuple(arguments), name.text, tuple(members)
        )

    # --- parsers

    def parser_type_declaration(self, v: Values) -> ast.ParserTypeDeclaration:
        _, name, type_parameters = v[0]
        return ast.ParserTypeDeclaration(
            name.source, (), name.text, tuple(type_parameters), tuple(v[2])
        )

    def parser_declaration(self, v: Values) -> ast.ParserDeclaration:
        self.names.close()
        head: ast.ParserTypeDeclaration = v[0]
        return ast.ParserDeclaration(
            head.source,
            (),
            head.name,
            head.type_parameters,
            head.parameters,
            tuple(v[1]),
            tuple(v[3]),
            tuple(v[4]),
        )

    def value_set_declaration(self, v: Values) -> ast.ValueSetDeclaration:
        self.names.declare_object(v[7].text)
        return ast.ValueSetDeclaration(v[7].source, (), v[2], v[5], v[7].text)

    def parser_state(self, v: Values) -> ast.ParserState:
        self.names.close()
        name, statements, transition, _ = v
        return ast.ParserState(name.source, (), name.text, tuple(statements), transition)

    def direct_transition(self, v: Values) -> ast.DirectTransition:
        return ast.DirectTransition(v[1].source, v[1].text)

    def select_expression(self, v: Values) -> ast.SelectTransition:
        return ast.SelectTransition(v[0].source, tuple(v[2]), tuple(v[5]))

    def select_case(self, v: Values) -> ast.SelectCase:
        return ast.SelectCase(v[2].source, v[0], v[2].text)

    # --- controls and tables

    def control_type_declaration(self, v: Values) -> ast.ControlTypeDeclaration:
        _, name, type_parameters = v[0]
        return ast.ControlTypeDeclaration(
            name.source, (), name.text, tuple(type_parameters), tuple(v[2])
        )

    def control_declaration(self, v: Values) -> ast.ControlDeclaration:
        self.names.close()
        head: ast.ControlTypeDeclaration = v[0]
        return ast.ControlDeclaration(
            head.source,
            (),
            head.name,
            head.type_parameters,
            head.parameters,
            tuple(v[1]),
            tuple(v[3]),
            v[5],
        )

    def action_declaration(self, v: Values) -> ast.ActionDeclaration:
        self.names.close()
        return ast.ActionDeclaration(v[0].source, (), v[0].text, tuple(v[2]), v[4])

    def table_declaration(self, v: Values) -> ast.TableDeclaration:
        self.names.declare_object(v[1].text)
        return ast.TableDeclaration(v[1].source, (), v[1].text, tuple(v[3]))

    def key_property(self, v: Values) -> ast.KeyProperty:
        return ast.KeyProperty(v[0].source, tuple(v[3]))

    def key_element(self, v: Values) -> ast.KeyElement:
        return ast.KeyElement(v[2].source, tuple(v[3]), v[0], v[2].text)

    def actions_property(self, v: Values) -> ast.ActionsProperty:
        return ast.ActionsProperty(v[0].source, tuple(v[3]))

    def more_actions(self, v: Values) -> list[ast.ActionRef]:
        v[0].append(dataclasses.replace(v[2], annotations=tuple(v[1])) if v[1] else v[2])
        return v[0]  # type: ignore[no-any-return]

    def action_ref(self, v: Values) -> ast.ActionRef:
        return ast.ActionRef(v[0].source, (), v[0], tuple(v[2]) if len(v) > 1 else None)

    def entries_property(self, v: Values) -> ast.EntriesProperty:
        return ast.EntriesProperty(v[1].source, v[0] is not None, tuple(v[4]))

    def entry(self, v: Values) -> ast.Entry:
        const, keyset, _, action, annotations, _ = v
        return ast.Entry(keyset.source, tuple(annotations), const is not None, None, keyset, action)

    def priority_entry(self, v: Values) -> ast.Entry:
        const, priority, keyset, _, action, annotations, _ = v
        return ast.Entry(
            keyset.source, tuple(annotations), const is not None, priority, keyset, action
        )

    def integer_priority(self, v: Values) -> ast.IntLiteral:
        return self.integer([v[2]])

    def expression_priority(self, v: Values) -> ast.Expression:
        return v[3]  # type: ignore[no-any-return]

    def table_property(self, v: Values) -> ast.TableProperty:
        const, name = v[:2]
        value: Any = v[3]
        if name.text != "default_action":
            return ast.CustomProperty(name.source, (), const is not None, name.text, value)
        arguments: tuple[ast.Argument, ...] | None = None
        if isinstance(value, ast.CallExpression) and not value.type_arguments:
            arguments = value.arguments
            value = value.callee
        if not isinstance(value, ast.PathExpression):
            self.diagnostics.error(
                value.source,
                "default_action expects an action of the table, with or without arguments",
            )
            value = ast.PathExpression(value.source, "NoAction")
        action = ast.ActionRef(value.source, (), value, arguments)
        return ast.DefaultActionProperty(name.source, const is not None, action)

    # --- statements

    def block_statement(self, v: Values) -> ast.BlockStatement:
        self.names.close()
        return ast.BlockStatement(v[0].source, (), tuple(v[1]))

    def empty_statement(self, v: Values) -> ast.EmptyStatement:
        return ast.EmptyStatement(v[0].source)

    def return_statement(self, v: Values) -> ast.ReturnStatement:
        return ast.ReturnStatement(v[0].source, v[1] if len(v) == 3 else None)

    def break_statement(self, v: Values) -> ast.BreakStatement:
        return ast.BreakStatement(v[0].source)

    def continue_statement(self, v: Values) -> ast.ContinueStatement:
        return ast.ContinueStatement(v[0].source)

    def exit_statement(self, v: Values) -> ast.ExitStatement:
        return ast.ExitStatement(v[0].source)

    def call_statement(self, v: Values) -> ast.CallStatement:
        call = self.call(v)
        return ast.CallStatement(call.source, call)

    def generic_call_statement(self, v: Values) -> ast.CallStatement:
        call = self.generic_call(v)
        return ast.CallStatement(call.source, call)

    def direct_application(self, v: Values) -> ast.CallStatement:
        type_, _, apply, _, arguments, _, _ = v
        base = ast.TypeNameExpression(type_.source, type_)
        callee = ast.MemberExpression(apply.source, base, "apply")
        call = ast.CallExpression(type_.source, callee, (), tuple(arguments))
        return ast.CallStatement(type_.source, call)

    def assignment(self, v: Values) -> ast.AssignmentStatement:
        target, operator, value = v
        return ast.AssignmentStatement(operator.source, target, operator.text[:-1] or None, value)

    def conditional_statement(self, v: Values) -> ast.IfStatement:
        return ast.IfStatement(v[0].source, v[2], v[4], v[6] if len(v) == 7 else None)

    def switch_statement(self, v: Values) -> ast.SwitchStatement:
        return ast.SwitchStatement(v[0].source, v[2], tuple(v[5]))

    def switch_case(self, v: Values) -> ast.SwitchCase:
        return ast.SwitchCase(v[0].source, v[0], v[2] if len(v) == 3 else None)

    def for_statement(self, v: Values) -> ast.ForStatement:
        return ast.ForStatement(v[0].source, (), tuple(v[2]), v[4], tuple(v[6]), v[8])

    def for_in_statement(self, v: Values) -> ast.ForInStatement:
        variable = ast.VariableDeclaration(v[3].source, (), v[2], v[3].text, None)
        return ast.ForInStatement(v[0].source, (), variable, v[5], v[7])

    def annotated_for_in_statement(self, v: Values) -> ast.ForInStatement:
        plain = self.for_in_statement([v[0], v[1], *v[3:]])
        variable = dataclasses.replace(plain.variable, annotations=tuple(v[2]))
        return dataclasses.replace(plain, variable=variable)

    def variable_declaration(self, v: Values) -> ast.VariableDeclaration:
        self.names.declare_object(v[1].text)
        value = v[3] if len(v) == 4 else None
        return ast.VariableDeclaration(v[1].source, (), v[0], v[1].text, value)

    def constant_declaration(self, v: Values) -> ast.ConstantDeclaration:
        _, type_, name, _, value, _ = v
        self.names.declare_object(name.text)
        return ast.ConstantDeclaration(name.source, (), type_, name.text, value)
