"""Processes the heartbeats in batches: finds them by their table's definition, timestamps them, and puts them back in place.

A batch without a heartbeat table passes after one comparison. The number of rows never changes, so positions in the batch
stay valid: a heartbeat that is dropped is moved to the table ``DROPPED``, which no process delivers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ggshell.pipeline.heartbeat.row import Beat, Layout, layout_of
from ggshell.record.change import ChangeBatch
from ggshell.record.definition import TableDefinition
from ggshell.record.operation import OPERATIONS, IoType
from ggshell.record.transaction import TransactionHeader
from ggshell.types import TableName

OWNER = "ggshell heartbeats"
"""The schema of tables that exist only in batches."""

DROPPED = TableDefinition(TableName(OWNER, "nowhere"), (), ())

Wanted = Callable[[TableName], bool]
Stamp = Callable[[Beat, Layout, TransactionHeader], "Beat | None"]
Output = Callable[[Layout], "tuple[TableDefinition, int, Callable[[Beat], bytes]]"]
"""Returns (definition, operation, encoder) of the rows that replace a table's heartbeats."""


def unchanged(layout: Layout) -> tuple[TableDefinition, int, Callable[[Beat], bytes]]:
    """Keep heartbeats as rows of their own table."""
    return layout.definition, IoType.FIELD_COMP, layout.encode


class HeartbeatProcessor:
    """Processes heartbeats at one hop.

    ``names`` contains the heartbeat tables seen so far; ``wanting`` lets them through a table filter.
    """

    def __init__(self, stamp: Stamp, output: Output = unchanged) -> None:
        self._stamp = stamp
        self._output = output
        self._layouts: dict[TableDefinition, Layout | None] = {}
        self._tables: tuple[TableDefinition, ...] = ()
        self._here: dict[int, Layout] = {}
        self.names: set[TableName] = set()

    def stamp_heartbeats(self, batch: ChangeBatch) -> ChangeBatch:
        """Return the batch with its heartbeats timestamped, or the same batch if it has no heartbeat table.

        Raises ValueError if a heartbeat cannot be decoded.
        """
        if batch.tables != self._tables:
            self._add_tables(batch.tables)
        return self._with_stamps(batch) if self._here else batch

    def wanting(self, wanted: Wanted, never: frozenset[TableName] = frozenset()) -> Wanted:
        """Return a table filter that accepts heartbeat tables in addition to ``wanted``; ``never``: tables it rejects."""

        def wants(table: TableName) -> bool:
            return table in self.names or (table.owner != OWNER and table not in never and wanted(table))

        return wants

    def _add_tables(self, tables: tuple[TableDefinition, ...]) -> None:
        self._tables, self._here = tables, {}
        for number, table in enumerate(tables):
            if table not in self._layouts:
                self._layouts[table] = layout_of(table)
            layout = self._layouts[table]
            if layout is not None:
                self._here[number] = layout
                self.names.add(table.name)

    def _with_stamps(self, batch: ChangeBatch) -> ChangeBatch:
        rows = np.flatnonzero(np.isin(batch.table, list(self._here)))
        tables = list(batch.tables)
        for number, layout in self._here.items():
            tables[number] = self._output(layout)[0]
        if not len(rows):
            return replace(batch, tables=tuple(tables))
        low, high = int(batch.start.min()), int((batch.start + batch.length).max())
        table, io_type = batch.table.copy(), batch.io_type.copy()
        start, length = batch.start - low, batch.length.copy()
        images: list[bytes] = []
        end, pieces, place = high - low, batch.pieces, 0
        for row in rows.tolist():
            while row >= pieces[place].first + pieces[place].count:
                place += 1
            layout = self._here[int(batch.table[row])]
            beat = self._stamped(int(batch.io_type[row]), batch.images(row)[1], layout, pieces[place].header)
            if beat is None:
                table[row] = len(batch.tables)
                continue
            _, io_type[row], encode = self._output(layout)
            images.append(encode(beat))
            start[row], length[row] = end, len(images[-1])
            end += len(images[-1])
        buffer = b"".join([bytes(batch.buffer[low:high]), *images])
        return replace(
            batch,
            tables=(*tables, DROPPED),
            table=table,
            io_type=io_type,
            buffer=buffer,
            start=start,
            length=length,
        )

    def _stamped(self, io_type: int, data: bytes, layout: Layout, header: TransactionHeader) -> Beat | None:
        """Timestamp a row, or return None to drop it. Only updates, and inserts into a seed table, are heartbeats."""
        if io_type not in OPERATIONS["UPDATES"] and not (io_type == IoType.INSERT and layout.seed):
            return None
        return self._stamp(layout.decode(data), layout, header)
