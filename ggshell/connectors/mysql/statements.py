"""Changes as SQL for MariaDB and MySQL: statements for many rows with the same columns, and for one row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from ggshell.connectors.mysql.literal_columns import NULL, Literals, text_literal
from ggshell.connectors.mysql.literals import (
    BINARIES,
    GEOMETRIES,
    LABELED,
    bytes_literal,
    labels_of,
    literals_of,
    rows_of_literals,
    type_word,
)
from ggshell.connectors.mysql.session import quote_name
from ggshell.pipeline.apply.folding import Change, ChangeKind, StatementRows
from ggshell.pipeline.apply.row_search import RowSearch
from ggshell.pipeline.apply.target import TableMapping, TargetColumn
from ggshell.record.fields import Value
from ggshell.types import TableName

STATEMENT_BYTES: Final = 1 << 20
"""The size from which the rows of one change go into several statements."""
FEW_ROWS: Final = 4
"""Up to this number of rows, an UPDATE for each row costs less than a joined one."""
_JOINABLE: Final = frozenset(
    {"tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "date", "datetime", "timestamp", "time", "year"}
)
"""Types of keys by which many rows can be joined. The collation of a text would have to be that of its column."""

_NOT_STRICT: Final = (
    "/*M! SET STATEMENT sql_mode = 'NO_BACKSLASH_ESCAPES,ALLOW_INVALID_DATES' FOR */"
    " UPDATE /*+ SET_VAR(sql_mode = 'NO_BACKSLASH_ESCAPES,ALLOW_INVALID_DATES') */"
)
"""An UPDATE that stores the error value of an ENUM, in MariaDB's way and in MySQL's."""


class MysqlStatement(NamedTuple):
    """A statement. ``affects``: the number of rows that it must find, None if any number will do."""

    text: bytes
    affects: int | None = None


def quote_table(table: TableName) -> str:
    return f"{quote_name(table.owner)}.{quote_name(table.name)}"


class MysqlStatements:
    """Builds the statements of one mapping."""

    def __init__(self, mapping: TableMapping) -> None:
        self.mapping = mapping
        self.table = quote_table(mapping.target.name)
        self._search = RowSearch(mapping)
        self._key = self._search.key
        self._loose = frozenset(index for index in self._key if mapping.writable(index) and self._is_loose(index))
        self._literals: dict[int, Literals] = {}
        self._names = [quote_name(column.name) if column is not None else "" for column in mapping.columns]
        self._unlabeled = dict(_unlabeled(mapping))
        self._renewed = [index for index, column in enumerate(mapping.columns) if column is not None and column.renewed]

    def many(self, work: StatementRows) -> Iterator[MysqlStatement]:
        """The statements of rows with the same columns and different keys. Raises ApplyError."""
        if work.alone is not None:
            yield from self.one(work.alone)
        elif any(self._errors(work.columns, values) for values in work.rows if self._unlabeled):
            for values in work.rows:
                yield from self.one(Change(work.mapping, work.kind, work.columns, values))
        elif work.kind is ChangeKind.INSERT:
            yield from self._inserts(work.columns, work.rows)
        elif work.kind is ChangeKind.DELETE and not self._is_rounded:
            yield from self._deletes(work.columns, work.rows)
        elif self._joins(work):
            yield from self._updates(work.columns, work.rows)
        else:
            for values in work.rows:
                yield from self.one(Change(work.mapping, work.kind, work.columns, values))

    def one(self, change: Change) -> Iterator[MysqlStatement]:
        """The statement of one change, if there is anything to do. Raises ApplyError if the row lacks its key."""
        match change.kind:
            case ChangeKind.TRUNCATE:
                # TRUNCATE would commit the transaction. Like it, this fires no foreign keys: MariaDB's way, then MySQL's.
                unchecked = "/*M! SET STATEMENT foreign_key_checks = 0 FOR */"
                yield MysqlStatement(
                    f"{unchecked} DELETE /*+ SET_VAR(foreign_key_checks = OFF) */ FROM {self.table}".encode()
                )
            case ChangeKind.INSERT | ChangeKind.UPDATE | ChangeKind.MOVE if self._errors(change.columns, change.values):
                yield from self._with_errors(change)
            case ChangeKind.INSERT:
                yield from self._inserts(change.columns, [change.values])
            case ChangeKind.DELETE:
                where = self._where(change.columns, change.values, self._search.for_delete(change.columns))
                yield MysqlStatement(b"DELETE FROM %s WHERE %s" % (self.table.encode(), where), 1)
            case _:
                yield from self._update(change)

    def fetch(self, key: Mapping[int, Value], expressions: Sequence[str]) -> bytes:
        """A query that locks and returns the current row with a key; ``expressions``: those of its mapped columns."""
        parts = [self._equal(index, value) for index, value in key.items() if self.mapping.columns[index] is not None]
        text = f"SELECT {', '.join(expressions)} FROM {self.table} WHERE ".encode()
        return text + (b" AND ".join(parts) or b"TRUE") + b" LIMIT 1 FOR UPDATE"

    @property
    def _is_rounded(self) -> bool:
        """Whether a column of the key has a type whose values equal a literal only after a conversion."""
        return any(self.mapping.column(index).base_type == "float" for index in self._key)

    def _joins(self, work: StatementRows) -> bool:
        columns = self.mapping.columns
        keys = [columns[index] for index in work.columns if index in self._key]
        return len(work.rows) > FEW_ROWS and all(
            column is not None and column.base_type in _JOINABLE for column in keys
        )

    def _inserts(self, columns: tuple[int, ...], rows: Sequence[Sequence[Value]]) -> Iterator[MysqlStatement]:
        kept = [place for place, index in enumerate(columns) if self.mapping.writable(index)]
        names = ",".join(self._names[columns[place]] for place in kept)
        head = f"INSERT INTO {self.table} ({names}) VALUES ".encode()
        if not kept:
            yield from (MysqlStatement(head + b"()") for _ in rows)
            return
        chosen = rows if len(kept) == len(columns) else [[row[place] for place in kept] for row in rows]
        made = rows_of_literals([self._literals_of(columns[place]) for place in kept], chosen)
        for part in _parts(made):
            yield MysqlStatement(head + b",".join(part))

    def _updates(self, columns: tuple[int, ...], rows: Sequence[Sequence[Value]]) -> Iterator[MysqlStatement]:
        """Updates of many rows, joined with their values."""
        sets = ",".join(f"t.{self._names[columns[place]]}=v.c{place}" for place in self._search.set_places(columns))
        if not sets:
            return
        sets = ",".join([sets, *(f"t.{name}=t.{name}" for name in self._kept(columns))])
        joined = " AND ".join(
            f"t.{self._names[index]}=v.c{place}" for place, index in enumerate(columns) if index in self._key
        )
        names = ",".join(f"c{place}" for place in range(len(columns)))
        head = f"UPDATE (WITH v({names}) AS (VALUES ".encode()
        tail = f") SELECT * FROM v) v STRAIGHT_JOIN {self.table} t ON {joined} SET {sets}".encode()
        for part in _parts(rows_of_literals([self._literals_of(index) for index in columns], rows)):
            yield MysqlStatement(head + b",".join(part) + tail, len(part))

    def _deletes(self, columns: tuple[int, ...], rows: Sequence[Sequence[Value]]) -> Iterator[MysqlStatement]:
        keys = [place for place, index in enumerate(columns) if index in self._key]
        names = ",".join(self._names[columns[place]] for place in keys)
        head = f"DELETE FROM {self.table} WHERE ({names}) IN (".encode()
        if len(keys) == 1:
            (place,) = keys
            made = self._literals_of(columns[place])([row[place] for row in rows])
        else:
            made = rows_of_literals(
                [self._literals_of(columns[place]) for place in keys], [[row[place] for place in keys] for row in rows]
            )
        for part in _parts(made):
            yield MysqlStatement(head + b",".join(part) + b")", len(part))

    def _update(self, change: Change) -> Iterator[MysqlStatement]:
        moves = change.kind is ChangeKind.MOVE
        columns, values = change.columns, change.values
        sets = [
            b"%s=%s" % (self._names[columns[place]].encode(), self._value(columns[place], values[place]))
            for place in self._set_places(columns, moves=moves)
        ]
        if not sets:
            return
        sets += [f"{name}={name}".encode() for name in self._kept(columns)]
        if moves:
            columns, values = change.before
        where = self._where(columns, values, self._search.for_update(columns, moves=moves))
        yield MysqlStatement(b"UPDATE %s SET %s WHERE %s" % (self.table.encode(), b",".join(sets), where), 1)

    def _errors(self, columns: Sequence[int], values: Sequence[Value]) -> list[int]:
        """The columns that have the error value of an ENUM: the empty text, without being a label of it."""
        pairs = zip(columns, values, strict=True) if self._unlabeled else ()
        return [index for index, value in pairs if value == b"" and index in self._unlabeled]

    def _with_errors(self, change: Change) -> Iterator[MysqlStatement]:
        """Write a row with its error values. A strict session refuses them, so a statement of its own writes nothing else."""
        errors = self._errors(change.columns, change.values)
        values = [
            self._unlabeled[index] if index in errors else value
            for index, value in zip(change.columns, change.values, strict=True)
        ]
        yield from self.one(change._replace(values=values))
        row = {**dict(zip(*change.before, strict=True)), **dict(zip(change.columns, values, strict=True))}
        written = [f"{self._names[index]}=''" for index in errors]
        sets = ",".join([*written, *(f"{name}={name}" for name in self._kept(errors))])
        head = f"{_NOT_STRICT} {self.table} SET {sets} WHERE ".encode()
        yield MysqlStatement(
            head + self._where(list(row), list(row.values()), self._search.places(tuple(row), frozenset())), 1
        )

    def _set_places(self, columns: tuple[int, ...], *, moves: bool) -> list[int]:
        """The places of the columns that an update sets, with key columns whose text it may change."""
        places = self._search.set_places(columns, moves=moves)
        if not self._loose:
            return places
        return sorted({*places, *(at for at, index in enumerate(columns) if index in self._loose)})

    def _is_loose(self, index: int) -> bool:
        """Whether a row that has the value of a key column may have another text there, such as one in another case."""
        column = self.mapping.column(index)
        return self.mapping.single and not column.exact and _is_text(column) and column.base_type != "float"

    def _kept(self, columns: Sequence[int]) -> list[str]:
        """The columns that an update of others would change, although the source did not: they are set to themselves."""
        return [self._names[index] for index in self._renewed if index not in columns]

    def _where(self, columns: Sequence[int], values: Sequence[Value], places: Sequence[int]) -> bytes:
        """The condition that finds one row. If several rows may be equal, only the first is changed."""
        pairs = [(columns[place], values[place]) for place in places]
        condition = b" AND ".join(self._equal(*pair) for pair in pairs) or b"TRUE"
        return condition if self._search.finds_one(pairs) else condition + b" LIMIT 1"

    def _equal(self, index: int, value: Value) -> bytes:
        """The condition that a column has a value: exactly this one, unless a unique index tells the rows apart."""
        column = self.mapping.column(index)
        name = self._names[index].encode()
        if value is None:
            return name + b" IS NULL"
        literal = text_literal(value) if column.base_type in LABELED else self._value(index, value)
        if column.base_type == "float":
            return b"%s=CAST(%s AS FLOAT)" % (name, literal)
        if column.base_type in GEOMETRIES:
            return b"ST_AsBinary(%s)=ST_AsBinary(%s)" % (name, literal)
        if column.base_type == "vector":
            return b"CAST(%s AS BINARY)=%s" % (name, literal)  # MySQL compares vectors only with each other
        equal = b"%s=%s" % (name, literal)
        if column.exact or not _is_text(column):
            return equal
        exactly = b"CAST(CONVERT(%s USING utf8mb4) AS BINARY)=%s" % (name, bytes_literal(value))
        if index not in self._key or self._search.whole_row:
            return exactly
        return equal if self.mapping.single else equal + b" AND " + exactly  # an index can find the row by the first

    def _value(self, index: int, value: Value) -> bytes:
        return NULL if value is None else self._literals_of(index)((value,))[0]

    def _literals_of(self, index: int) -> Literals:
        """The function that makes the literals of a column."""
        found = self._literals.get(index)
        if found is None:
            source = self.mapping.source.columns[index].type_name
            found = self._literals[index] = literals_of(source, self.mapping.column(index))
        return found


def _unlabeled(mapping: TableMapping) -> Iterator[tuple[int, bytes]]:
    """The columns from ENUM to ENUM whose error value is not a label of the target, each with a label."""
    for index, column in enumerate(mapping.columns):
        if column is None or column.base_type != "enum" or type_word(mapping.source.columns[index].type_name) != "enum":
            continue
        labels = labels_of(column.type_name)
        if "" not in labels:
            yield index, labels[0].encode()


def _is_text(column: TargetColumn) -> bool:
    return column.base_type not in BINARIES and column.base_type not in ("decimal", "double", "bit")


def _parts(rows: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """The rows in parts of limited size, each with one row at least."""
    if sum(map(len, rows)) <= STATEMENT_BYTES:
        yield rows
        return
    first = size = 0
    for place, row in enumerate(rows):
        if size and size + len(row) > STATEMENT_BYTES:
            yield rows[first:place]
            first, size = place, 0
        size += len(row)
    yield rows[first:]
