"""The definitions of a load as tasks: which table each index belongs to, and what must run in order."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from ggshell.connectors.postgres.schema_dump import Dump, Entry
from ggshell.pipeline.load.databases import Definitions, SourceTable
from ggshell.pipeline.load.tasks import RunTask
from ggshell.types import TableName, split_name

_PART: Final = r'(?:"(?:[^"]|"")+"|[\w$]+)'
_NAME: Final = rf"({_PART}\.{_PART})"
_INDEX: Final = re.compile(rf"^CREATE (?:UNIQUE )?INDEX {_PART} ON {_NAME} USING ", re.MULTILINE)
_CONSTRAINT: Final = re.compile(
    rf"^ALTER TABLE (?:ONLY )?{_NAME}\n +ADD CONSTRAINT {_PART} (?!FOREIGN KEY)", re.MULTILINE
)
_ALSO_ALTERS: Final = re.compile(r"^ALTER TABLE ", re.MULTILINE)
_FOREIGN_KEY: Final = "FK CONSTRAINT"


def definitions_of(dump: Dump, tables: Collection[SourceTable]) -> Definitions:
    """Return the entries of a dump as tasks.

    An index or a constraint of a loaded table can begin when that table is loaded; the others run afterwards in the order of
    the dump, foreign keys last.
    """
    sizes = {table.name: table.bytes for table in tables}
    before = [
        RunTask(_key("before", number, each), each.title, _repeatable(each)) for number, each in enumerate(dump.before)
    ]
    after = [_task(number, each, sizes) for number, each in enumerate(dump.after)]
    after.sort(key=lambda task: task.title.startswith(_FOREIGN_KEY.lower()))
    return Definitions(tuple(before), tuple(after), dump.removal, dump.sum, dump.roles)


def _key(section: str, number: int, entry: Entry) -> str:
    return f"{section} {number}: {entry.title}"


def _repeatable(entry: Entry) -> str:
    return (
        entry.text.replace("CREATE SCHEMA ", "CREATE SCHEMA IF NOT EXISTS ", 1)
        if entry.type == "SCHEMA"
        else entry.text
    )


def _task(number: int, entry: Entry, sizes: dict[TableName, int]) -> RunTask:
    table, alone = _table(entry)
    if table not in sizes:
        return RunTask(_key("after", number, entry), entry.title, entry.text)
    return RunTask(_key("after", number, entry), entry.title, entry.text, sizes[table], table, alone)


def _table(entry: Entry) -> tuple[TableName | None, bool]:
    """The table whose rows an entry reads, and whether it needs that table for itself."""
    pattern = {"INDEX": _INDEX, "CONSTRAINT": _CONSTRAINT}.get(entry.type)
    found = pattern.search(entry.text) if pattern is not None else None
    if found is None:
        return None, False
    return TableName(*split_name(found[1])), bool(_ALSO_ALTERS.search(entry.text))
