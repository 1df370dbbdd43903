"""MAP … THREAD and THREADRANGE: assign rows to the threads of a coordinated Replicat."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ggshell.errors import ApplyError, ParameterError
from ggshell.record.change import ChangeBatch
from ggshell.record.definition import TableDefinition
from ggshell.record.image import decode_image
from ggshell.record.operation import OPERATIONS, TRUNCATES, TWO_IMAGES
from ggshell.record.sequences import is_sequence
from ggshell.record.transaction import TransactionPiece

NOBODY: Final = -1
ALL: Final = -2
"""Marks a row at which all threads wait, before it and after it."""
MOST_THREADS: Final = 500
"""The largest MAXTHREADS of ADD REPLICAT."""
_ONE_IMAGE: Final = OPERATIONS["UPDATES"] - TWO_IMAGES
"""The updates whose records do not have the old values."""
_THREAD = re.compile(r"\(\s*(\d+)\s*\)")
_RANGE = re.compile(r"\(\s*(\d+)\s*-\s*(\d+)\s*((?:,\s*[^,)]+)*)\)")


class ThreadRule(NamedTuple):
    """The threads of a table: ``first`` to ``last`` share its rows by the values of ``columns`` (default: the key).

    ``barrier``: all threads wait at a transaction of the table (COORDINATED)."""

    first: int = 1
    last: int = 1
    columns: tuple[str, ...] = ()
    barrier: bool = False


def thread_rule(thread: str, threadrange: str, most: int, *, barrier: bool, where: str) -> ThreadRule:
    """Parse the thread clauses of a MAP statement; ``most``: MAXTHREADS. Raises ParameterError."""
    rule = ThreadRule(barrier=barrier)
    if thread:
        found = _THREAD.fullmatch(thread.strip())
        if not found:
            raise ParameterError(f"THREAD {thread} is not a number in parentheses", where=where, hint="THREAD (2)")
        rule = rule._replace(first=int(found[1]), last=int(found[1]))
    if threadrange:
        found = _RANGE.fullmatch(threadrange.strip())
        if not found or int(found[1]) > int(found[2]):
            raise ParameterError(
                f"THREADRANGE {threadrange} is not a valid range", where=where, hint="THREADRANGE (1-4, id)"
            )
        columns = tuple(name.strip().strip('"') for name in found[3].split(",") if name.strip())
        rule = rule._replace(first=int(found[1]), last=int(found[2]), columns=columns)
    if not 1 <= rule.first <= rule.last <= most:
        raise ParameterError(
            f"thread {rule.last} does not exist: the group has threads 1 to {most}",
            where=where,
            hint="MAXTHREADS of ADD REPLICAT",
        )
    return rule


class Router:
    """Finds the threads of each transaction; ``rule_of`` returns a table's rule, None for a table that is not mapped."""

    def __init__(self, rule_of: Callable[[TableDefinition], ThreadRule | None]) -> None:
        self._rule_of = rule_of
        self._rules: dict[TableDefinition, ThreadRule | None] = {}

    def route(self, batch: ChangeBatch, pieces: Sequence[TransactionPiece]) -> list[set[int]]:
        """Return the threads of each piece; with ``ALL`` for a barrier, and empty if nothing is mapped."""
        threads = self._threads(batch)
        return [
            set(np.unique(threads[piece.first : piece.first + piece.count]).tolist()) - {NOBODY} for piece in pieces
        ]

    def _threads(self, batch: ChangeBatch) -> NDArray[np.int64]:
        result = np.full(len(batch), NOBODY, dtype=np.int64)
        for number, table in enumerate(batch.tables):
            rule = self._rule(table)
            if rule is None:
                continue
            mine = batch.table == number
            if rule.barrier:
                result[mine] = ALL
            elif rule.first == rule.last or is_sequence(table):
                result[mine] = rule.first
            else:
                for row in np.flatnonzero(mine).tolist():
                    result[row] = _thread_of(batch, row, table, rule)
            result[mine & batch.of_types(TRUNCATES)] = ALL
        return result

    def _rule(self, table: TableDefinition) -> ThreadRule | None:
        if table not in self._rules:
            self._rules[table] = self._rule_of(table)
        return self._rules[table]


def _thread_of(batch: ChangeBatch, row: int, table: TableDefinition, rule: ThreadRule) -> int:
    """Return a row's thread by the values of the columns; a row that moves between threads is a barrier.

    So is an update that may move it: the single image of an update shows only that the key has not changed."""
    io_type = int(batch.io_type[row])
    images = batch.images(row) if io_type in TWO_IMAGES else (batch.data(row),)
    names = [column.name.lower() for column in table.columns]
    wanted = [names.index(name.lower()) for name in rule.columns if name.lower() in names] or list(table.identity)
    if io_type in _ONE_IMAGE and not set(wanted) <= set(table.identity):
        return ALL
    found = set()
    for image in images:
        values = dict(decode_image(image))
        if not all(index in values for index in wanted):
            raise ApplyError(
                f"THREADRANGE of {table.name} requires columns that a record does not contain",
                hint="use the key's columns, or log the others with ADD TRANDATA … COLS",
            )
        text = b"\0".join(b"\1" if values[index] is None else values[index] or b"" for index in wanted)
        found.add(rule.first + zlib.crc32(text) % (rule.last - rule.first + 1))
    return found.pop() if len(found) == 1 else ALL
