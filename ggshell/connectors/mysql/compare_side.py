"""What COMPARE asks of a MariaDB or MySQL database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from ggshell.connectors.mysql.catalog import named_tables
from ggshell.connectors.mysql.literals import BINARIES, GEOMETRIES, INTEGERS
from ggshell.connectors.mysql.repair import Repaired, script
from ggshell.connectors.mysql.session import connect, execute, quote_name, server_version
from ggshell.connectors.mysql.statements import quote_table
from ggshell.connectors.mysql.target_tables import target_table
from ggshell.errors import NO_TABLE, DatabaseError, GgsError, NotFoundError
from ggshell.pipeline.compare.portable import (
    DIGESTED,
    EXACT_FLOATS,
    FLOAT_LIMIT,
    FLOAT_PART,
    FLOAT_SCALE,
    HASH_DIGITS,
    Family,
    PortableColumn,
    PortableSide,
    common,
)
from ggshell.pipeline.heartbeat.names import INCOMING, OUTGOING
from ggshell.types import TableName

if TYPE_CHECKING:
    from pymysql.connections import Connection

    from ggshell.pipeline.compare.tables import ComparedColumns, ComparedDatabase, ComparedTable

_FAMILIES: Final = {
    **dict.fromkeys(INTEGERS, Family.INTEGER),
    **dict.fromkeys(BINARIES, Family.BYTES),
    **dict.fromkeys(GEOMETRIES, Family.BYTES),
    "json": Family.DOCUMENT,
    "year": Family.INTEGER,
    "decimal": Family.DECIMAL,
    "float": Family.FLOAT,
    "double": Family.FLOAT,
    "bit": Family.BITS,
    "date": Family.DATE,
    "time": Family.TIME,
    "datetime": Family.MOMENT,
    "timestamp": Family.MOMENT,
}
_COLUMNS: Final = """
SELECT c.COLUMN_NAME, LOWER(c.DATA_TYPE), LOWER(c.COLUMN_TYPE), COALESCE(c.GENERATION_EXPRESSION, ''), s.SEQ_IN_INDEX
  FROM information_schema.COLUMNS c LEFT JOIN information_schema.STATISTICS s ON s.TABLE_SCHEMA = c.TABLE_SCHEMA
   AND BINARY s.TABLE_NAME = BINARY c.TABLE_NAME AND s.COLUMN_NAME = c.COLUMN_NAME AND s.INDEX_NAME = 'PRIMARY'
 WHERE c.TABLE_SCHEMA = %s AND c.TABLE_NAME = %s ORDER BY c.ORDINAL_POSITION"""
_OWN_TEXTS: Final = frozenset({Family.FLOAT, Family.DOCUMENT})
"""Families whose portable text is not exact."""
_CHECKPOINTS: Final = ("group_name", "group_key", "seqno", "rba", "create_ts", "last_update_ts", "current_dir")
_TRANSACTIONS: Final = ("group_name", "group_key", "log_cmplt_csn", "log_cmplt_xids_seq", "log_cmplt_xids")
_HEARTBEATS: Final = ("local_database", "remote_database", *INCOMING, *OUTGOING)
_FIND: Final = """
SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.COLUMNS WHERE LOWER(COLUMN_NAME) IN %s
 GROUP BY TABLE_SCHEMA, TABLE_NAME HAVING COUNT(*) = %s"""


_TOO_LONG: Final = "a binary value whose digits are longer than max_allowed_packet"
"""What is shown instead of such a value if it is compared with a text. The rows are reported as different."""


class MysqlColumn(NamedTuple):
    """A column from the information schema. ``key``: its place in the primary key, or None."""

    name: str
    kind: str
    type: str
    expression: str = ""
    key: int | None = None

    @property
    def family(self) -> Family:
        return _FAMILIES.get(self.kind, Family.TEXT)


@dataclass(frozen=True, slots=True)
class MysqlColumns:
    """What is compared of a table: the columns with stored values, and those that identify a row."""

    columns: tuple[MysqlColumn, ...]
    key_is_complete: ClassVar[bool] = True

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def key_names(self) -> tuple[str, ...]:
        keyed = [(column.key, column.name) for column in self.columns if column.key is not None]
        return tuple(name for _, name in sorted(keyed))

    @property
    def families(self) -> Mapping[str, Family]:
        return {column.name: column.family for column in self.columns}


class MysqlComparison(NamedTuple):
    """A database that is compared, with its connection and login."""

    connection: Connection[Any]
    login: str
    mariadb: bool

    @classmethod
    def of(cls, connection: Connection[Any], login: str) -> MysqlComparison:
        """Ask the server what it is. Raises DatabaseError if it cannot hash rows."""
        mariadb = server_version(connection).mariadb
        if not mariadb:
            _require_md5(connection)
        return cls(connection, login, mariadb)

    def tables(self, pattern: str) -> list[TableName]:
        return named_tables(self.connection, pattern)

    def own_tables(self) -> set[TableName]:
        found: set[TableName] = set()
        for columns in (_CHECKPOINTS, _TRANSACTIONS, _HEARTBEATS):
            found |= {TableName(*row) for row in execute(self.connection, _FIND, [list(columns), len(columns)])}
        return found

    def columns(self, table: TableName) -> MysqlColumns:
        rows = execute(self.connection, _COLUMNS, [*table])
        if not rows:
            raise NotFoundError(f"table {table} does not exist", code=NO_TABLE, hint="check the name and its case")
        return MysqlColumns(tuple(column for column in (MysqlColumn(*row) for row in rows) if not column.expression))

    def side(self, table: TableName, columns: ComparedColumns, other: ComparedColumns) -> PortableSide:
        own = {column.name: column for column in self.columns(table).columns}
        families = {name: common(family, other.families[name]) for name, family in columns.families.items()}
        alike = isinstance(columns, MysqlColumns) and isinstance(other, MysqlColumns)
        found = [_portable(own[name], family, alike=alike, mariadb=self.mariadb) for name, family in families.items()]
        rows = quote_table(table).replace("%", "%%")
        return PortableSide(_Dialect(self.connection, self.login, mariadb=self.mariadb), rows, found, columns.key_names)

    def time(self) -> str:
        return str(execute(self.connection, "SELECT CAST(UTC_TIMESTAMP() AS CHAR)")[0][0])

    def can_repair(self, source: ComparedDatabase) -> bool:
        return isinstance(source, MysqlComparison)

    def repair_script(self, found: Sequence[ComparedTable], when: str, *, replicated: bool) -> str:
        return script([self._repaired(each) for each in found if each.differences], when, replicated=replicated)

    def _repaired(self, found: ComparedTable) -> Repaired:
        target = target_table(self.connection, found.target, any_engine=True)
        if target is None:
            raise NotFoundError(f"table {found.target} no longer exists", hint="run COMPARE again")
        theirs = self.columns(found.target).families
        families = {name: common(family, theirs[name]) for name, family in found.columns.families.items()}
        return Repaired(target, families, found.differences)


def _require_md5(connection: Connection[Any]) -> None:
    """Raise DatabaseError if the server has no function MD5: MySQL 9.6 has moved it to a component."""
    try:
        execute(connection, "SELECT MD5('')")
    except DatabaseError as error:
        raise DatabaseError(
            "the server has no function MD5 (component_classic_hashing)",
            hint="INSTALL COMPONENT 'file://component_classic_hashing' on MySQL 9.6 and later",
        ) from error


def _portable(column: MysqlColumn, family: Family, *, alike: bool, mariadb: bool) -> PortableColumn:
    """``alike``: the value is compared with one of the same kind of database."""
    if alike and family in _OWN_TEXTS:
        text = _own_text(column)
    elif family is Family.DOCUMENT:
        text = _document(column, mariadb=mariadb)
    else:
        text = _text(column, family)
    return PortableColumn(column.name, text, family, _digest(column, family, text) if family in DIGESTED else "")


def _digest(column: MysqlColumn, family: Family, text: str) -> str:
    """The MD5 of a value. It differs from that of any other value, and is not NULL, if the text is too long for the server."""
    if column.family is Family.BYTES and family is not Family.BYTES:
        name = quote_name(column.name).replace("%", "%%")
        return f"COALESCE(MD5({_digits(name)}), MD5({name}))"
    return f"MD5({text})"


def _digits(name: str) -> str:
    """A binary value as text; NULL if this is longer than the server's ``max_allowed_packet``."""
    return f"CONCAT(CHAR(92, 120 USING utf8mb4), LOWER(HEX({name})))"


def _own_text(column: MysqlColumn) -> str:
    """The text of a value that is compared with one of the same kind of database."""
    name = quote_name(column.name).replace("%", "%%")
    return f"CAST({name} + 0e0 AS CHAR)" if column.family is Family.FLOAT else f"CONVERT({name} USING utf8mb4)"


def _text(column: MysqlColumn, family: Family) -> str:
    name = quote_name(column.name).replace("%", "%%")
    match family:
        case Family.TRUTH | Family.INTEGER:
            return f"CAST({name} + 0 AS CHAR)"
        case Family.DECIMAL:
            return _trimmed(f"CAST({name} AS CHAR)", whole=column.kind in INTEGERS or ",0)" in column.type)
        case Family.FLOAT:
            return _float_text(f"({name} + 0e0)")
        case Family.BITS | Family.SOURCE_TEXT if column.family is Family.BITS:
            return f"LPAD(BIN({name}), {column.type.partition('(')[2].rstrip(')')}, '0')"
        case Family.BYTES if column.kind == "vector":
            return f"CAST({name} AS BINARY)"  # MySQL compares vectors only with each other
        case Family.BYTES:
            return name  # the digits of the value may be longer than max_allowed_packet: ``_Dialect.ask`` makes them
        case Family.DATE:
            return f"DATE_FORMAT({name}, '%%Y-%%m-%%d')"
        case Family.TIME | Family.DURATION:
            return f"TIME_FORMAT({name}, '%%H:%%i:%%s.%%f')"
        case Family.MOMENT:
            return f"DATE_FORMAT({name}, '%%Y-%%m-%%d %%H:%%i:%%s.%%f')"
        case _ if column.family is Family.BYTES:
            return f"IF({name} IS NULL, NULL, COALESCE({_digits(name)}, '{_TOO_LONG}'))"
        case _:
            return f"CONVERT({name} USING utf8mb4)"


def _document(column: MysqlColumn, *, mariadb: bool) -> str:
    """A document in the form in which PostgreSQL prints a jsonb; a text that is not a document as it is."""
    name = quote_name(column.name).replace("%", "%%")
    text = f"CONVERT({name} USING utf8mb4)"
    if mariadb:
        return f"COALESCE(JSON_LOOSE({name}), {text})"
    if column.family is Family.DOCUMENT:  # MySQL prints it in this form
        return text
    return f"IF(JSON_VALID({name}), CONVERT(CAST({name} AS JSON) USING utf8mb4), {text})"


def _float_text(value: str) -> str:
    """The text of a floating-point number; NULL for NULL."""
    high = f"TRUNCATE({value} / {FLOAT_PART}e0, 0)"
    low = f"({value} - {high} * {FLOAT_PART}e0)"
    exact = f"CAST(CAST({high} AS SIGNED) AS DECIMAL(65,0)) * {FLOAT_PART} + CAST({low} AS SIGNED)"
    return (
        f"CASE WHEN ABS({value}) >= 1e35 THEN CONCAT(IF({value} < 0, '-', ''), '{FLOAT_LIMIT}')"
        f" WHEN ABS({value}) >= {EXACT_FLOATS} THEN CAST({exact} AS CHAR)"
        f" ELSE {_trimmed(f'CAST(CAST(CAST({value} AS CHAR) AS DECIMAL(65,{FLOAT_SCALE})) AS CHAR)', whole=False)} END"
    )


def _trimmed(text: str, *, whole: bool) -> str:
    """The text of a number without zeros at its end."""
    return text if whole else f"TRIM(TRAILING '.' FROM TRIM(TRAILING '0' FROM {text}))"


class _Dialect:
    def __init__(self, connection: Connection[Any], login: str, *, mariadb: bool) -> None:
        self._connection = connection
        self._login = login
        self._collation = "utf8mb4_nopad_bin" if mariadb else "utf8mb4_0900_bin"

    def ask(self, query: str, values: Sequence[str]) -> list[tuple[Any, ...]]:
        """Run a query; binary values become hexadecimal digits."""
        rows = execute(self._connection, query, list(values))
        return [tuple(each.hex() if isinstance(each, bytes) else each for each in row) for row in rows]

    def cancel(self) -> None:
        with suppress(GgsError), connect(self._login) as beside:  # the server is gone, so nothing runs any more
            execute(beside, f"KILL QUERY {int(self._connection.thread_id())}")  # type: ignore[no-untyped-call]

    def row(self, columns: Sequence[PortableColumn]) -> str:
        parts = [each.digest or f"CONCAT(CHAR_LENGTH({each.text}), ':', {each.text})" for each in columns]
        parts = [f"COALESCE({part}, '~')" for part in parts]
        # With digests, this text is shorter than its expression. So it is not NULL: the server has accepted the query.
        return f"CONCAT({', '.join(parts)})"

    def hash(self, text: str) -> str:
        return f"CAST(CONV(LEFT(MD5({text}), {HASH_DIGITS}), 16, 10) AS UNSIGNED)"

    def total(self, number: str) -> str:
        return f"CAST(COALESCE(SUM({number}), 0) AS CHAR)"

    def ordered(self, column: PortableColumn) -> str:
        if column.family is Family.INTEGER:
            return f"CAST({column.text} AS DECIMAL(20))"
        text = f"LOWER(HEX({column.text}))" if column.family is Family.BYTES else column.text
        return f"CONVERT({text} USING utf8mb4) COLLATE {self._collation}"

    def mark(self, column: PortableColumn) -> str:
        return "CAST(%s AS DECIMAL(20))" if column.family is Family.INTEGER else "%s"
