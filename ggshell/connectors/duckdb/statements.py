"""Changes as SQL for DuckDB: statements for many rows of a registered Arrow table, and for one row as parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from ggshell.errors import ApplyError
from ggshell.pipeline.apply.folding import Change, ChangeKind
from ggshell.pipeline.apply.row_search import RowSearch
from ggshell.pipeline.apply.target import TableMapping
from ggshell.record.fields import Value
from ggshell.types import quote, quote_table

ROWS = "ggs_rows"
"""The name of the Arrow table. Its columns are ``c0``, ``c1`` … in the order of the image."""

Statement = tuple[str, list[str]]
"""A statement and its parameters."""


class DuckDBStatements:
    """Builds the statements of one mapping. Statements for many rows are cached by kind and columns."""

    def __init__(self, mapping: TableMapping) -> None:
        self.mapping = mapping
        self.table = quote_table(mapping.target.name)
        self._search = RowSearch(mapping)
        self._texts: dict[tuple[ChangeKind, tuple[int, ...]], str] = {}

    def many(self, kind: ChangeKind, columns: tuple[int, ...]) -> str:
        """INSERT, UPDATE or DELETE of the rows of the Arrow table. Empty if there is nothing to do."""
        text = self._texts.get((kind, columns))
        if text is None:
            make = {
                ChangeKind.INSERT: self._insert_many,
                ChangeKind.UPDATE: self._update_many,
                ChangeKind.DELETE: self._delete_many,
            }[kind]
            text = self._texts[kind, columns] = make(columns)
        return text

    def one(self, change: Change) -> Statement | None:
        """The statement of one change, or None if there is nothing to do. Raises ApplyError if the row lacks its
        key."""
        match change.kind:
            case ChangeKind.TRUNCATE:
                return f"TRUNCATE {self.table}", []
            case ChangeKind.INSERT:
                return self._insert(change)
            case ChangeKind.DELETE:
                return self._delete(change)
            case _:
                return self._update(change)

    def conflicting_rows(self, change: Change) -> Statement | None:
        """A query for an existing row that an insert would conflict with. None if no unique columns are known."""
        known = dict(zip(change.columns, change.values, strict=True))
        by_name = {column.name: index for index, column in enumerate(self.mapping.columns) if column is not None}
        given, parts = _Given(self.mapping), []
        for names in self.mapping.target.unique:
            indexes = [by_name.get(name, -1) for name in sorted(names)]
            if all(known.get(index) is not None for index in indexes):
                parts.append(" AND ".join(given.equal(index, known[index]) for index in indexes))
        if not parts:
            return None
        return f"SELECT 1 FROM {self.table} WHERE ({') OR ('.join(parts)}) LIMIT 1", given.texts

    def fetch(self, key: Mapping[int, Value]) -> Statement:
        """A query for the mapped columns of the current row as texts, in the source's order."""
        columns = [column for column in self.mapping.columns if column is not None]
        names = ", ".join(to_text(quote(column.name), column.type_name) for column in columns)
        given = _Given(self.mapping)
        parts = [given.equal(index, value) for index, value in key.items() if self.mapping.columns[index] is not None]
        return f"SELECT {names} FROM {self.table} WHERE {' AND '.join(parts) or 'true'} LIMIT 1", given.texts

    def arrays(self, columns: Sequence[int]) -> list[int]:
        """The places of the columns whose texts are arrays."""
        found = [self.mapping.columns[index] for index in columns]
        return [place for place, column in enumerate(found) if column is not None and is_array(column.type_name)]

    def _insert_many(self, columns: tuple[int, ...]) -> str:
        order = [place for place, index in enumerate(columns) if self.mapping.writable(index)]
        names = ", ".join(quote(self.mapping.column(columns[place]).name) for place in order)
        values = ", ".join(self._cast(columns[place], f"c{place}") for place in order)
        return f"INSERT INTO {self.table} ({names}) SELECT {values} FROM {ROWS}"

    def _update_many(self, columns: tuple[int, ...]) -> str:
        sets = ", ".join(
            f"{quote(self.mapping.column(columns[place]).name)} = {self._cast(columns[place], f'v.c{place}')}"
            for place in self._search.set_places(columns)
        )
        return f"UPDATE {self.table} AS t SET {sets} FROM {ROWS} AS v WHERE {self._joined(columns)}" if sets else ""

    def _delete_many(self, columns: tuple[int, ...]) -> str:
        return f"DELETE FROM {self.table} AS t USING {ROWS} AS v WHERE {self._joined(columns)}"

    def _joined(self, columns: tuple[int, ...]) -> str:
        return " AND ".join(
            f"t.{quote(self.mapping.column(index).name)} = {self._cast(index, f'v.c{place}')}"
            for place, index in enumerate(columns)
            if index in self._search.key
        )

    def _insert(self, change: Change) -> Statement:
        kept = [(i, value) for i, value in zip(change.columns, change.values, strict=True) if self.mapping.writable(i)]
        if not kept:
            return f"INSERT INTO {self.table} DEFAULT VALUES", []
        given = _Given(self.mapping)
        names = ", ".join(quote(self.mapping.column(index).name) for index, _ in kept)
        values = ", ".join(given.value(index, value) for index, value in kept)
        return f"INSERT INTO {self.table} ({names}) VALUES ({values})", given.texts

    def _update(self, change: Change) -> Statement | None:
        moves, given = change.kind is ChangeKind.MOVE, _Given(self.mapping)
        columns, values = change.columns, change.values
        sets = ", ".join(
            f"{quote(self.mapping.column(columns[place]).name)} = {given.value(columns[place], values[place])}"
            for place in self._search.set_places(columns, moves=moves)
        )
        if not sets:
            return None
        if moves:
            columns, values = change.before
        where = self._where(columns, values, self._search.for_update(columns, moves=moves), given)
        return f"UPDATE {self.table} SET {sets} WHERE {where}", given.texts

    def _delete(self, change: Change) -> Statement:
        given = _Given(self.mapping)
        where = self._where(change.columns, change.values, self._search.for_delete(change.columns), given)
        return f"DELETE FROM {self.table} WHERE {where}", given.texts

    def _where(self, columns: Sequence[int], values: Sequence[Value], places: Sequence[int], given: _Given) -> str:
        """The condition that finds one row. If several rows may be equal, it selects exactly one of them."""
        pairs = [(columns[place], values[place]) for place in places]
        condition = " AND ".join(given.equal(*pair, as_text=self._search.whole_row) for pair in pairs) or "true"
        if self._search.finds_one(pairs):
            return condition
        return f"rowid = (SELECT rowid FROM {self.table} WHERE {condition} LIMIT 1)"

    def _cast(self, index: int, text: str) -> str:
        return from_text(text, self.mapping.column(index).type_name, self.mapping.source.columns[index].type_name)


class _Given:
    """The parameters of one statement, as texts. They are numbered, so that a cast can use one twice."""

    def __init__(self, mapping: TableMapping) -> None:
        self._mapping = mapping
        self.texts: list[str] = []

    def value(self, index: int, value: Value) -> str:
        """SQL for a value of a column."""
        column = self._mapping.columns[index]
        if value is None or column is None:
            return "NULL"
        text = value.decode()
        self.texts.append(array_as_json(text) if is_array(column.type_name) else text)
        return from_text(
            f"${len(self.texts)}::VARCHAR", column.type_name, self._mapping.source.columns[index].type_name
        )

    def equal(self, index: int, value: Value, *, as_text: bool = False) -> str:
        """The condition that a column has a value.

        ``as_text`` compares the texts, for types whose equal values may differ as texts.
        """
        column = self._mapping.column(index)
        name = quote(column.name)
        if value is None:
            return f"{name} IS NULL"
        given = self.value(index, value)
        if as_text and not column.exact:
            return f"{to_text(name, column.type_name)} = {to_text(given, column.type_name)}"
        return f"{name} = {given}"


# Rows of changes as an Arrow table of texts, which DuckDB reads without copying.


def arrow_rows(rows: Sequence[Sequence[Value]], arrays: Sequence[int]) -> pa.Table:
    """One string column per value of a row, ``c0``, ``c1`` …; ``arrays`` are those whose texts are array literals.

    Raises ApplyError for a text that is not UTF-8.
    """
    columns: list[Sequence[Value]] = list(zip(*rows, strict=True))
    for place in arrays:
        columns[place] = arrays_as_json(columns[place])
    try:
        texts = [pa.array(column, pa.binary()).cast(pa.string()) for column in columns]
    except pa.ArrowInvalid as error:
        raise ApplyError(f"a value is not valid UTF-8: {error}") from error
    return pa.table(texts, names=[f"c{place}" for place in range(len(texts))])


# Conversion of a source's text values to values of a DuckDB column, and back.
#
# The texts are PostgreSQL's, or those that the redo reader produces in the same form. A text is rewritten if DuckDB
# expects another text for the same value. It is refused if DuckDB would change the value silently (a fraction to an
# integer).


_INTEGERS = frozenset(
    f"{sign}{size}" for sign in ("", "U") for size in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
) | {"BIGNUM"}
_MOMENTS = ("TIMESTAMP", "DATE")
_INTEGER_SOURCES = ("smallint", "integer", "bigint")


def from_text(text: str, type_name: str, source: str) -> str:
    """SQL that converts a text expression to a value of a column; ``source`` is the type of the source column."""
    kind = type_name.upper()
    if kind.endswith("]"):
        return f"CAST(CAST({text} AS JSON) AS {type_name})"
    if kind == "VARCHAR":
        return text
    if kind == "BLOB":
        return f"CASE WHEN starts_with({text}, '\\x') THEN unhex(substr({text}, 3)) ELSE encode({text}) END"
    if kind.startswith(_MOMENTS):
        # 0044-03-15 10:00:00 BC
        early = f"regexp_replace({text}, '^(\\S+)(.*) BC$', '\\1 (BC)\\2')"
        return f"CAST(CASE WHEN ends_with({text}, ' BC') THEN {early} ELSE {text} END AS {type_name})"
    if kind == "INTERVAL":
        # -1 years +2 mons: each part has its own sign
        return f"CAST(replace({text}, '+', '') AS INTERVAL)"
    if kind in _INTEGERS and not source.lower().startswith(_INTEGER_SOURCES):
        refusal = f"error('invalid input for type {kind}: \"' || {text} || '\"')"
        return f"CASE WHEN regexp_matches({text}, '[.eE]') THEN {refusal} ELSE CAST({text} AS {type_name}) END"
    return f"CAST({text} AS {type_name})"


def to_text(column: str, type_name: str) -> str:
    """SQL that converts a column's value to the text that the source would write."""
    kind = type_name.upper()
    if kind == "BOOLEAN":
        return f"CASE WHEN {column} THEN 't' WHEN NOT {column} THEN 'f' END"
    if kind == "BLOB":
        return f"'\\x' || lower(hex({column}))"
    return f"CAST({column} AS VARCHAR)"


def is_array(type_name: str) -> bool:
    """Whether values of the type are arrays, which arrive as ``{1,NULL,"a b"}``."""
    return type_name.endswith("]")


def array_as_json(text: str) -> str:
    """Convert a PostgreSQL array literal to JSON; elements stay texts. Raises ValueError for anything else."""
    import json

    body = text[text.index("=") + 1 :] if text.startswith("[") and "=" in text else text
    parts: list[str] = []
    place = 0
    while place < len(body):
        letter = body[place]
        if letter in "{},":
            parts.append({"{": "[", "}": "]"}.get(letter, letter))
            place += 1
            continue
        element, place = _element(body, place)
        parts.append("null" if element is None else json.dumps(element))
    return "".join(parts)


def _element(body: str, place: int) -> tuple[str | None, int]:
    """Parse one element at an offset. Returns it (None for NULL) and the offset after it."""
    if body[place] != '"':
        end = min((found for mark in ",}" if (found := body.find(mark, place)) >= 0), default=len(body))
        bare = body[place:end]
        return (None if bare == "NULL" else bare), end
    letters: list[str] = []
    place += 1
    while body[place : place + 1] != '"':
        if place >= len(body):
            raise ValueError(f"unterminated quotes in an array: {body}")
        place += body[place] == "\\"
        letters.append(body[place : place + 1])
        place += 1
    return "".join(letters), place + 1


def arrays_as_json(values: Sequence[bytes | None]) -> list[bytes | None]:
    """Convert a column of array literals to JSON."""
    return [None if value is None else array_as_json(value.decode()).encode() for value in values]
