"""Tokens to syntax tree: the loop that drives the LALR tables, and what it says about mistakes.

The loop differs from the textbook's in three ways, all because of P4:
- it reduces without looking at the next token where the table allows, and classifies a name as
  IDENTIFIER or TYPE_IDENTIFIER only when the table asks for it, so every declaration before the
  name has taken effect;
- "<" becomes L_ANGLE_ARGS where type arguments of a call begin: what follows starts a type and is
  not the `T.member` of an expression;
- ">>" is split where one ">" fits and two do not.

After a mistake it skips the top-level declaration with it and goes on, so that a program's
mistakes are reported together.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from p4emu.frontend import ast
from p4emu.frontend.build import Builder
from p4emu.frontend.diagnostics import Diagnostics, listing, similar
from p4emu.frontend.scopes import TypeNames
from p4emu.frontend.source import Source
from p4emu.frontend.tables import Tables
from p4emu.frontend.tokens import END, NAME, Token

MAX_STACK = 1000
"""Symbols on the parse stack: about a hundred blocks or three hundred parentheses in each other."""

_TYPE_KEYWORDS = frozenset(
    {"bit", "int", "varbit", "bool", "string", "void", "tuple", "list", "match_kind", "_"}
)
_AFTER_TYPES = (".", "(", "<")
_TYPE_DECLARATIONS = frozenset(
    {"struct", "header", "header_union", "control", "parser", "package", "extern"}
)


class Parser:
    """Parses one program.

    Parameters
    ----------
    tables
        Of the grammar.
    tokens
        The whole program; the last is of kind END.
    diagnostics
        Gets syntax errors.
    """

    def __init__(self, tables: Tables, tokens: list[Token], diagnostics: Diagnostics) -> None:
        self._tables = tables
        self._tokens = tokens
        self._diagnostics = diagnostics
        self._names = TypeNames()
        self._builder = Builder(self._names, diagnostics)
        self._less = tables.literals["<"]
        self._greater = tables.literals[">"]
        self._shift = tables.literals[">>"]

    def parse(self) -> ast.Program:
        """The syntax tree; raises CompileError if there were syntax errors."""
        tables, tokens, names = self._tables, self._tokens, self._names
        actions, default, gotos = tables.actions, tables.default, tables.gotos
        rules = [
            (rule.size, rule.name, getattr(self._builder, rule.action) if rule.action else None)
            for rule in tables.rules
        ]
        less, shift, greater = self._less, self._shift, self._greater
        states: list[int] = [tables.start]
        values: list[Any] = []
        state = tables.start
        position = 0
        declaration_start = 0
        while True:
            action = default[state]
            if action is None:
                token = tokens[position]
                kind = token.kind
                row = actions[state]
                if kind == NAME:
                    kind = "TYPE_IDENTIFIER" if token.text in names else "IDENTIFIER"
                elif kind == less and "L_ANGLE_ARGS" in row and self._starts_type(position + 1):
                    kind = "L_ANGLE_ARGS"
                action = row.get(kind)
                if action is None:
                    if kind == END and len(states) == 2:
                        self._diagnostics.check()
                        return ast.Program(Source(token.source.file, 1, 1), tuple(values[0]))
                    if kind == shift and greater in row:
                        self._split(position)
                        continue
                    self._report(states, position)
                    position = self._end_of_declaration(declaration_start, position)
                    self._rescue(declaration_start, position)
                    del states[2:], values[1:]
                    state = states[-1]
                    declaration_start = position
                    continue
                if action >= 0:
                    position += 1
                    values.append(token)
                    states.append(action)
                    state = action
                    if len(states) > MAX_STACK:
                        self._diagnostics.fatal(token.source, "program is nested too deeply here")
                    continue
            size, name, build = rules[~action]
            if build is None:
                # One symbol: its value is the rule's.
                state = gotos[states[-2]][name]
                states[-1] = state
                continue
            if size:
                arguments = values[-size:]
                del values[-size:], states[-size:]
                value = build(arguments)
            else:
                value = build(())
            state = gotos[states[-1]][name]
            states.append(state)
            values.append(value)
            if len(states) == 2:
                declaration_start = position

    # --- classification

    def _starts_type(self, position: int) -> bool:
        """Whether a type, and nothing that is also an expression, starts at this token."""
        token = self._tokens[position]
        following = self._tokens[min(position + 1, len(self._tokens) - 1)]
        if token.text in _TYPE_KEYWORDS:
            return True
        if token.text == "." and following.kind == NAME:
            position += 1
            token = following
            following = self._tokens[min(position + 1, len(self._tokens) - 1)]
        if token.text == "error":
            return following.text != "."
        # A constructor call cannot be compared with anything, so "(" needs no thought.
        return token.kind == NAME and token.text in self._names and following.text != "."

    def _split(self, position: int) -> None:
        token = self._tokens[position]
        first, second = token.source._replace(length=1), token.source
        self._tokens[position : position + 1] = [
            Token(self._greater, ">", first),
            Token(self._greater, ">", second._replace(column=second.column + 1, length=1)),
        ]

    # --- mistakes

    def _report(self, states: list[int], position: int) -> None:
        token = self._tokens[position]
        previous = self._tokens[position - 1] if position else None
        expected = self._expected(states)
        if (
            token.kind == NAME
            and previous is not None
            and previous.kind == NAME
            and previous.text not in self._names
        ):
            self._diagnostics.error(
                previous.source,
                f"'{previous.text}' is not the name of a type",
                *similar(previous.text, self._names.names),
            )
            return
        source = token.source
        if token.kind == END:
            found = "the end of the file"
        elif token.kind == "STRING_LITERAL":
            found = "a string"
        else:
            found = f"'{token.text}'"
        if token.kind == NAME and "TYPE_IDENTIFIER" in expected and "IDENTIFIER" not in expected:
            self._diagnostics.error(
                source,
                f"'{token.text}' is not the name of a type",
                *similar(token.text, self._names.names),
            )
            return
        if (
            previous is not None
            and previous.kind == NAME
            and previous.text in self._names
            and expected <= {*map(self._tables.literals.__getitem__, _AFTER_TYPES), "L_ANGLE_ARGS"}
        ):
            self._diagnostics.error(
                previous.source, f"'{previous.text}' is the name of a type, not a value"
            )
            return
        if token.text in self._names and "IDENTIFIER" in expected:
            found = f"'{token.text}', which is the name of a type"
        hints: tuple[str, ...] = ()
        if (
            previous is not None
            and expected & {self._tables.literals[";"]}
            and previous.source.line < source.line
        ):
            # What is missing belongs behind the last token, not before this one.
            hints = ("a ';' is missing at the end of the line before",)
        words = describe(expected, self._tables)
        self._diagnostics.error(source, f"expected {words}, found {found}", *hints)

    def _expected(self, states: list[int]) -> set[str]:
        """The terminals that could come next, by trying what each would lead to."""
        return {
            terminal
            for terminal in self._tables.actions[states[-1]]
            if self._accepts(states, terminal)
        }

    def _accepts(self, states: list[int], terminal: str) -> bool:
        tables = self._tables
        stack = list(states)
        while True:
            action = tables.actions[stack[-1]].get(terminal)
            if action is None:
                return False
            if action >= 0:
                return True
            rule = tables.rules[~action]
            if rule.size:
                del stack[-rule.size :]
            stack.append(tables.gotos[stack[-1]][rule.name])

    def _end_of_declaration(self, start: int, error: int) -> int:
        """Where to go on: behind the top-level declaration that has the mistake at `error`."""
        depth = 0
        for position in range(start, len(self._tokens)):
            token = self._tokens[position]
            if token.kind == END:
                return position
            if token.kind == "STRING_LITERAL":
                continue
            if token.text in ("{", "("):
                depth += 1
            elif token.text in ("}", ")"):
                depth -= 1
            ends = token.text == ";" or token.text == "}"
            if ends and depth <= 0 and position >= error:
                return position + 1
        return len(self._tokens) - 1

    def _rescue(self, start: int, end: int) -> None:
        """Declare what the skipped tokens would have, so that its uses are not reported too."""
        self._names.close_all()
        head = self._tokens[start:end]
        while head and head[0].text == "@":
            head = head[2:] if len(head) < 3 or head[2].kind != "ANNOTATION_BODY" else head[3:]
        if not head:
            return
        if head[0].text in _TYPE_DECLARATIONS or head[0].text == "enum":
            for token, following in pairwise(head[1:]):
                if token.kind == NAME and following.text in ("{", "(", "<"):
                    self._names.declare_type(token.text)
                    return
        elif head[0].text in ("typedef", "type"):
            named = [token for token in head if token.kind == NAME]
            if named:
                self._names.declare_type(named[-1].text)


# Groups of terminals as a reader thinks of them: the word, terminals that all must be possible for
# it to be used, and the terminals that it then stands for.
_GROUPS = (
    (
        "a declaration",
        "control parser struct typedef",
        "control parser struct header header_union typedef type enum extern package const action"
        " error match_kind @ IDENTIFIER TYPE_IDENTIFIER . bit bool int string tuple list varbit"
        " void ;",
    ),
    (
        "a statement",
        "if switch return",
        "if switch return exit break continue for { ( ; @ . this const IDENTIFIER"
        " TYPE_IDENTIFIER bit bool int string tuple list varbit error match_kind actions apply"
        " entries key priority state type",
    ),
    (
        "an expression",
        "INTEGER true ~",
        "INTEGER STRING_LITERAL true false this ( { {#} ! ~ - + . error IDENTIFIER"
        " TYPE_IDENTIFIER actions apply entries key priority state type ...",
    ),
    (
        "a type",
        "bit bool tuple",
        "bit bool int string tuple list varbit error match_kind void TYPE_IDENTIFIER .",
    ),
    (
        "an operator",
        "+ * ==",
        "+ - * / % |+| |-| ++ & | ^ << >> == != < <= > >= && || ? . [ ( L_ANGLE_ARGS",
    ),
    (
        "a name",
        "IDENTIFIER apply key",
        "IDENTIFIER TYPE_IDENTIFIER list actions apply entries key priority state type",
    ),
    (
        "an assignment",
        "= += |+|=",
        "= *= /= %= += -= |+|= |-|= <<= >>= &= |= ^= . [",
    ),
)

_WORDS = {
    "IDENTIFIER": "a name",
    "TYPE_IDENTIFIER": "the name of a type",
    "INTEGER": "a number",
    "STRING_LITERAL": "a string",
    "ANNOTATION_NAME": "the name of an annotation",
    "ANNOTATION_BODY": "'('",
    "L_ANGLE_ARGS": "'<'",
    END: "the end of the file",
}


def describe(expected: set[str], tables: Tables) -> str:
    """Terminals in plain words: groups where they apply, then the rest quoted."""
    texts = tables.text_of
    left = {texts.get(kind, kind) for kind in expected}
    words: list[str] = []
    for word, sign, members in _GROUPS:
        if left.issuperset(sign.split()):
            words.append(word)
            left.difference_update(members.split())
    words += sorted({_WORDS.get(text, f"'{text}'") for text in left})
    if len(words) > 7:
        words = [*words[:6], "something else"]
    return listing(words) or "nothing more"
