"""The checkpoint table in MariaDB or MySQL. It has the same columns as in PostgreSQL; its times are in UTC."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

from ggshell.connectors.applier_checkpoint_tables import ApplierCheckpointTables
from ggshell.connectors.mysql.catalog import table_exists
from ggshell.connectors.mysql.session import execute, transaction
from ggshell.connectors.mysql.statements import quote_table
from ggshell.pipeline.apply.checkpoint_table import Columns, to_columns, transaction_table
from ggshell.pipeline.apply.target import CheckpointRow
from ggshell.types import TableName, text_literal

MOST_APPLIERS = 128
_FORM: Final = "\n  ENGINE = InnoDB CHARACTER SET utf8mb4"
_DDL: Final = -1
"""The number of the row of the transaction table that names the DDL statement that was begun last."""


def group_lock(key: int) -> str:
    """The name of the lock that a group's Replicat holds while it is connected."""
    return f"ggshell:{key}"


def applier_lock(key: int, number: int) -> str:
    """The name of the lock that an applier of a parallel Replicat holds."""
    return f"{group_lock(key)}:{number}"


class MysqlCheckpointTables(ApplierCheckpointTables):
    """The checkpoint tables of a server. It commits each DDL statement at once, also within a transaction."""

    now = "UTC_TIMESTAMP(6)"
    clock = "CAST(UTC_TIMESTAMP() AS CHAR)"
    moment = "datetime(6)"
    main_options = _FORM
    names_options = _FORM
    keeping = " ON DUPLICATE KEY UPDATE group_name = VALUES(group_name)"
    any_of = "IN %s"

    def ask(self, text: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return execute(self.connection, text, list(values))

    def change(self, text: str, values: Sequence[Any]) -> int:
        self.ask(text, values)
        return int(self.ask("SELECT ROW_COUNT()")[0][0])

    def transaction(self) -> AbstractContextManager[object]:
        return transaction(self.connection)

    def quoted(self, table: TableName) -> str:
        return quote_table(table).replace("%", "%%")

    def exists(self, table: TableName) -> bool:
        return table_exists(self.connection, table)

    def comment(self, table: TableName) -> str:
        text = "SELECT TABLE_COMMENT FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
        return str(self.ask(text, [*table])[0][0] or "")

    def columns(self, table: TableName) -> set[str]:
        text = "SELECT LOWER(COLUMN_NAME) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
        return {str(row[0]) for row in self.ask(text, [*table])}

    def busy(self, table: TableName) -> list[str]:
        """The groups of the table's rows whose lock a Replicat of any home holds."""
        found = f"SELECT DISTINCT group_name FROM {self.quoted(table)}"
        text = f"{found} WHERE IS_USED_LOCK(CONCAT(%s, group_key)) IS NOT NULL ORDER BY 1"
        return [str(row[0]) for row in self.ask(text, [group_lock(0)[:-1]])]

    @staticmethod
    def seconds(moment: str) -> str:
        return f"DATE_FORMAT({moment}, '%%Y-%%m-%%d %%H:%%i:%%s')"

    def create_main(self, table: TableName, comment: str) -> None:
        self.ask(f"{self.main(self.quoted(table))} COMMENT '{comment}'")

    def begun_ddl(self, table: TableName, group: str, key: int) -> str:
        """The text of ``begin_ddl`` for the last DDL statement that a group has begun; empty if there is none."""
        beside = self.quoted(transaction_table(table))
        text = f"SELECT log_cmplt_xids FROM {beside} WHERE {self.mine} AND log_cmplt_xids_seq = {_DDL}"
        found = self.ask(text, [group.upper(), key])
        return str(found[0][0]) if found else ""

    def begin_ddl(self, table: TableName, group: str, key: int, statement: str) -> None:
        """Note that a DDL statement begins.

        The server commits it at once, so the group's row cannot say that it was executed.
        """
        self.ask(
            f"INSERT INTO {self.quoted(transaction_table(table))} (group_name, group_key, log_cmplt_csn, log_cmplt_xids_seq,"
            f" log_cmplt_xids) VALUES (%s, %s, '0', {_DDL}, %s)"
            " ON DUPLICATE KEY UPDATE log_cmplt_xids = VALUES(log_cmplt_xids)",
            [group.upper(), key, statement],
        )


def update_text(table: TableName, row: CheckpointRow, group: str, key: int) -> bytes:
    """The UPDATE of a group's row; the caller checks that it has found the row."""
    sets = ",".join(f"{name}={_literal(value)}" for name, value in zip(Columns._fields, to_columns(row), strict=True))
    where = f"group_name={text_literal(group.upper())} AND group_key={key}"
    return f"UPDATE {quote_table(table)} SET {sets},last_update_ts=UTC_TIMESTAMP(6) WHERE {where}".encode()


def names_text(table: TableName, group: str, key: int, csn: str, sequence: int, ids: str) -> bytes:
    """The INSERT of a row with ids of applied transactions."""
    values = f"{text_literal(group.upper())},{key},{text_literal(csn)},{sequence},{text_literal(ids)}"
    columns = "group_name, group_key, log_cmplt_csn, log_cmplt_xids_seq, log_cmplt_xids"
    return f"INSERT INTO {quote_table(transaction_table(table))} ({columns}) VALUES ({values})".encode()


def _literal(value: int | str | None) -> str:
    if value is None:
        return "NULL"
    return str(value) if isinstance(value, int) else text_literal(value)
