"""Reads PostgreSQL's SQL as far as DDL needs it: tokens, single statements of a string, and their command tags.

It does not parse expressions. It knows what can hide a semicolon or a name: literals, quoted names, dollar quotes, nested
comments, parentheses and bodies between BEGIN ATOMIC and END (PostgreSQL's documentation, "Lexical Structure"; psql
splits its input by the same rules).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import Enum, auto
from typing import Final, NamedTuple


class TokenKind(Enum):
    """The kinds of tokens. NAME: an unquoted name or key word; QUOTED: a name in double quotes."""

    NAME = auto()
    QUOTED = auto()
    LITERAL = auto()
    OTHER = auto()


class Token(NamedTuple):
    """One token: ``text[start:end]`` of the string it was read from."""

    kind: TokenKind
    text: str
    start: int
    end: int

    @property
    def word(self) -> str:
        """The key word, in upper case; empty for anything but an unquoted name."""
        return self.text.upper() if self.kind is TokenKind.NAME else ""

    @property
    def name(self) -> str:
        """The name as the catalog holds it: folded to lower case unless quoted; empty if this is not a name."""
        if self.kind is TokenKind.QUOTED:
            return self.text[1:-1].replace('""', '"')
        return self.text.lower() if self.kind is TokenKind.NAME else ""


class Statement(NamedTuple):
    """One statement of a string, without its semicolon, and its tokens."""

    text: str
    tokens: tuple[Token, ...]


_TOKEN = re.compile(
    r"""
    (?P<space>\s+ | --[^\n]*)
  | (?P<comment>/\*)
  | (?P<literal>[eE]'(?:[^'\\]|\\.|'')*' | (?:[bBxXnN]|[uU]&)?'(?:[^']|'')*' | \d[\w.]*)
  | (?P<unicode>[uU]&"(?:[^"]|"")*")
  | (?P<quoted>"(?:[^"]|"")*")
  | (?P<dollar>\$(?:[A-Za-z_\x80-\U0010ffff][\w\x80-\U0010ffff]*)?\$)
  | (?P<name>[A-Za-z_\x80-\U0010ffff][\w$\x80-\U0010ffff]*)
  | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT = re.compile(r"/\*|\*/")
_KINDS = {
    "literal": TokenKind.LITERAL,
    "unicode": TokenKind.QUOTED,
    "quoted": TokenKind.QUOTED,
    "name": TokenKind.NAME,
    "other": TokenKind.OTHER,
}


def tokens(text: str) -> Iterator[Token]:
    """Return the tokens of a string, without spaces and comments.

    An unfinished literal, comment or dollar quote is read as ending with the string.
    """
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:  # every character matches
            raise ValueError(f"no token at {place}")
        kind, start, place = match.lastgroup or "", place, match.end()
        if kind == "comment":
            place = _comment_end(text, place)
        elif kind == "dollar":
            end = text.find(match[0], place)
            place = len(text) if end < 0 else end + len(match[0])
            yield Token(TokenKind.LITERAL, text[start:place], start, place)
        elif kind != "space":
            yield Token(_KINDS[kind], text[start:place], start, place)


def _comment_end(text: str, place: int) -> int:
    """Return the place after a comment, which may contain others."""
    depth = 1
    while depth:
        match = _COMMENT.search(text, place)
        if match is None:
            return len(text)
        depth += 1 if match[0] == "/*" else -1
        place = match.end()
    return place


def statements(text: str) -> list[Statement]:
    """Split a string into its statements; empty ones are left out."""
    found: list[Statement] = []
    current: list[Token] = []
    parentheses = body = 0
    for token in tokens(text):
        if token.text == ";" and not parentheses and not body:
            _close(text, current, found)
            current = []
            continue
        parentheses += (token.text in "([") - (token.text in ")]") if token.kind is TokenKind.OTHER else 0
        if body:
            body += (token.word == "CASE") - (token.word == "END")
        elif token.word == "ATOMIC" and current and current[-1].word == "BEGIN":
            body = 1
        current.append(token)
    _close(text, current, found)
    return found


def _close(text: str, current: list[Token], found: list[Statement]) -> None:
    if current:
        found.append(Statement(text[current[0].start : current[-1].end], tuple(current)))


_MODIFIERS: Final = frozenset(
    [
        "OR",
        "REPLACE",
        "GLOBAL",
        "LOCAL",
        "TEMP",
        "TEMPORARY",
        "UNLOGGED",
        "RECURSIVE",
        "TRUSTED",
        "PROCEDURAL",
        "UNIQUE",
        "CONSTRAINT",
    ]
)
_OBJECTS: Final = tuple(
    tuple(phrase.split())
    for phrase in [
        "ACCESS METHOD",
        "AGGREGATE",
        "CAST",
        "COLLATION",
        "CONVERSION",
        "DEFAULT PRIVILEGES",
        "DOMAIN",
        "EVENT TRIGGER",
        "EXTENSION",
        "FOREIGN DATA WRAPPER",
        "FOREIGN TABLE",
        "FUNCTION",
        "INDEX",
        "LANGUAGE",
        "LARGE OBJECT",
        "MATERIALIZED VIEW",
        "OPERATOR CLASS",
        "OPERATOR FAMILY",
        "OPERATOR",
        "OWNED",
        "POLICY",
        "PROCEDURE",
        "PUBLICATION",
        "ROUTINE",
        "RULE",
        "SCHEMA",
        "SEQUENCE",
        "SERVER",
        "STATISTICS",
        "SUBSCRIPTION",
        "TABLE",
        "TEXT SEARCH CONFIGURATION",
        "TEXT SEARCH DICTIONARY",
        "TEXT SEARCH PARSER",
        "TEXT SEARCH TEMPLATE",
        "TRANSFORM",
        "TRIGGER",
        "TYPE",
        "USER MAPPING",
        "VIEW",
    ]
)
_SHARED: Final = frozenset(["DATABASE", "TABLESPACE", "ROLE", "PARAMETER"])
"""Objects of the whole server, for which event triggers do not fire."""


def tag_of(statement: Statement) -> str:
    """Return the command tag under which event triggers fire for a statement; empty if they do not."""
    words = [token.word for token in statement.tokens]
    first = words[0]
    if first in ("SELECT", "WITH", "TABLE", "VALUES"):
        return "SELECT INTO" if "INTO" in _outside(statement) else ""
    if first in ("GRANT", "REVOKE"):
        after = words[words.index("ON") + 1 :] if "ON" in words else ["ROLE"]
        return "" if after and after[0] in _SHARED else first
    if first == "COMMENT":
        return "" if len(words) > 2 and words[2] in _SHARED else first
    if first == "SECURITY":
        return "" if _SHARED & set(words[: words.index("IS") if "IS" in words else 6]) else "SECURITY LABEL"
    if first in ("REFRESH", "IMPORT"):
        return " ".join(words[:3])
    if first == "REINDEX":
        return first
    return _object_tag(first, words, statement) if first in ("CREATE", "ALTER", "DROP") else ""


def _object_tag(first: str, words: Sequence[str], statement: Statement) -> str:
    place = 1
    while place < len(words) and words[place] in _MODIFIERS:
        place += 1
    if words[place : place + 2] == ["DEFAULT", "CONVERSION"]:
        place += 1
    phrase = next((each for each in _OBJECTS if tuple(words[place : place + len(each)]) == each), None)
    if phrase is None or phrase == ("EVENT", "TRIGGER"):
        return ""
    tag = " ".join((first, *phrase))
    return "CREATE TABLE AS" if tag == "CREATE TABLE" and "AS" in _outside(statement) else tag


def _outside(statement: Statement) -> list[str]:
    """The key words outside parentheses."""
    depth, found = 0, []
    for token in statement.tokens:
        if token.kind is TokenKind.OTHER:
            depth += (token.text == "(") - (token.text == ")")
        elif not depth:
            found.append(token.word)
    return found


def statement_after(text: str, before: Sequence[str], tag: str) -> Statement | None:
    """Return the statement of a string for which an event trigger fired with ``tag``, after firings with the tags ``before``.

    A rollback inside the string undoes earlier firings, so several statements may fit; the last one is returned, because
    the firings of the others were rolled back. A loop in a function may have run the string before, with all its firings.
    None if no statement fits.
    """
    found = statements(text)
    once = sum(tag_of(statement) != "" for statement in found)
    before = before[len(before) - len(before) % once :] if once else before
    fired: list[str] = []
    begun: list[str] = []
    savepoints: dict[str, list[str]] = {}
    chosen: Statement | None = None
    for statement in found:
        words = [token.word for token in statement.tokens[:4]]
        if words[0] in ("BEGIN", "START", "COMMIT", "END"):
            begun = list(fired)
        elif words[0] == "SAVEPOINT":
            savepoints[statement.tokens[-1].name] = list(fired)
        elif words[0] in ("ROLLBACK", "ABORT"):
            fired = list(savepoints.get(statement.tokens[-1].name, begun) if "TO" in words else begun)
        else:
            own = tag_of(statement)
            if own == tag and fired == list(before):
                chosen = statement
            if own:
                fired.append(own)
    return chosen
