"""Changes as SQL for DuckDB: statements over many rows of a registered Arrow table, and over one row as parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ggshell.apply.target import TableMapping
from ggshell.databases.duckdb.casts import array_as_json, from_text, is_array, to_text
from ggshell.databases.duckdb.changes import Change, Kind
from ggshell.databases.duckdb.names import quote, quote_table
from ggshell.errors import ApplyError
from ggshell.record.fields import Value

ROWS = "ggs_rows"
"""The Arrow table's name; its columns are ``c0``, ``c1`` … in the order of the image."""

Statement = tuple[str, list[str]]
"""A statement and its parameters."""


class Statements:
    """Makes the statements of one mapping; those over many rows are remembered by kind and columns."""

    def __init__(self, mapping: TableMapping) -> None:
        self.mapping = mapping
        self.table = quote_table(mapping.target.name)
        self._key = frozenset(mapping.key)
        self._whole_row = not mapping.single and len(self._key) == len(mapping.source.columns)
        self._texts: dict[tuple[Kind, tuple[int, ...]], str] = {}

    def many(self, kind: Kind, columns: tuple[int, ...]) -> str:
        """INSERT, UPDATE or DELETE of the rows of the Arrow table; empty when there is nothing to do."""
        text = self._texts.get((kind, columns))
        if text is None:
            make = {Kind.INSERT: self._insert_many, Kind.UPDATE: self._update_many, Kind.DELETE: self._delete_many}[
                kind
            ]
            text = self._texts[kind, columns] = make(columns)
        return text

    def one(self, change: Change) -> Statement | None:
        """The statement of one change; None when there is nothing to do.  Raises ApplyError when no row can be found."""
        match change.kind:
            case Kind.TRUNCATE:
                return f"TRUNCATE {self.table}", []
            case Kind.INSERT:
                return self._insert(change)
            case Kind.DELETE:
                return self._delete(change)
            case _:
                return self._update(change)

    def there(self, change: Change) -> Statement | None:
        """A query for a row that an insert would collide with; None when no unique columns are known."""
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
        """A query for the present row's mapped columns as texts, in the source's order."""
        columns = [column for column in self.mapping.columns if column is not None]
        names = ", ".join(to_text(quote(column.name), column.type_name) for column in columns)
        given = _Given(self.mapping)
        parts = [given.equal(index, value) for index, value in key.items() if self.mapping.columns[index] is not None]
        return f"SELECT {names} FROM {self.table} WHERE {' AND '.join(parts) or 'true'} LIMIT 1", given.texts

    def arrays(self, columns: Sequence[int]) -> list[int]:
        """Where columns stand whose texts are arrays."""
        found = [self.mapping.columns[index] for index in columns]
        return [place for place, column in enumerate(found) if column is not None and is_array(column.type_name)]

    def _insert_many(self, columns: tuple[int, ...]) -> str:
        order = [place for place, index in enumerate(columns) if self.mapping.writable(index)]
        names = ", ".join(quote(self.mapping.column(columns[place]).name) for place in order)
        values = ", ".join(self._cast(columns[place], f"c{place}") for place in order)
        return f"INSERT INTO {self.table} ({names}) SELECT {values} FROM {ROWS}"

    def _update_many(self, columns: tuple[int, ...]) -> str:
        sets = ", ".join(
            f"{quote(self.mapping.column(index).name)} = {self._cast(index, f'v.c{place}')}"
            for place, index in enumerate(columns)
            if index not in self._key and self.mapping.writable(index)
        )
        return f"UPDATE {self.table} AS t SET {sets} FROM {ROWS} AS v WHERE {self._joined(columns)}" if sets else ""

    def _delete_many(self, columns: tuple[int, ...]) -> str:
        return f"DELETE FROM {self.table} AS t USING {ROWS} AS v WHERE {self._joined(columns)}"

    def _joined(self, columns: tuple[int, ...]) -> str:
        return " AND ".join(
            f"t.{quote(self.mapping.column(index).name)} = {self._cast(index, f'v.c{place}')}"
            for place, index in enumerate(columns)
            if index in self._key
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
        moves, given = change.kind is Kind.MOVE, _Given(self.mapping)
        sets = ", ".join(
            f"{quote(self.mapping.column(index).name)} = {given.value(index, value)}"
            for index, value in zip(change.columns, change.values, strict=True)
            if self.mapping.writable(index) and (moves or index not in self._key)
        )
        if not sets:
            return None
        columns, values = change.before if moves else (change.columns, change.values)
        where = self._where(columns, values, self.mapping.compared_updates if moves else frozenset(), given)
        return f"UPDATE {self.table} SET {sets} WHERE {where}", given.texts

    def _delete(self, change: Change) -> Statement:
        given = _Given(self.mapping)
        where = self._where(change.columns, change.values, self.mapping.compared_deletes, given)
        return f"DELETE FROM {self.table} WHERE {where}", given.texts

    def _where(self, columns: Sequence[int], values: Sequence[Value], compared: frozenset[int], given: _Given) -> str:
        """The condition that finds one row; where several may be equal, exactly one of them."""
        pairs = list(zip(columns, values, strict=True))
        chosen = [pair for pair in pairs if pair[0] in self._key and self.mapping.columns[pair[0]] is not None]
        if len(chosen) < len(self._key) and not self._whole_row:
            lacking = sorted(self._key - set(columns))
            names = ", ".join(self.mapping.source.columns[index].name for index in lacking)
            raise ApplyError(f"the trail's row lacks {names}, which finds rows of {self.mapping.target.name}")
        chosen += [pair for pair in pairs if pair[0] in compared and pair[0] not in self._key]
        condition = " AND ".join(given.equal(*pair, as_text=self._whole_row) for pair in chosen) or "true"
        if self.mapping.single and all(value is not None for index, value in chosen if index in self._key):
            return condition
        return f"rowid = (SELECT rowid FROM {self.table} WHERE {condition} LIMIT 1)"

    def _cast(self, index: int, text: str) -> str:
        return from_text(text, self.mapping.column(index).type_name, self.mapping.source.columns[index].type_name)


class _Given:
    """The parameters of one statement, as texts; each has a number, so that a cast may name it twice."""

    def __init__(self, mapping: TableMapping) -> None:
        self._mapping = mapping
        self.texts: list[str] = []

    def value(self, index: int, value: Value) -> str:
        """A value of a column."""
        column = self._mapping.columns[index]
        if value is None or column is None:
            return "NULL"
        text = value.decode()
        self.texts.append(array_as_json(text) if is_array(column.type_name) else text)
        return from_text(
            f"${len(self.texts)}::VARCHAR", column.type_name, self._mapping.source.columns[index].type_name
        )

    def equal(self, index: int, value: Value, *, as_text: bool = False) -> str:
        """The condition that a column has a value; ``as_text``: where equal values of a type may differ as texts, these."""
        column = self._mapping.column(index)
        name = quote(column.name)
        if value is None:
            return f"{name} IS NULL"
        given = self.value(index, value)
        if as_text and not column.exact:
            return f"{to_text(name, column.type_name)} = {to_text(given, column.type_name)}"
        return f"{name} = {given}"
