"""The checkpoint table in PostgreSQL. Its columns and types are GoldenGate's, so GoldenGate's tools can read it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any, Final

from ggshell.connectors.applier_checkpoint_tables import ApplierCheckpointTables
from ggshell.connectors.postgres.describe import table_id
from ggshell.connectors.postgres.origins import drop_origins
from ggshell.connectors.postgres.session import execute, transaction
from ggshell.connectors.sql_checkpoint_tables import COLUMNS
from ggshell.pipeline.apply.checkpoint_table import to_columns
from ggshell.pipeline.apply.target import CheckpointRow
from ggshell.types import TableName, postgres_literal, quote_table

GROUP_LOCK = 0x6767_0000_0000
"""Combined with a group's key, this is the advisory lock that its Replicat holds while it is connected."""
_UPDATE: Final = """WITH moved AS (UPDATE {table} SET ({columns}) = ROW({values}), last_update_ts = localtimestamp
  WHERE group_name = {group} AND group_key = {key} RETURNING 1) SELECT 1 / count(*)::int{more} FROM moved"""


class PostgresCheckpointTables(ApplierCheckpointTables):
    """The checkpoint tables of a database."""

    now = "localtimestamp"
    clock = "localtimestamp(0)::text"
    main_options = " WITH (fillfactor = 20)"
    any_of = "= ANY(%s)"

    def ask(self, text: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return execute(self.connection, text, list(values))

    def change(self, text: str, values: Sequence[Any]) -> int:
        return len(self.ask(f"{text} RETURNING 1", values))

    def transaction(self) -> AbstractContextManager[object]:
        return transaction(self.connection)

    def quoted(self, table: TableName) -> str:
        return quote_table(table).replace("%", "%%")

    def exists(self, table: TableName) -> bool:
        return table_id(self.connection, table) is not None

    def comment(self, table: TableName) -> str:
        return str(self.ask("SELECT obj_description(%s::regclass)", [quote_table(table)])[0][0] or "")

    def columns(self, table: TableName) -> set[str]:
        text = "SELECT attname FROM pg_attribute WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped"
        return {row[0] for row in self.ask(text, [table_id(self.connection, table)])}

    def busy(self, table: TableName) -> list[str]:
        """The groups of the table's rows whose lock a Replicat of any home holds."""
        rows = self.ask(
            f"SELECT DISTINCT group_name FROM {self.quoted(table)} JOIN pg_locks ON locktype = 'advisory' AND objsubid = 1"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
            " AND classid::bigint << 32 | objid::bigint = group_key | %s ORDER BY 1",
            [GROUP_LOCK],
        )
        return [str(row[0]) for row in rows]

    def forget(self, table: TableName, group: str, key: int) -> None:
        super().forget(table, group, key)
        drop_origins(self.connection, group, key)

    @staticmethod
    def seconds(moment: str) -> str:
        return f"{moment}::timestamp(0)::text"


@lru_cache(maxsize=4096)
def update_text(table: TableName, more: str = "") -> str:
    """The UPDATE of a group's row, with the parameters of ``update_values``. It fails if the row no longer exists.

    ``more`` is an expression to return in addition.
    """
    marks = ", ".join(f"${number}::{kind}" for number, kind in enumerate(_KINDS, 1))
    count = len(_KINDS)
    return _UPDATE.format(
        table=quote_table(table),
        columns=COLUMNS,
        values=marks,
        group=f"${count + 1}",
        key=f"${count + 2}",
        more=f", {more}" if more else "",
    )


_KINDS = ("integer", "bigint", "text", "text", "text", "text", "text", "text")


def update_values(row: CheckpointRow, group: str, key: int) -> list[bytes | None]:
    """The parameters of ``update_text``, as text."""
    values = [None if value is None else str(value).encode() for value in to_columns(row)]
    return [*values, group.upper().encode(), b"%d" % key]


def update_literally(table: TableName, row: CheckpointRow, group: str, key: int) -> str:
    """The UPDATE of ``update_text`` without parameters, for a query of several statements."""
    values = ", ".join(_literal(value) for value in to_columns(row))
    return _UPDATE.format(
        table=quote_table(table),
        columns=COLUMNS,
        values=values,
        group=_literal(group.upper()),
        key=key,
        more="",
    )


def _literal(value: int | str | None) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, int):
        return str(value)
    return postgres_literal(value)
