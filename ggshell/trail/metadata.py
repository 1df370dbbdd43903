"""Metadata records (type 170): the definition of a table, so that a trail explains itself.

The data area is the definition as UTF-8 JSON (our own choice: public listings print the fields, not their bytes).
"""

from __future__ import annotations

import json

from ggshell.record.definition import Column, TableDefinition
from ggshell.types import TableName


def encode_definition(table: TableDefinition) -> bytes:
    """The data area of a table's Metadata record."""
    fields = {
        "owner": table.name.owner,
        "table": table.name.name,
        "key": list(table.key),
        "columns": [[column.name, column.type_name, column.type_id, column.nullable] for column in table.columns],
    }
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()


def decode_definition(data: bytes) -> TableDefinition:
    """The table that a Metadata record defines.  Raises ValueError when the bytes are no definition."""
    try:
        fields = json.loads(data)
        columns = tuple(Column(name, kind, int(oid), bool(nullable)) for name, kind, oid, nullable in fields["columns"])
        key = tuple(int(index) for index in fields["key"])
        return TableDefinition(TableName(fields["owner"], fields["table"]), columns, key)
    except (KeyError, TypeError, UnicodeDecodeError) as error:
        raise ValueError(f"no table definition: {error}") from error
