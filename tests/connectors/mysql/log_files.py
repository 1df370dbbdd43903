"""Reads the files of a binary log, for the tests: events without checksums, and the rows of its tables as text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ggshell.connectors.mysql.binlog import events
from ggshell.connectors.mysql.binlog.cells import padded
from ggshell.connectors.mysql.binlog.events import EventType
from ggshell.connectors.mysql.binlog.plan import TablePlan
from ggshell.connectors.mysql.binlog.row_events import row_event
from ggshell.connectors.mysql.binlog.table_map import table_map, table_number
from ggshell.connectors.mysql.encode import CapturedTable
from ggshell.pipeline.capture.cache import Chunk
from ggshell.pipeline.capture.source import MessageRun
from ggshell.record.image_rules import ImageRules
from ggshell.record.transaction import TransactionHeader
from ggshell.types import Csn, TableName

MAGIC = b"\xfebin"


def whole_events(data: bytes) -> Iterator[bytes]:
    """The events of a file, with their checksums."""
    assert data[:4] == MAGIC
    place = len(MAGIC)
    while place < len(data):
        size = int.from_bytes(data[place + 9 : place + 13], "little")
        yield data[place : place + size]
        place += size


def events_of(file: Path) -> Iterator[bytes]:
    """The events of a file, without their checksums."""
    checksums = False
    for event in whole_events(file.read_bytes()):
        if events.header(event).kind == EventType.FORMAT_DESCRIPTION:
            checksums = events.format_description(event).checksums
            yield event
            continue
        yield events.whole_event(event, checksums=checksums)


class Row(NamedTuple):
    """One row image: what happened, and the text of each column that it has."""

    table: TableName
    operation: str
    values: dict[str, bytes | None]


def rows_of(file: Path) -> Iterator[Row]:
    """All row images of a file, in order; an update has two."""
    plans: dict[int, TablePlan] = {}
    for event in events_of(file):
        kind = event[4]
        if kind == EventType.TABLE_MAP:
            plans[table_number(event)] = TablePlan(table_map(event))
            continue
        found = row_event(event)
        if found is None:
            continue
        plan = plans[found.table]
        starts = plan.starts(found.data, found.place, len(found.data), found.images)
        count = len(found.images)
        images = []
        for number, columns in enumerate(found.images):
            raw = padded(found.data)
            values = plan.values(raw, np.array(starts[number::count], dtype=np.int64), columns)
            steps = [plan.step(raw, column) for column in values]
            images.append(list(_values(plan, steps, len(starts) // count)))
        for row in range(len(starts) // count):
            for number in range(count):
                operation = f"{found.operation.name}{number if count > 1 else ''}"
                yield Row(plan.table.name, operation, images[number][row])


def run_of(file: Path, images: ImageRules) -> MessageRun:
    """All row events of a file as one run of a transaction."""
    tables: dict[int, CapturedTable] = {}
    rows = list[bytes]()
    for event in events_of(file):
        if event[4] == EventType.TABLE_MAP:
            found = table_map(event)
            tables[table_number(event)] = CapturedTable(TablePlan(found), found.definition(), images)
        elif row_event(event) is not None:
            rows.append(event)
    header = TransactionHeader("1", Csn(1), 0, len(rows))
    return MessageRun(header, Chunk(tables, streamed=False), [rows], begins=True, ends=True)


def _values(plan: TablePlan, steps: list, count: int) -> Iterator[dict[str, bytes | None]]:  # type: ignore[type-arg]
    found: list[dict[str, bytes | None]] = [{} for _ in range(count)]
    for step in steps:
        name = plan.table.columns[step.column].name
        rows = range(count) if step.rows is None else step.rows.tolist()
        for row, value in zip(rows, step.cells.values(), strict=True):
            found[row][name] = value
        for row in () if step.nulls is None else step.nulls.tolist():
            found[row][name] = None
    yield from found
