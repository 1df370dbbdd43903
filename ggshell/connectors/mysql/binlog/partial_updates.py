"""Row events with partial updates of JSON values, rewritten as those of whole rows.

The image after an update begins with its options and, if these allow partial values, with one bit for each JSON column of the
table. A set bit means that the column has changes instead of a value. Source: ``Rows_log_event`` in ``log_event.h`` of MySQL.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ggshell.connectors.mysql.binlog.events import UNSUPPORTED, EventType, header, packed
from ggshell.connectors.mysql.binlog.json_binary import document_as_text, json_document
from ggshell.connectors.mysql.binlog.json_diffs import changed_document
from ggshell.connectors.mysql.binlog.plan import RawValues, TablePlan
from ggshell.connectors.mysql.binlog.row_events import row_images
from ggshell.connectors.mysql.binlog.table_map import ColumnType
from ggshell.errors import CaptureError

_PARTIAL_JSON: Final = 1


def whole_updates(event: bytes, plan: TablePlan) -> bytes:
    """Return an event with the same updates whose images have whole values.

    Raises CaptureError if the former values are missing, and one of ``events.UNREADABLE`` if the event is damaged.
    """
    (before, after), first = row_images(event, 2)
    documents = [index for index, column in enumerate(plan.table.columns) if column.type is ColumnType.JSON]
    place, rows = first, bytearray()
    while place < len(event):
        old, end = plan.raw_values(event, place, before)
        rows += event[place:end]
        partial, place = _partial(event, end, documents)
        values, place = plan.raw_values(event, place, after)
        former = dict(zip(before, old, strict=True))
        new = [
            value if value is None or index not in partial else _merged(plan, index, former.get(index), value)
            for index, value in zip(after, values, strict=True)
        ]
        rows += _image(plan, after, new)
    head, size = header(event), first + len(rows)
    ends = (head.start + size).to_bytes(4, "little")
    kind = bytes([EventType.UPDATE_ROWS])
    return event[:4] + kind + event[5:9] + size.to_bytes(4, "little") + ends + event[17:first] + rows


def _partial(event: bytes, place: int, documents: Sequence[int]) -> tuple[set[int], int]:
    """Which of the JSON columns have changes in the image that begins at a place, and the place of its values."""
    options, place = packed(event, place)
    if not options & _PARTIAL_JSON:
        return set(), place
    found = {index for bit, index in enumerate(documents) if event[place + (bit >> 3)] & 1 << (bit & 7)}
    return found, place + (len(documents) + 7) // 8


def _merged(plan: TablePlan, index: int, before: bytes | None, diffs: bytes) -> bytes:
    if before is None:
        name = plan.table.columns[index].name
        raise CaptureError(
            f"an update of {plan.table.name} has a part of column {name}, and the log does not have its former value",
            code=UNSUPPORTED,
            hint="SET GLOBAL binlog_row_image = FULL, or binlog_row_value_options = ''",
        )
    return document_as_text(changed_document(json_document(before), diffs))


def _image(plan: TablePlan, columns: Sequence[int], values: RawValues) -> bytes:
    """An image of a row: the bits of the NULL values, and the values."""
    nulls = sum(1 << bit for bit, value in enumerate(values) if value is None)
    parts = [nulls.to_bytes((len(columns) + 7) // 8, "little")]
    for index, value in zip(columns, values, strict=True):
        if value is not None:
            prefix = plan.prefix(index)
            parts += [len(value).to_bytes(prefix, "little"), value] if prefix else [value]
    return b"".join(parts)
