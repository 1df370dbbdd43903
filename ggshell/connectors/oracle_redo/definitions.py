"""Definitions of the tables in the redo, from a file that DEFGEN wrote, or else from the rows themselves.

For each table, the file has ``Definition for table OWNER.NAME``, some lines with its size, one line per column, and
``End of definition``. The line of a column contains its name, the number of its type (field 2), its length (3), its
scale (5), whether it is nullable (7), whether it belongs to the key (18), and its subtype (19: 2 is a number).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

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


class RedoTable(NamedTuple):
    """A table as its rows are encoded, with the places of Oracle's column names.

    ``given`` means that a definitions file describes the table, and the rows cannot change it.
    """

    definition: TableDefinition
    places: Mapping[bytes, int]
    given: bool


def read_definitions(path: Path) -> dict[TableName, TableDefinition]:
    """Read the tables of a definitions file. Raises ParameterError naming the line that cannot be parsed."""
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
                text = f"{table} has {len(columns)} columns, but its header specifies {expected}"
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
        raise ParameterError(
            f"{text} is not a valid table name: use owner.table", where=f"{path}:{number}", line=number
        )
    return table_name(*parts[-2:])


def _column(line: str, path: Path, number: int) -> tuple[Column, bool]:
    words = _WORD.findall(line)
    name = words[0][0].replace('""', '"') or words[0][1]
    numbers = [plain for _, plain in words[1 : _SUB_TYPE_FIELD + 1]]
    if len(numbers) < _FEWEST_FIELDS - 1 or not all(re.fullmatch(r"-?\d+", word) for word in numbers):
        raise ParameterError(f"{line.strip()} is not a valid column definition", where=f"{path}:{number}", line=number)
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

    A table that is not in the file is learned from its first row, and columns in later rows are added to it. Its key
    consists of KEYCOLS only. ``version`` changes with every change of a shape.
    """

    def __init__(self, given: Mapping[TableName, TableDefinition], keys: Keys) -> None:
        self._given = given
        self._keys = keys
        self._shapes: dict[tuple[str, str], RedoTable] = {}
        self.version = 0

    def shape(self, owner: str, table: str, names: tuple[bytes, ...]) -> RedoTable:
        """The shape of a table with all of these columns. Raises CaptureError if the definitions file lacks one."""
        shape = self._shapes.get((owner, table))
        if shape is None:
            shape = self._given_shape(table_name(owner, table)) or self._grown(owner, table, None, names)
        if not shape.places.keys() >= set(names):
            if shape.given:
                missing = ", ".join(name.decode() for name in names if name not in shape.places)
                raise CaptureError(
                    f"{shape.definition.name} has no column {missing} in the definitions file",
                    code="GGS-00526",
                    hint="generate the definitions file again (SOURCEDEFS), or remove the table from it",
                )
            shape = self._grown(owner, table, shape, names)
        if self._shapes.get((owner, table)) is not shape:
            self._shapes[(owner, table)] = shape
            self.version += 1
        return shape

    def forget(self, owner: str, table: str) -> None:
        """Forget what was learned of a table, because DDL changed it."""
        if self._shapes.pop((owner, table), None) is not None:
            self.version += 1

    def _given_shape(self, name: TableName) -> RedoTable | None:
        found = self._given.get(name)
        if found is None:
            return None
        chosen = self._keys(name)
        if chosen:
            found = found._replace(key=_places(found.columns, chosen))
        return RedoTable(found, {folded(column.name).encode(): at for at, column in enumerate(found.columns)}, True)

    def _grown(self, owner: str, table: str, known: RedoTable | None, names: tuple[bytes, ...]) -> RedoTable:
        places = dict(known.places) if known is not None else {}
        for name in names:
            places.setdefault(name, len(places))
        columns = tuple(Column(folded(column.decode()), "VARCHAR2") for column in places)
        found = table_name(owner, table)
        return RedoTable(TableDefinition(found, columns, _places(columns, self._keys(found))), places, False)


def _places(columns: tuple[Column, ...], names: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(index for index, column in enumerate(columns) if column.name in names)


# Oracle's names in ggshell's spelling.
#
# Oracle folds unquoted names to upper case; ggshell (and a PostgreSQL target) to lower case. A name that needs no
# quotes in Oracle must need none here, so ``SHOP`` becomes ``shop``. A name that was quoted to be lower case becomes
# upper case, so that no two names become equal. All other names stay as they are.


_ONE_CASE = re.compile(r"[A-Z_][A-Z0-9_$#]*|[a-z_][a-z0-9_$#]*")


@lru_cache(maxsize=1 << 14)
def folded(name: str) -> str:
    """Swap the case of a name that is all upper or all lower case. Applied twice, it returns the original name."""
    return name.swapcase() if _ONE_CASE.fullmatch(name) else name


@lru_cache(maxsize=1 << 12)
def table_name(owner: str, name: str) -> TableName:
    """A table name in ggshell's spelling."""
    return TableName(folded(owner), folded(name))
