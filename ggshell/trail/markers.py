"""Records that the trail itself writes between rows: table definitions (170), restarts (151), comments (205)."""

from __future__ import annotations

import json
from typing import Any

from ggshell.clock import JULIAN_EPOCH_MICROSECONDS
from ggshell.files import read_json
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.operation import IoType, TransInd
from ggshell.trail import layout
from ggshell.trail.encode import encode_record
from ggshell.types import TableName

LAST_INDEX = 0xFFFF
"""The highest table index, and so the number of table definitions that fit into a file."""
_INDEX_SHIFT = 16


def definition_record(table: TableDefinition, index: int, io_time: int, rba: int) -> bytes:
    """Encode the Metadata record that assigns a table its index in a file; a long one is split into fragments."""
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
    """Encode the record that a writer appends when it opens an existing trail."""
    return _marker(IoType.RESTART_OK, io_time, b"", rba, tail=b"\0", number=0)


def comment_record(text: str, io_time: int, rba: int) -> bytes:
    """Encode a comment record, which readers skip."""
    return _marker(IoType.COMMENT, io_time, text.encode(), rba, tail=b"\0", number=0)


def table_index(audit_rba: int) -> int:
    """Return a table's index from the AuditRBA field of its Metadata record (DDR index low, TDR index high)."""
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


# Metadata records (type 170): table definitions, which make a trail self-describing.
#
# The data area is the definition as UTF-8 JSON. This encoding is ggshell's own: public listings show the fields, not
# their bytes.


def encode_definition(table: TableDefinition) -> bytes:
    """Encode the data area of a table's Metadata record."""
    fields: dict[str, Any] = {
        "owner": table.name.owner,
        "table": table.name.name,
        "key": list(table.key),
        "columns": [[column.name, column.type_name, column.type_id, column.nullable] for column in table.columns],
    }
    if any(column.number for column in table.columns):
        fields["numbers"] = [column.number for column in table.columns]
    if any(column.missing is not None for column in table.columns):
        fields["missing"] = [column.missing for column in table.columns]
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()


def decode_definition(data: bytes) -> TableDefinition:
    """Decode the table definition in a Metadata record. Raises ValueError if the bytes are not a definition."""
    try:
        fields = read_json(data)
        numbers = fields.get("numbers") or [0] * len(fields["columns"])
        missing = fields.get("missing") or [None] * len(fields["columns"])
        columns = tuple(
            Column(name, kind, int(oid), bool(nullable), int(number), None if value is None else str(value))
            for (name, kind, oid, nullable), number, value in zip(fields["columns"], numbers, missing, strict=True)
        )
        key = tuple(int(index) for index in fields["key"])
        return TableDefinition(TableName(fields["owner"], fields["table"]), columns, key)
    except (KeyError, TypeError, UnicodeDecodeError) as error:
        raise ValueError(f"not a valid table definition: {error}") from error
