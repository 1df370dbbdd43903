"""The statements of checkpoint tables, which differ little between databases: a connector gives the expressions.

Where a parameter is ``%s``, a connector doubles percent signs in names and expressions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Final

from ggshell.errors import ConflictError, NotFoundError
from ggshell.pipeline.apply.checkpoint_table import (
    CREATED,
    VERSION,
    Columns,
    from_columns,
    to_columns,
    transaction_table,
)
from ggshell.pipeline.apply.target import CheckpointRow
from ggshell.types import TableName, TrailPosition

_MAIN: Final = """CREATE TABLE {table} (
  group_name varchar(8) NOT NULL, group_key bigint NOT NULL, seqno integer, rba bigint NOT NULL, audit_ts varchar(29),
  create_ts {moment} NOT NULL, last_update_ts {moment} NOT NULL, current_dir varchar(255) NOT NULL,
  log_bsn varchar(128), log_csn varchar(128), log_xid varchar(128), log_cmplt_csn varchar(128),
  log_cmplt_xids varchar(2000), version integer, PRIMARY KEY (group_name, group_key)){options}"""
_TRANSACTIONS: Final = """CREATE TABLE {table} (
  group_name varchar(8) NOT NULL, group_key bigint NOT NULL, log_cmplt_csn varchar(128) NOT NULL,
  log_cmplt_xids_seq integer NOT NULL, log_cmplt_xids varchar(2000) NOT NULL,
  PRIMARY KEY (group_name, group_key, log_cmplt_csn, log_cmplt_xids_seq)){options}"""
_UPGRADES: Final = {"log_bsn": "varchar(128)", "log_cmplt_csn": "varchar(128)", "log_cmplt_xids": "varchar(2000)"}
COLUMNS: Final = ", ".join(Columns._fields)


class SqlCheckpointTables(ABC):
    """The checkpoint tables of a database, over its connection.

    ``mark``: a parameter; ``now``: the time of a change of a row; ``clock``: the current time as text, to the second;
    ``moment``: the type of a time; ``main_options`` and ``names_options``: the ends of the statements that create the tables;
    ``keeping``: the end of an INSERT that leaves an existing row unchanged; ``mine``: the condition for a group's rows.
    """

    mark: ClassVar[str] = "%s"
    now: ClassVar[str]
    clock: ClassVar[str]
    moment: ClassVar[str] = "timestamp"
    main_options: ClassVar[str] = ""
    names_options: ClassVar[str] = ""
    keeping: ClassVar[str] = " ON CONFLICT DO NOTHING"

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.mine = f"group_name = {self.mark} AND group_key = {self.mark}"

    @abstractmethod
    def ask(self, text: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows. Raises DatabaseError."""

    @abstractmethod
    def change(self, text: str, values: Sequence[Any]) -> int:
        """Run a statement that changes rows and return how many there were."""

    @abstractmethod
    def transaction(self) -> AbstractContextManager[object]:
        """A transaction: all changes within it are made, or none."""

    @abstractmethod
    def quoted(self, table: TableName) -> str:
        """The name of a table in a statement."""

    @abstractmethod
    def exists(self, table: TableName) -> bool: ...

    @abstractmethod
    def comment(self, table: TableName) -> str:
        """The comment of a table; empty if it has none."""

    @abstractmethod
    def columns(self, table: TableName) -> set[str]:
        """The names of a table's columns."""

    @abstractmethod
    def busy(self, table: TableName) -> list[str]:
        """The groups of the table's rows that a Replicat of any home is applying now."""

    @staticmethod
    @abstractmethod
    def seconds(moment: str) -> str:
        """SQL for a time as text, to the second."""

    def create(self, table: TableName) -> None:
        """Create both tables.

        A transaction table that was left without its checkpoint table is kept, because it records what is applied. Raises
        ConflictError when the checkpoint table exists.
        """
        beside = transaction_table(table)
        left = self.exists(beside)
        if self.exists(table):
            hint = "" if left else f"run UPGRADE CHECKPOINTTABLE {table} to add the missing {beside}"
            raise ConflictError(f"checkpoint table {table} already exists", hint=hint)
        with self.transaction():
            self.prepare_schema(table.owner)
            if not left:
                self._create_names(beside)
            self.create_main(table, f"{CREATED}{self.ask(f'SELECT {self.clock}')[0][0]}")

    def prepare_schema(self, schema: str) -> None:  # noqa: B027 - a database without schemas has nothing to do
        """Create the schema, where CREATE TABLE may be expected to do it."""

    def create_main(self, table: TableName, comment: str) -> None:
        """Create the table with the groups' rows and with a comment."""
        self.ask(self.main(self.quoted(table)))
        self.ask(f"COMMENT ON TABLE {self.quoted(table)} IS '{comment}'")

    @classmethod
    def script(cls, table: str) -> str:
        """The statements that create both tables, to run manually when the login may not create them."""
        return f"{cls.main(table)};\n\n{cls._transactions(f'{table}_lox')};\n"

    @classmethod
    def main(cls, table: str) -> str:
        """The statement that creates the table with the groups' rows."""
        return _MAIN.format(table=table, moment=cls.moment, options=cls.main_options)

    @classmethod
    def _transactions(cls, table: str) -> str:
        return _TRANSACTIONS.format(table=table, options=cls.names_options)

    def _create_names(self, table: TableName) -> None:
        self.ask(self._transactions(self.quoted(table)))

    def created(self, table: TableName) -> str:
        """When the table was created. For a table of another program, when its first row was; empty if it has no rows."""
        self.require(table)
        comment = self.comment(table)
        if comment.startswith(CREATED):
            return comment.removeprefix(CREATED)
        return self.ask(f"SELECT {self.seconds('min(create_ts)')} FROM {self.quoted(table)}")[0][0] or ""

    def upgrade(self, table: TableName) -> list[str]:
        """Add what a table of an older release lacks. Return the names of the added columns and tables."""
        self.require(table)
        have = self.columns(table)
        added = [name for name in _UPGRADES if name not in have]
        beside = transaction_table(table)
        with self.transaction():
            for name in added:
                self.ask(f"ALTER TABLE {self.quoted(table)} ADD COLUMN {name} {_UPGRADES[name]}")
            if not self.exists(beside):
                self._create_names(beside)
                added.append(beside.name)
            self.ask(f"UPDATE {self.quoted(table)} SET version = {self.mark}", [VERSION])
        return added

    def drop(self, table: TableName) -> None:
        """Drop both tables. Raises NotFoundError when the checkpoint table does not exist."""
        self.require(table)
        with self.transaction():
            self.ask(f"DROP TABLE {self.quoted(table)}")
            self.ask(f"DROP TABLE IF EXISTS {self.quoted(transaction_table(table))}")

    def require(self, table: TableName) -> None:
        """Raise NotFoundError unless the checkpoint table exists."""
        if not self.exists(table):
            raise NotFoundError(f"checkpoint table {table} does not exist", hint=f"ADD CHECKPOINTTABLE {table}")

    def groups(self, table: TableName) -> list[tuple[str, int, str, str]]:
        """The (group, key, high watermark CSN, last update) of every row."""
        self.require(table)
        rows = self.ask(
            f"SELECT group_name, group_key, coalesce(log_csn, ''), {self.seconds('last_update_ts')}"
            f" FROM {self.quoted(table)} ORDER BY 1, 2"
        )
        return [(str(row[0]), int(row[1]), str(row[2]), str(row[3])) for row in rows]

    def cleanup(self, table: TableName, group: str, key: int | None = None) -> int:
        """Remove a group's rows (of one home if ``key`` is given). Return how many there were in the checkpoint table."""
        self.require(table)
        with self.transaction():
            return self._remove(table, group, key)

    def forget(self, table: TableName, group: str, key: int) -> None:
        """Delete the rows of a deleted group, and what its sessions have left in the database."""
        self.cleanup(table, group, key)

    def _remove(self, table: TableName, group: str, key: int | None) -> int:
        where = f"group_name = {self.mark} AND group_key = coalesce({self.mark}, group_key)"
        beside = transaction_table(table)
        if self.exists(beside):
            self.change(f"DELETE FROM {self.quoted(beside)} WHERE {where}", [group.upper(), key])
        return self.change(f"DELETE FROM {self.quoted(table)} WHERE {where}", [group.upper(), key])

    def read(self, table: TableName, group: str, key: int) -> CheckpointRow | None:
        """The row of a group, or None if it has none."""
        rows = self.ask(f"SELECT {COLUMNS} FROM {self.quoted(table)} WHERE {self.mine}", [group.upper(), key])
        return from_columns(Columns(rows[0][0] or 0, *rows[0][1:])) if rows else None

    def insert(self, table: TableName, group: str, key: int, row: CheckpointRow, home: str) -> bool:
        """Insert a group's first row. Return False if the group already has a row, which stays unchanged."""
        if self.read(table, group, key) is not None:
            return False
        marks = ", ".join([self.mark] * (2 + len(Columns._fields)))
        added = self.change(
            f"INSERT INTO {self.quoted(table)} (group_name, group_key, {COLUMNS}, create_ts, last_update_ts, current_dir,"
            f" version) VALUES ({marks}, {self.now}, {self.now}, {self.mark}, {self.mark}){self.keeping}",
            [group.upper(), key, *to_columns(row), home[:255], VERSION],
        )
        return added > 0

    def move(self, table: TableName, group: str, key: int, position: TrailPosition) -> None:
        """Set a group's position in its trail. What it records about applied transactions stays."""
        text = f"UPDATE {self.quoted(table)} SET seqno = {self.mark}, rba = {self.mark} WHERE {self.mine}"
        self.ask(text, [position.seqno, position.rba, group.upper(), key])

    def replace(self, table: TableName, group: str, key: int, row: CheckpointRow, home: str) -> None:
        """Replace a group's row, regardless of its content (ALTER REPLICAT), within the caller's transaction."""
        self.require(table)
        self._remove(table, group, key)
        self.insert(table, group, key, row, home)

    def update(self, table: TableName, group: str, key: int, columns: Columns) -> bool:
        """Update a group's row within the caller's transaction. Return False if the row no longer exists."""
        sets = ", ".join(f"{name} = {self.mark}" for name in Columns._fields)
        text = f"UPDATE {self.quoted(table)} SET {sets}, last_update_ts = {self.now} WHERE {self.mine}"
        return self.change(text, [*columns, group.upper(), key]) > 0
