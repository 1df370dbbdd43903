"""TOKENS of TABLE: adds user tokens to the rows of batches on their way to a trail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ggshell.errors import ParameterError
from ggshell.pipeline.transform.clauses import Clauses
from ggshell.pipeline.transform.compiler import Scope
from ggshell.pipeline.transform.environment import Environment
from ggshell.pipeline.transform.functions.table import MAKERS
from ggshell.pipeline.transform.nodes import Node
from ggshell.pipeline.transform.rows import Rows
from ggshell.pipeline.transform.stage import by_operation
from ggshell.pipeline.transform.values import image_value
from ggshell.record.change import Areas, ChangeBatch
from ggshell.record.definition import TableDefinition
from ggshell.record.user_tokens import encode_user_tokens


@dataclass(frozen=True, slots=True)
class Tokens:
    """The compiled TOKENS of one table. ``place``: its line."""

    nodes: tuple[tuple[str, Node], ...]
    place: str

    def of(self, rows: Rows) -> list[bytes]:
        """The encoded tokens of each row. A token whose value is NULL or missing is left out. Raises ParameterError."""
        found = [[image_value(value, binary=False) for value in node.evaluate(rows)] for _, node in self.nodes]
        known: dict[tuple[bytes | None, ...], bytes] = {}
        result: list[bytes] = []
        for values in zip(*found, strict=True):
            if values not in known:
                known[values] = self._encoded(values)
            result.append(known[values])
        return result

    def _encoded(self, values: tuple[bytes | None, ...]) -> bytes:
        named = zip((name for name, _ in self.nodes), values, strict=True)
        try:
            return encode_user_tokens((name, value) for name, value in named if value is not None)
        except ValueError as error:
            raise ParameterError(f"TOKENS: {error}", where=self.place, hint="shorten it") from error


def compile_tokens(source: TableDefinition, clauses: Clauses, environment: Environment) -> Tokens | None:
    """Compile the TOKENS clause. Raises StatementError for a value that is not valid."""
    if clauses.tokens is None:
        return None
    scope = Scope(source, environment, MAKERS, key=source.identity if source.key else (), source=clauses.source)
    nodes = tuple((each.name, scope.compile(each.source)) for each in clauses.tokens.assignments)
    return Tokens(nodes, clauses.place)


class TokenStage:
    """Adds tokens to batches.

    ``plan`` returns the tokens of a table. Tokens that a row already has (in a pump) come first.
    """

    def __init__(self, plan: Callable[[TableDefinition], Tokens | None]) -> None:
        self._plan = plan
        self._known: dict[TableDefinition, Tokens | None] = {}

    def stamp(self, batch: ChangeBatch) -> ChangeBatch:
        """The batch with its tokens; the same batch if none of its tables has tokens.

        Raises StatementError, ParameterError.
        """
        plans = {
            number: found for number, table in enumerate(batch.tables) if (found := self._tokens_of(table)) is not None
        }
        if not plans:
            return batch
        old = batch.user_tokens
        none = np.zeros(len(batch), dtype=np.int64)
        start, length = (old.start.copy(), old.length.copy()) if old is not None else (none, none.copy())
        size = len(batch.buffer)
        parts: list[bytes] = [bytes(batch.buffer)]
        places: dict[bytes, int] = {}
        for number, tokens in plans.items():
            for numbers in by_operation(batch, np.flatnonzero(batch.table == number)):
                for row, data in zip(numbers.tolist(), tokens.of(Rows(batch, numbers)), strict=True):
                    first = int(start[row])
                    whole = bytes(batch.buffer[first : first + int(length[row])]) + data
                    if whole not in places:
                        places[whole] = size
                        parts.append(whole)
                        size += len(whole)
                    start[row], length[row] = places[whole], len(whole)
        return replace(batch, buffer=b"".join(parts), user_tokens=Areas(start, length))

    def _tokens_of(self, table: TableDefinition) -> Tokens | None:
        if table not in self._known:
            self._known[table] = self._plan(table)
        return self._known[table]
