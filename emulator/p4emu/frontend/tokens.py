"""Text to tokens. Names are not yet told from type names: that takes the parser's scopes.

The only regular expressions over program text are the token definitions here.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from p4emu.frontend.diagnostics import Diagnostics
from p4emu.frontend.preprocess import Preprocessed
from p4emu.frontend.source import Source

NAME = "NAME"
"""Kind of identifiers before the parser classifies them."""
INTEGER = "INTEGER"
STRING_LITERAL = "STRING_LITERAL"
ANNOTATION_NAME = "ANNOTATION_NAME"
ANNOTATION_BODY = "ANNOTATION_BODY"
END = "$END"


class Token(NamedTuple):
    """A token; `body` has the tokens between the parentheses of an ANNOTATION_BODY."""

    kind: str
    text: str
    source: Source
    body: tuple[Token, ...] = ()


_SPACE = r"(?P<space>\s+|//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/)"
_NAME = r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
_INTEGER = (
    r"(?P<integer>(?:[0-9]+[ws])?"
    r"(?:0[xX][0-9a-fA-F_]+|0[dD][0-9_]+|0[oO][0-7_]+|0[bB][01_]+|[0-9][0-9_]*)(?![0-9A-Za-z_]))"
)
_STRING = r'(?P<string>"(?:[^"\\\n]|\\.)*")'
_BAD_NUMBER = r"(?P<number>[0-9][0-9A-Za-z_]*)"


class Lexer:
    """Cuts text into tokens, given the terminals of the grammar that are fixed texts.

    Parameters
    ----------
    literals
        Kind of token by its text, for keywords and punctuation.
    """

    def __init__(self, literals: dict[str, str]) -> None:
        self._kinds = literals
        symbols = sorted((t for t in literals if not t[0].isalpha() and t != "_"), key=len)
        punctuation = "|".join(re.escape(text) for text in reversed(symbols))
        self._pattern = re.compile(
            "|".join((_SPACE, _NAME, _INTEGER, f"(?P<symbol>{punctuation})", _STRING, _BAD_NUMBER))
            + r"|(?P<bad>.)",
            re.DOTALL,
        )

    def tokens(
        self, preprocessed: Preprocessed, path: str, diagnostics: Diagnostics
    ) -> list[Token]:
        """All tokens and one of kind END; raises CompileError for text that is no token."""
        text = preprocessed.text
        segments = preprocessed.segments
        kinds = self._kinds
        tokens: list[Token] = []
        index = -1
        limit = segments[0].start if segments else 0
        start, (file, line, column, _), macro = 0, Source(path, 1, 1), False
        for match in self._pattern.finditer(text):
            group = match.lastgroup
            if group == "space":
                continue
            offset = match.start()
            while offset >= limit and index + 1 < len(segments):
                index += 1
                segment = segments[index]
                start, macro = segment.start, segment.from_macro
                file, line, column, _ = segment.source
                limit = segments[index + 1].start if index + 1 < len(segments) else len(text) + 1
            value = match.group()
            if macro:
                source = segments[index].source
            else:
                source = Source(file, line, column + offset - start, len(value))
            if group == "name":
                tokens.append(Token(kinds.get(value, NAME), value, source))
            elif group == "symbol":
                tokens.append(Token(kinds[value], value, source))
            elif group == "integer":
                tokens.append(Token(INTEGER, value, source))
            elif group == "string":
                tokens.append(Token(STRING_LITERAL, _unescape(value[1:-1]), source))
            else:
                _report(diagnostics, group or "", value, source)
        diagnostics.check()
        last = tokens[-1].source if tokens else Source(path, 1, 1)
        tokens.append(Token(END, "", last))
        return _annotations(tokens, diagnostics)


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    characters = iter(text)
    result = []
    for character in characters:
        if character == "\\":
            following = next(characters)
            result.append({"n": "\n", "t": "\t", "r": "\r"}.get(following, following))
        else:
            result.append(character)
    return "".join(result)


def _report(diagnostics: Diagnostics, group: str, value: str, source: Source) -> None:
    if group == "number":
        diagnostics.error(
            source, f"'{value}' is not a number", "numbers look like 10, 0x1f, 8w255 or 4s0b1010"
        )
    elif value == '"':
        diagnostics.error(source, "string without an end on the same line")
    elif value == "/":
        diagnostics.error(source, "comment without an end")
    else:
        diagnostics.error(source, f"character {value!r} does not belong in a P4 program")


def _annotations(tokens: list[Token], diagnostics: Diagnostics) -> list[Token]:
    """Make one token of an annotation's name, whatever its kind, and one of its body."""
    if not any(token.text == "@" and token.kind != STRING_LITERAL for token in tokens):
        return tokens
    result: list[Token] = []
    i = 0
    while i < len(tokens):
        token = tokens[i]
        result.append(token)
        i += 1
        if token.text != "@" or token.kind == STRING_LITERAL:
            continue
        name = tokens[i]
        if name.kind in (END, STRING_LITERAL, INTEGER) or not (
            name.text[0].isalpha() or name.text[0] == "_"
        ):
            continue
        result.append(name._replace(kind=ANNOTATION_NAME))
        i += 1
        if tokens[i].text != "(" or tokens[i].kind == STRING_LITERAL:
            continue
        opening = i
        depth = 0
        while True:
            kind, text = tokens[i].kind, tokens[i].text
            if kind == END:
                diagnostics.fatal(tokens[opening].source, "'(' of an annotation is never closed")
            if kind != STRING_LITERAL:
                depth += (text == "(") - (text == ")")
            i += 1
            if depth == 0:
                break
        body = tuple(tokens[opening + 1 : i - 1])
        result.append(Token(ANNOTATION_BODY, "(", tokens[opening].source, body))
    return result
