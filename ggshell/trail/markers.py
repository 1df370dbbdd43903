"""The trail's own records, between those of rows: definitions of tables (170) and restarts (151)."""

from __future__ import annotations

from ggshell.clock import JULIAN_EPOCH_MICROSECONDS
from ggshell.record.definition import TableDefinition
from ggshell.record.operation import IoType, TransInd
from ggshell.trail import layout
from ggshell.trail.encode import encode_record
from ggshell.trail.metadata import encode_definition

LAST_INDEX = 0xFFFF
"""A file has room for so many table definitions."""
_INDEX_SHIFT = 16


def definition_record(table: TableDefinition, index: int, io_time: int, rba: int) -> bytes:
    """The Metadata record that gives a table its index in a file; several records (fragments) when it is long."""
    name = f"{table.name.owner}.{table.name.name}".encode() + b"\0"
    data, step = encode_definition(table), layout.LONGEST_DATA
    cuts = [data[at : at + step] for at in range(0, len(data), step)]
    records = []
    for number, cut in enumerate(cuts, 1):
        kind = IoType.METADATA if number == 1 else IoType.RECORD_FRAGMENT
        record = _marker(kind, io_time, cut, rba, tail=name, index=index, number=number, goes_on=number < len(cuts))
        records.append(record)
        rba += len(record)
    return b"".join(records)


def restart_record(io_time: int, rba: int) -> bytes:
    """The record that a writer puts where it goes on after any end."""
    return _marker(IoType.RESTART_OK, io_time, b"", rba, tail=b"\0", number=0)


def table_index(audit_rba: int) -> int:
    """The index of a table from the AuditRBA field of its Metadata record (DDR index low, TDR index high)."""
    return audit_rba >> _INDEX_SHIFT


def _marker(
    kind: IoType,
    io_time: int,
    data: bytes,
    rba: int,
    *,
    tail: bytes,
    number: int,
    index: int = 0,
    goes_on: bool = False,
) -> bytes:
    fields = (
        layout.HDR_IND,
        layout.PARTITION_METADATA,
        0,
        layout.AFTER,
        len(data),
        int(kind),
        index & 0xFF,
        io_time + JULIAN_EPOCH_MICROSECONDS,
        0,
        index << _INDEX_SHIFT,
        TransInd.SOLE,
        layout.FORMAT_TYPE,
        0,
        0,
        layout.CONTINUED if goes_on else 0,
        number & 0xFF,
    )
    return encode_record(fields, data, rba, tail=tail)
