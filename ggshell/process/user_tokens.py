"""TOKENS of TABLE: the user's tokens put beside the rows of batches, on the way into a trail."""

from __future__ import annotations

import getpass
import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ggshell.errors import ParameterError
from ggshell.params.files import TableStatement
from ggshell.params.row_values import RowValue, RowView, Scope, Surroundings, compile_value
from ggshell.process.lifecycle import GroupContext
from ggshell.process.tables import matches
from ggshell.record import Areas, ChangeBatch, TableDefinition, TransactionPiece
from ggshell.record.user_tokens import encode_user_tokens


class _Rule(NamedTuple):
    """The tokens of one TABLE line; ``scope`` is the widest of their values', ``where`` the line."""

    values: tuple[tuple[str, RowValue], ...]
    scope: Scope
    where: str

    def tokens(self, row: RowView) -> bytes:
        """The bytes of a row's tokens; a value that is missing leaves its token out.  Raises ParameterError."""
        found = ((name, value.of(row)) for name, value in self.values)
        try:
            return encode_user_tokens((name, value) for name, value in found if value is not None)
        except ValueError as error:
            raise ParameterError(f"TOKENS: {error}", where=self.where, hint="shorten it") from error


class UserTokens:
    """Stamps batches.  Tokens that a row has already (in a pump) stay before the new ones."""

    def __init__(self, rules: Sequence[tuple[str, _Rule | None]]) -> None:
        self._rules = rules
        self._known: dict[TableDefinition, _Rule | None] = {}

    def stamp(self, batch: ChangeBatch) -> ChangeBatch:
        """The batch with its tokens; itself when no TABLE line of its tables has any.  Raises ParameterError."""
        rules = {number: rule for number, table in enumerate(batch.tables) if (rule := self._rule(table)) is not None}
        return _stamped(batch, rules) if rules else batch

    def _rule(self, table: TableDefinition) -> _Rule | None:
        if table not in self._known:
            found = (rule for pattern, rule in self._rules if matches(pattern, table.name))
            self._known[table] = next(found, None)
        return self._known[table]


NO_TOKENS = UserTokens(())
"""No row gets any."""


def user_tokens(tables: Sequence[TableStatement], around: Surroundings, path: object) -> UserTokens:
    """The tokens of a file's TABLE lines; the first line that takes a table counts.  Raises ParameterError."""
    return UserTokens([(table.pattern, _compiled(table, around, path)) for table in tables])


def _compiled(table: TableStatement, around: Surroundings, path: object) -> _Rule | None:
    if table.tokens is None:
        return None
    where = f"{path}:{table.line}"
    values = tuple((each.name, compile_value(each.source, around, where)) for each in table.tokens.assignments)
    return _Rule(values, max(value.scope for _, value in values), where)


def _stamped(batch: ChangeBatch, rules: dict[int, _Rule]) -> ChangeBatch:
    size = len(batch.buffer)
    start, length = np.full(len(batch), size, dtype=np.int64), np.zeros(len(batch), dtype=np.int64)
    if batch.user_tokens is not None:
        start, length = batch.user_tokens.start.copy(), batch.user_tokens.length.copy()
    firsts = np.array([piece.first for piece in batch.pieces], dtype=np.int64)
    parts: list[bytes] = [bytes(batch.buffer)]
    for number, rule in rules.items():
        rows = np.flatnonzero(batch.table == number)
        scope = rule.scope if batch.user_tokens is None else Scope.ROW
        for run in _runs(rows, firsts, scope):
            row = int(run[0])
            piece = batch.pieces[int(np.searchsorted(firsts, row, side="right")) - 1]
            data = _present(batch, row) + rule.tokens(_view(batch, row, piece))
            start[run], length[run] = size, len(data)
            parts.append(data)
            size += len(data)
    return replace(batch, buffer=b"".join(parts), user_tokens=Areas(start, length))


def _runs(rows: NDArray[np.int64], firsts: NDArray[np.int64], scope: Scope) -> list[NDArray[np.int64]]:
    """The rows of one table, cut into those that have the same tokens."""
    if scope is Scope.PROCESS:
        cut = [rows]
    elif scope is Scope.TRANSACTION:
        cut = np.split(rows, np.searchsorted(rows, firsts[1:]))
    else:
        cut = list(rows.reshape(-1, 1))
    return [run for run in cut if len(run)]


def _present(batch: ChangeBatch, row: int) -> bytes:
    if batch.user_tokens is None:
        return b""
    first = int(batch.user_tokens.start[row])
    return bytes(batch.buffer[first : first + int(batch.user_tokens.length[row])])


def _view(batch: ChangeBatch, row: int, piece: TransactionPiece) -> RowView:
    return RowView(
        piece.header,
        batch.tables[int(batch.table[row])],
        int(batch.io_type[row]),
        batch.data(row),
        int(batch.position[row]),
        piece.begins and row == piece.first,
        piece.ends and row == piece.first + piece.count - 1,
        batch.befores is not None and bool(batch.befores[row]),
    )


def surroundings(context: GroupContext, database: Callable[[str], str | None]) -> Surroundings:
    """What a group's process knows of itself; ``database`` gives the details of DBENVIRONMENT."""
    own = {
        "GROUPNAME": context.group,
        "GROUPTYPE": str(context.type.value),
        "HOSTNAME": platform.node(),
        "OSUSERNAME": getpass.getuser(),
        "PROCESSID": str(os.getpid()),
    }

    def fact(kind: str, detail: str) -> str | None:
        return database(detail) if kind == "DBENVIRONMENT" else own.get(detail)

    return Surroundings(fact, context.clock)
