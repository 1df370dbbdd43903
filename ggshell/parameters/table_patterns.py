"""Selects tables by a TABLE list: patterns with ``*`` and ``?``, minus TABLEEXCLUDE."""

from __future__ import annotations

from collections.abc import Sequence

from ggshell.parameters.process_parameters import TableStatement
from ggshell.record.image_rules import DEFAULT_IMAGES, ImageRules
from ggshell.record.name_patterns import matches
from ggshell.record.operation import NO_OPERATIONS
from ggshell.types import TableName


def keycols_of(tables: Sequence[TableStatement], name: TableName) -> tuple[str, ...]:
    """Return the KEYCOLS of the first TABLE line that selects a table."""
    lines = (table.keycols for table in tables if matches(table.pattern, name))
    return tuple(part.strip('"') for part in next(lines, ()))


class TableFilter:
    """A filter of table names from a TABLE list and its exclusions."""

    def __init__(
        self,
        patterns: Sequence[str],
        excludes: Sequence[str] = (),
        ignored: Sequence[frozenset[int]] = (),
        sequences: Sequence[str] = (),
    ) -> None:
        """``ignored``: the operations that the line of each pattern leaves out; ``sequences``: patterns of SEQUENCE."""
        self._sequences = tuple(sequences)
        self._patterns = tuple(patterns)
        self._excludes = tuple(excludes)
        self._ignored = tuple(ignored) or (NO_OPERATIONS,) * len(self._patterns)

    def __call__(self, table: TableName) -> bool:
        return self._selects(self._patterns, table)

    def sequence(self, name: TableName) -> bool:
        """Whether a SEQUENCE line selects a sequence."""
        return self._selects(self._sequences, name)

    def _selects(self, patterns: Sequence[str], name: TableName) -> bool:
        wanted = any(matches(pattern, name) for pattern in patterns)
        return wanted and not any(matches(pattern, name) for pattern in self._excludes)

    @property
    def is_everything(self) -> bool:
        """Whether every operation on every table is selected, by the first pattern."""
        return self._patterns[:1] == ("*.*",) and not self._excludes and not self._ignored[0]

    def ignored(self, table: TableName) -> frozenset[int]:
        """Return the operations that the first line that selects a table leaves out."""
        pairs = zip(self._patterns, self._ignored, strict=True)
        return next((ignored for pattern, ignored in pairs if matches(pattern, table)), NO_OPERATIONS)


def images_of(tables: Sequence[TableStatement], name: TableName) -> ImageRules:
    """Return the image rules of the first TABLE line that selects a table."""
    lines = (table.images for table in tables if matches(table.pattern, name))
    return next(lines, DEFAULT_IMAGES)
