"""What a transaction has applied so far: the stand-in for a savepoint, which DuckDB does not have."""

from __future__ import annotations

from typing import NamedTuple

from ggshell.apply.target import TableMapping
from ggshell.record.change import ChangeBatch

JOURNAL_BYTES = 256 << 20
"""How much of a transaction is kept; of a larger one nothing can be done again."""


class Part(NamedTuple):
    """Rows of a batch that are to be applied; ``singly``: they came one at a time."""

    batch: ChangeBatch
    first: int
    last: int
    mappings: dict[int, TableMapping]
    singly: bool = False

    @property
    def size(self) -> int:
        return int(self.batch.length[self.first : self.last].sum())


class Marked(NamedTuple):
    """A place within a transaction: how many parts were done, the parts kept, and where the last of them ended."""

    done: int
    parts: int
    last: int


class Journal:
    """The parts applied since the transaction began."""

    def __init__(self) -> None:
        self._parts: list[Part] = []
        self._bytes = 0
        self._done = 0

    def add(self, part: Part) -> None:
        """Note what was applied; single rows that follow each other become one part, which is done again at once."""
        self._done += 1
        self._bytes += part.size
        if self._bytes > JOURNAL_BYTES:
            self._parts.clear()
            return
        before = self._parts[-1] if self._parts else None
        if before is not None and _follows(before, part):
            self._parts[-1] = before._replace(last=part.last, mappings={**before.mappings, **part.mappings})
        else:
            self._parts.append(part)

    def mark(self) -> Marked:
        return Marked(self._done, len(self._parts), self._parts[-1].last if self._parts else 0)

    def moved(self, marked: Marked) -> bool:
        """Whether anything was applied since."""
        return self._done != marked.done

    def until(self, marked: Marked) -> list[Part] | None:
        """What was applied before a mark; None when it is not kept any more."""
        if self._bytes > JOURNAL_BYTES:
            return None
        parts = self._parts[: marked.parts]
        if parts:
            parts[-1] = parts[-1]._replace(last=marked.last)
        return parts


def _follows(before: Part, part: Part) -> bool:
    """Whether a single row stands behind others that came singly, and its table is mapped as theirs was."""
    if not (before.singly and part.singly) or before.batch is not part.batch or before.last != part.first:
        return False
    return all(before.mappings.get(number, mapping) is mapping for number, mapping in part.mappings.items())
