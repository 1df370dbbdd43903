"""The columns of a table as expressions whose results are the texts that the log has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from ggshell.connectors.mysql.binlog.cells import Cells
from ggshell.connectors.mysql.binlog.numbers import float_cells
from ggshell.connectors.mysql.binlog.strings import shape_text
from ggshell.connectors.mysql.binlog.table_map import GEOMETRIES
from ggshell.connectors.mysql.literals import BINARIES
from ggshell.connectors.mysql.session import execute, quote_name, translated
from ggshell.types import TableName

if TYPE_CHECKING:
    from pymysql.connections import Connection

_TEXT_TYPES: Final = frozenset({"enum", "set"})
_SHAPES: Final = frozenset({*GEOMETRIES, "geomcollection"})


class SourceColumn(NamedTuple):
    """A column of a table. ``kind``: the type's name; ``type``: with its length or precision."""

    name: str
    kind: str
    type: str
    nullable: bool

    @property
    def expression(self) -> str:
        """What to select, so that ``cells`` can turn the result into the text of the log.

        A value that may be long is selected as it is: a function of the server returns NULL for a result that is longer than
        its ``max_allowed_packet``.
        """
        name = quote_name(self.name)
        if self.kind == "bit":
            return f"LPAD(BIN({name}), {self.type.partition('(')[2].rstrip(')')}, '0')"
        return f"{name} + 0e0" if self.kind in ("float", "double") else name

    def text(self, value: bytes | None) -> bytes | None:
        """The text of a value that ``expression`` has returned."""
        return None if value is None else self.cells([value]).values()[0]

    def cells(self, values: list[bytes]) -> Cells:
        if self.kind in ("float", "double"):
            found = np.array([float(value) for value in values], dtype=np.float64)
            return float_cells(found.astype(np.float32) if self.kind == "float" else found)
        if self.kind in BINARIES:
            return Cells.of([b"\\x" + value.hex().encode() for value in values])
        return Cells.of([shape_text(value) for value in values] if self.kind in _SHAPES else values)


def source_columns(connection: Connection[Any], table: TableName) -> list[SourceColumn]:
    """The columns of a table, invisible ones included, in the order of the log."""
    rows = execute(
        connection,
        "SELECT COLUMN_NAME, LOWER(DATA_TYPE), LOWER(COLUMN_TYPE), IS_NULLABLE FROM information_schema.COLUMNS"
        " WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s ORDER BY ORDINAL_POSITION",
        list(table),
    )
    return [
        SourceColumn(name, kind, kind if kind in _TEXT_TYPES else _plain_type(str(whole)), nullable == "YES")
        for name, kind, whole, nullable in rows
    ]


def _plain_type(text: str) -> str:
    """A type without the display width of integers and without comments of the server."""
    text = text.partition(" /*")[0]
    head, _, rest = text.partition("(")
    if head.endswith("int"):
        return head + (" unsigned" if "unsigned" in rest else "")
    return text


@contextmanager
def raw_values(connection: Connection[Any]) -> Iterator[None]:
    """Within a ``with`` block, the values of results are bytes as the server sends them, or None for NULL."""
    driver: Any = connection
    kept = driver.decoders, driver.use_unicode
    driver.decoders, driver.use_unicode = {}, False
    try:
        with translated():
            yield
    finally:
        driver.decoders, driver.use_unicode = kept
