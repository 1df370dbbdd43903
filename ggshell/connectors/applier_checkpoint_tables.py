"""The statements with which appliers record their transactions, and with which a group's row follows them."""

from __future__ import annotations

from typing import Any, ClassVar

from ggshell.connectors.sql_checkpoint_tables import SqlCheckpointTables
from ggshell.errors import NotFoundError
from ggshell.pipeline.apply.checkpoint_table import LONGEST_ID, fitting_ids, row_gone, to_columns, transaction_table
from ggshell.pipeline.apply.watermarks import WatermarkState
from ggshell.types import Csn, TableName


class ApplierCheckpointTables(SqlCheckpointTables):
    """The checkpoint tables of a database to which appliers commit concurrently.

    Each records the transactions that it has applied in rows of the transaction table, with numbers above 0. ``any_of``: the
    comparison of a column with a list, a parameter.
    """

    any_of: ClassVar[str]

    def require_both(self, table: TableName) -> None:
        """Raise NotFoundError unless both the checkpoint table and its transaction table exist."""
        self.require(table)
        beside = transaction_table(table)
        if not self.exists(beside):
            raise NotFoundError(
                f"transaction table {beside} of checkpoint table {table} does not exist",
                hint=f"restore it, or run UPGRADE CHECKPOINTTABLE {table} to add it empty",
            )

    def applied_above(self, table: TableName, group: str, key: int, low: Csn | None) -> list[str]:
        """The ids of transactions that appliers of a parallel Replicat have applied above the low watermark.

        They are read from the transaction table.
        """
        if not self.exists(transaction_table(table)):
            return []
        found = self._names(table, group, key, "log_cmplt_csn, log_cmplt_xids", " ORDER BY log_cmplt_xids_seq")
        return [xid for csn, ids in found if ids and (low is None or Csn.parse(csn) > low) for xid in ids.split(",")]

    def named(self, table: TableName, group: str, key: int) -> list[tuple[int, str]]:
        """The numbers of a group's rows in the transaction table, and the ids that they name."""
        found = self._names(table, group, key, "log_cmplt_xids_seq, log_cmplt_xids")
        return [(int(number), str(ids)) for number, ids in found if ids]

    def _names(self, table: TableName, group: str, key: int, columns: str, end: str = "") -> list[tuple[Any, ...]]:
        beside = self.quoted(transaction_table(table))
        text = f"SELECT {columns} FROM {beside} WHERE {self.mine} AND log_cmplt_xids_seq >= 0{end}"
        return self.ask(text, [group.upper(), key])

    def names_begin(self, table: TableName, group: str, key: int) -> None:
        """Insert the marker row into the transaction table, unless it exists.

        While it exists, transactions that are not named in the table are not applied above the group's row.
        """
        self.ask(
            f"INSERT INTO {self.quoted(transaction_table(table))} (group_name, group_key, log_cmplt_csn,"
            f" log_cmplt_xids_seq, log_cmplt_xids) VALUES ({self.mark}, {self.mark}, '0', 0, ''){self.keeping}",
            [group.upper(), key],
        )

    def forget_names(self, table: TableName, group: str, key: int) -> None:
        """Remove the names of transactions that were applied above a row that was removed."""
        beside = self.quoted(transaction_table(table))
        self.ask(f"DELETE FROM {beside} WHERE {self.mine} AND log_cmplt_xids_seq > 0", [group.upper(), key])

    def has_names(self, table: TableName, group: str, key: int) -> bool:
        """Whether the marker row of ``names_begin`` exists. Without it, rows of the transaction table were lost."""
        beside = self.quoted(transaction_table(table))
        text = f"SELECT 1 FROM {beside} WHERE {self.mine} AND log_cmplt_xids_seq = 0"
        return bool(self.ask(text, [group.upper(), key]))

    def advance(self, table: TableName, group: str, key: int, state: WatermarkState) -> None:
        """Move a group's row and remove the names that it has passed, in one transaction. Raises RowGoneError."""
        low, (upper, last) = state.low, state.high
        columns = to_columns(low._replace(same_csn=fitting_ids(low.same_csn, state.applied)))
        columns = columns._replace(
            log_csn=str(upper) if upper is not None else columns.log_csn, log_xid=last[:LONGEST_ID] or None
        )
        with self.transaction():
            if not self.update(table, group, key, columns):
                raise row_gone(group, table)
            if state.finished:
                beside = self.quoted(transaction_table(table))
                text = f"DELETE FROM {beside} WHERE {self.mine} AND log_cmplt_xids_seq {self.any_of}"
                self.ask(text, [group.upper(), key, list(state.finished)])
