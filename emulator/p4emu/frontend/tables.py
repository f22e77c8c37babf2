"""The parse tables of grammar.lark, in the form that the driving loop in parser.py wants.

lark reads the grammar and makes the LALR(1) tables; its own loop is not used, because P4 needs to
know all names declared so far before it can classify the next token, and lark's loop reads that
token first. `Tables.default` says in which states the next token does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from lark import Lark
from lark.lexer import Lexer
from lark.parsers.lalr_analysis import Shift

START = "p4program"
_GRAMMAR = Path(__file__).with_name("grammar.lark")


@dataclass(frozen=True, slots=True)
class Rule:
    """`name: size symbols -> action`; `action` None passes the value of the one symbol on."""

    name: str
    size: int
    action: str | None


@dataclass(frozen=True, slots=True)
class Tables:
    """LALR(1) tables; states and rules are numbers.

    An entry of `actions[state][terminal]` is the next state of a shift if it is not negative,
    else the complement (`~`) of the rule to reduce. `default[state]` is the action whatever the
    terminal, or None where it matters. `gotos[state][rule name]` is the state after a reduction.
    """

    rules: tuple[Rule, ...]
    actions: tuple[dict[str, int], ...]
    default: tuple[int | None, ...]
    gotos: tuple[dict[str, int], ...]
    start: int
    literals: dict[str, str]

    @property
    def text_of(self) -> dict[str, str]:
        """The fixed text of each terminal that has one."""
        return {kind: text for text, kind in self.literals.items()}


class _NoLexer(Lexer):
    """Stands in for lark's lexer, which would complain about terminals without a pattern."""

    def __init__(self, lexer_conf: Any) -> None:
        pass

    def lex(self, lexer_state: Any, parser_state: Any) -> Iterator[Any]:
        raise NotImplementedError("tokens come from p4emu.frontend.tokens")


@lru_cache(maxsize=1)
def load() -> Tables:
    """The tables; made once in a process, in about 0.2 s."""
    grammar = Lark(
        _GRAMMAR.read_text(encoding="utf-8"),
        parser="lalr",
        lexer=_NoLexer,
        start=START,
        maybe_placeholders=False,
    )
    table = grammar.parser.parser._parse_table
    states = sorted(table.states, key=lambda state: state != table.start_states[START])
    numbers = {state: number for number, state in enumerate(states)}
    rules: dict[Any, int] = {}
    actions: list[dict[str, int]] = []
    gotos: list[dict[str, int]] = []
    rule_names = {rule.origin.name for rule in grammar.rules}
    for state in states:
        action_row: dict[str, int] = {}
        goto_row: dict[str, int] = {}
        for symbol, (kind, argument) in table.states[state].items():
            if kind is Shift and symbol in rule_names:
                goto_row[symbol] = numbers[argument]
            elif kind is Shift:
                action_row[symbol] = numbers[argument]
            else:
                action_row[symbol] = ~rules.setdefault(argument, len(rules))
        actions.append(action_row)
        gotos.append(goto_row)
    return Tables(
        rules=tuple(
            Rule(
                str(rule.origin.name),
                len(rule.expansion),
                str(rule.alias) if rule.alias else None,
            )
            for rule in rules
        ),
        actions=tuple(actions),
        default=tuple(_default(row) for row in actions),
        gotos=tuple(gotos),
        start=numbers[table.start_states[START]],
        literals={t.pattern.value: t.name for t in grammar.terminals if t.pattern is not None},
    )


def _default(row: dict[str, int]) -> int | None:
    """The reduction that a state makes for every terminal it knows, if there is only that one.

    A wrong terminal is then found after the reduction, but before it is consumed.
    """
    choices = set(row.values())
    if len(choices) == 1:
        choice = choices.pop()
        return choice if choice < 0 else None
    return None
