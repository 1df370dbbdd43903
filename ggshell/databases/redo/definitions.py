"""Definitions of redo's tables: from a file that DEFGEN wrote, else from the rows themselves.

The file holds, for each table, ``Definition for table OWNER.NAME``, some lines with its size, one line a column, and ``End of
definition``.  A column's line has its name, the type's number (2nd field), its length (3rd), its scale (5th), whether it may be
NULL (7th), whether it belongs to the key (18th) and the type below the type (19th: 2 is a number).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from ggshell.databases.redo.names import folded, table_name
from ggshell.errors import CaptureError, ParameterError
from ggshell.record.definition import Column, TableDefinition
from ggshell.types import TableName

Keys = Callable[[TableName], tuple[str, ...]]
_TABLE = re.compile(r"Definition for table (.+?)\s*")
_WORD = re.compile(r'"((?:[^"]|"")*)"|(\S+)')
_PART = re.compile(r'"((?:[^"]|"")*)"|([^".\s]+)')
_COUNT = re.compile(r"Columns:?\s+(\d+)")
_KEY_FIELD, _SUB_TYPE_FIELD, _FEWEST_FIELDS = 17, 18, 18
_TYPES = {0: "CHAR", 64: "VARCHAR2", 191: "DATE", 192: "TIMESTAMP"}
_NUMBERS = range(130, 156)


class Shape(NamedTuple):
    """A table as its rows are encoded: Oracle's column names to places; ``given``: by a file, which has the last word."""

    definition: TableDefinition
    places: Mapping[bytes, int]
    given: bool


def read_definitions(path: Path) -> dict[TableName, TableDefinition]:
    """The tables of a definitions file.  Raises ParameterError naming the line that is not understood."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise ParameterError(f"cannot read the definitions file: {error.strerror}", where=str(path)) from error
    found: dict[TableName, TableDefinition] = {}
    table: TableName | None = None
    columns: list[tuple[Column, bool]] = []
    expected = -1
    for number, line in enumerate(lines, 1):
        match = _TABLE.fullmatch(line)
        if match is not None:
            table, columns, expected = _table(match[1], path, number), [], -1
        elif table is None:
            continue
        elif line.startswith("End of definition"):
            if expected not in (-1, len(columns)):
                text = f"{table} has {len(columns)} columns, and its head says {expected}"
                raise ParameterError(text, where=f"{path}:{number}", line=number)
            key = tuple(index for index, (_, flag) in enumerate(columns) if flag)
            found[table] = TableDefinition(table, tuple(column for column, _ in columns), key)
            table = None
        elif (count := _COUNT.fullmatch(line.strip())) is not None:
            expected = int(count[1])
        elif expected > len(columns):
            columns.append(_column(line, path, number))
    return found


def _table(text: str, path: Path, number: int) -> TableName:
    parts = [(quoted or plain).replace('""', '"') for quoted, plain in _PART.findall(text)]
    if len(parts) < 2:
        raise ParameterError(f"{text} is no table: owner.table", where=f"{path}:{number}", line=number)
    return table_name(*parts[-2:])


def _column(line: str, path: Path, number: int) -> tuple[Column, bool]:
    words = _WORD.findall(line)
    name = words[0][0].replace('""', '"') or words[0][1]
    numbers = [plain for _, plain in words[1 : _SUB_TYPE_FIELD + 1]]
    if len(numbers) < _FEWEST_FIELDS - 1 or not all(re.fullmatch(r"-?\d+", word) for word in numbers):
        raise ParameterError(f"{line.strip()} describes no column", where=f"{path}:{number}", line=number)
    fields = [0, *map(int, numbers)]
    number_below = len(fields) > _SUB_TYPE_FIELD and fields[_SUB_TYPE_FIELD] == 2
    if number_below or fields[1] in _NUMBERS:
        type_name = "NUMBER"
    else:
        type_name = _TYPES.get(fields[1], "VARCHAR2")
        type_name += f"({fields[2]})" if type_name in ("CHAR", "VARCHAR2") else ""
    return Column(folded(name), type_name, fields[1], bool(fields[6])), bool(fields[_KEY_FIELD])


class Definitions:
    """The shapes of all tables, by Oracle's names.

    A table that the file does not hold is learned from its first row and grows with the columns that later ones bring; it has
    no key but KEYCOLS.  ``version`` changes with every change of a shape.
    """

    def __init__(self, given: Mapping[TableName, TableDefinition], keys: Keys) -> None:
        self._given = given
        self._keys = keys
        self._shapes: dict[tuple[str, str], Shape] = {}
        self.version = 0

    def shape(self, owner: str, table: str, names: tuple[bytes, ...]) -> Shape:
        """A table with all of these columns.  Raises CaptureError when the file gives the table without one of them."""
        shape = self._shapes.get((owner, table))
        if shape is None:
            shape = self._given_shape(table_name(owner, table)) or self._grown(owner, table, None, names)
        if not shape.places.keys() >= set(names):
            if shape.given:
                missing = ", ".join(name.decode() for name in names if name not in shape.places)
                raise CaptureError(
                    f"{shape.definition.name} has no column {missing} in the definitions file",
                    code="GGS-00526",
                    hint="write the file anew (SOURCEDEFS), or leave the table out of it",
                )
            shape = self._grown(owner, table, shape, names)
        if self._shapes.get((owner, table)) is not shape:
            self._shapes[(owner, table)] = shape
            self.version += 1
        return shape

    def forget(self, owner: str, table: str) -> None:
        """DDL changed a table: what was learned of it may be wrong now."""
        if self._shapes.pop((owner, table), None) is not None:
            self.version += 1

    def _given_shape(self, name: TableName) -> Shape | None:
        found = self._given.get(name)
        if found is None:
            return None
        chosen = self._keys(name)
        if chosen:
            found = found._replace(key=_places(found.columns, chosen))
        return Shape(found, {folded(column.name).encode(): at for at, column in enumerate(found.columns)}, True)

    def _grown(self, owner: str, table: str, known: Shape | None, names: tuple[bytes, ...]) -> Shape:
        places = dict(known.places) if known is not None else {}
        for name in names:
            places.setdefault(name, len(places))
        columns = tuple(Column(folded(column.decode()), "VARCHAR2") for column in places)
        found = table_name(owner, table)
        return Shape(TableDefinition(found, columns, _places(columns, self._keys(found))), places, False)


def _places(columns: tuple[Column, ...], names: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(index for index, column in enumerate(columns) if column.name in names)
