"""Replaces the names of schemas and tables in a DDL statement by their names in the target.

A statement is not parsed. A qualified name is replaced wherever it stands, an unqualified one where a table is named, and a
schema after the word SCHEMA. Bodies of functions in quotes do not change. ``nextval('a.s')`` and ``'a.s'::regclass`` are
names too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from ggshell.pipeline.apply.target import TargetNames
from ggshell.record.ddl import DdlStatement
from ggshell.record.sql_text import Token, TokenKind, tokens
from ggshell.types import TableName, postgres_literal, quote, quote_table

_SYSTEM: Final = frozenset(["pg_catalog", "information_schema", "pg_toast", "pg_temp"])
_TABLE_KINDS: Final = frozenset(["TABLE", "VIEW", "MATERIALIZED VIEW", "FOREIGN TABLE", "PARTITIONED TABLE"])
_BEFORE_TABLE: Final = frozenset(
    [
        "TABLE",
        "ON",
        "ONLY",
        "FROM",
        "JOIN",
        "INTO",
        "REFERENCES",
        "UPDATE",
        "OF",
        "PARTITION",
        "LIKE",
        "VIEW",
        "USING",
        "INHERIT",
        "INHERITS",
    ]
)
"""The words after which a table may be named."""
_BETWEEN: Final = frozenset(["IF", "NOT", "EXISTS", "ONLY"])
_SEQUENCE_CALLS: Final = frozenset(["nextval", "currval", "setval"])
_AFTER_SOURCE: Final = frozenset(
    [
        "ON",
        "USING",
        "WHERE",
        "JOIN",
        "LEFT",
        "RIGHT",
        "FULL",
        "INNER",
        "CROSS",
        "NATURAL",
        "GROUP",
        "ORDER",
        "HAVING",
        "LIMIT",
        "UNION",
        "WINDOW",
        "AS",
        "SET",
        "WITH",
    ]
)
"""Words after a table in FROM that are not an alias."""


class Replacement(NamedTuple):
    """A part of a text and what takes its place."""

    start: int
    end: int
    text: str


def search_path(value: str, role: str, names: TargetNames) -> str:
    """Return a search_path for the target: renamed schemas, and the name of the role for ``"$user"``."""
    found = [token.name for token in tokens(value) if token.name]
    found = [role if name == "$user" and role else name for name in found]
    return ", ".join(quote(name if name in _SYSTEM else names.session_schema(name)) for name in found) or '""'


def renamed(statement: DdlStatement, names: TargetNames) -> str:
    """Return the text of a statement with the names of the target."""
    text, place = [], 0
    for start, end, new in _Renaming(statement, names).replacements():
        text += [statement.text[place:start], new]
        place = end
    return "".join([*text, statement.text[place:]])


def _schema(owner: str, names: TargetNames) -> str:
    return owner if owner in _SYSTEM else names.schema(owner)


class _Renaming:
    """Finds the names in one statement."""

    def __init__(self, statement: DdlStatement, names: TargetNames) -> None:
        self._names = names
        self._statement = statement
        self._tokens = list(tokens(statement.text))
        path = next((value for name, value in statement.settings if name == "search_path"), "")
        found = (statement.role if token.name == "$user" else token.name for token in tokens(path))
        self._path = [name for name in found if name]
        self._others = {each.name for each in statement.objects if each.kind not in _TABLE_KINDS}
        self._objects = [name for each in statement.objects for name in (each.table, each.name) if name is not None]
        self._aliases = set(_aliases(self._tokens))
        self._schemas = set(_schema_places(self._tokens))

    def replacements(self) -> Iterator[Replacement]:
        """Return the replacements in the order of the text."""
        place = 0
        while place < len(self._tokens):
            found = list(self._at(place))
            yield from found
            last = found[-1].end if found else 0
            place += 1
            while place < len(self._tokens) and self._tokens[place].start < last:
                place += 1

    def _at(self, place: int) -> Iterator[Replacement]:
        token = self._tokens[place]
        if token.kind is TokenKind.LITERAL:
            yield from self._literal(place)
        elif token.name and not self._is(place - 1, "."):
            if place in self._schemas:
                yield from self._replaced(token, _schema(token.name, self._names))
            elif self._is(place + 1, ".") and self._name(place + 2):
                yield from self._qualified(place)
            else:
                yield from self._unqualified(place)

    def _qualified(self, place: int) -> Iterator[Replacement]:
        owner, name = self._tokens[place], self._tokens[place + 2]
        if self._names_column(place) and not self._is(place + 3, "."):
            yield from self._table_alone(place)
            return
        if owner.name in self._aliases and not self._follows_table_word(place):
            return
        wanted = self._target(TableName(owner.name, name.name))
        yield from self._replaced(owner, wanted.owner)
        yield from self._replaced(name, wanted.name)

    def _unqualified(self, place: int) -> Iterator[Replacement]:
        if self._is_new_name(place):
            yield from self._replaced(
                self._tokens[place],
                self._target(TableName(self._statement.owner, self._tokens[place].name)).name,
            )
        elif self._follows_table_word(place):
            yield from self._table_alone(place)

    def _table_alone(self, place: int) -> Iterator[Replacement]:
        """Replace a table's name without a schema, if the search path does not find it in the target."""
        token = self._tokens[place]
        known = [name for name in self._objects if name.name == token.name]
        found = known or [TableName(owner, token.name) for owner in self._path]
        for name in found:
            wanted = self._target(name)
            if wanted.name != name.name or wanted.owner != _schema(name.owner, self._names):
                yield Replacement(token.start, token.end, quote_table(wanted))
                return

    def _literal(self, place: int) -> Iterator[Replacement]:
        """Replace the name in a literal that is used as one."""
        token = self._tokens[place]
        called = self._is(place - 1, "(") and self._name(place - 2) in _SEQUENCE_CALLS
        cast = self._is(place + 1, ":") and self._is(place + 2, ":") and self._name(place + 3) == "regclass"
        if not token.text.startswith("'") or not (called or cast):
            return
        inner = [each.name for each in tokens(token.text[1:-1].replace("''", "'")) if each.name]
        if len(inner) == 2:
            wanted = self._target(TableName(*inner))
            if wanted != TableName(*inner):
                yield Replacement(token.start, token.end, postgres_literal(quote_table(wanted)))

    def _target(self, name: TableName) -> TableName:
        if name.owner in _SYSTEM:
            return name
        return self._names.other(name) if name in self._others else self._names.table(name)

    def _replaced(self, token: Token, wanted: str) -> Iterator[Replacement]:
        if token.name != wanted:
            yield Replacement(token.start, token.end, quote(wanted))

    def _names_column(self, place: int) -> bool:
        """Whether a name is a column's with its table: OWNED BY t.c, COMMENT ON COLUMN t.c."""
        before = [token.word for token in self._tokens[max(0, place - 2) : place]]
        return before in (["OWNED", "BY"], ["ON", "COLUMN"])

    def _is_new_name(self, place: int) -> bool:
        """Whether a name is a table's new one: RENAME TO."""
        words = [token.word for token in self._tokens[max(0, place - 2) : place]]
        return words == ["RENAME", "TO"] and bool({"TABLE", "VIEW"} & set(self._words()[:3]))

    def _follows_table_word(self, place: int) -> bool:
        place -= 1
        while place > 0 and (self._tokens[place].word in _BETWEEN or self._is(place, "(")):
            place -= 1
        return place >= 0 and self._tokens[place].word in _BEFORE_TABLE

    def _words(self) -> list[str]:
        return [token.word for token in self._tokens[:3]]

    def _is(self, place: int, text: str) -> bool:
        return 0 <= place < len(self._tokens) and self._tokens[place].text == text

    def _name(self, place: int) -> str:
        return self._tokens[place].name if 0 <= place < len(self._tokens) else ""


def _schema_places(found: Sequence[Token]) -> Iterator[int]:
    """The places of names of schemas: after SCHEMA, in a setting of search_path, and the new name of a schema."""
    for place, token in enumerate(found):
        sets = bool(place) and found[place - 1].name == "search_path" and token.text.upper() in ("TO", "=")
        renames = token.word == "TO" and (found[0].word, found[1].word) == ("ALTER", "SCHEMA")
        if not sets and not renames and token.word != "SCHEMA":
            continue
        first = place + 1
        while first < len(found) and found[first].word in _BETWEEN:
            first += 1
        while first < len(found) and found[first].name and found[first].word != "AUTHORIZATION":
            yield first
            if first + 1 >= len(found) or found[first + 1].text != ",":
                break
            first += 2


def _aliases(found: Sequence[Token]) -> Iterator[str]:
    """The aliases of tables in FROM and JOIN."""
    for place, token in enumerate(found):
        if token.word not in ("FROM", "JOIN"):
            continue
        last = place + 1
        while last + 2 < len(found) and found[last + 1].text == ".":
            last += 2
        last += 2 if last + 1 < len(found) and found[last + 1].word == "AS" else 1
        if last < len(found) and found[last].name and found[last].word not in _AFTER_SOURCE:
            yield found[last].name
