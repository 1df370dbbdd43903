"""Selects tables by a TABLE list: patterns with ``*`` and ``?``, minus TABLEEXCLUDE."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from ggshell.parameters.process_parameters import TableStatement
from ggshell.record.image_rules import DEFAULT_IMAGES, ImageRules
from ggshell.record.operation import NO_OPERATIONS
from ggshell.types import TableName, split_name


@lru_cache(maxsize=256)
def _matcher(pattern: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    owner, name = split_name(pattern)[-2:]
    return _part(owner), _part(name)


def _part(text: str) -> re.Pattern[str]:
    escaped = re.escape(text).replace(r"\*", ".*").replace(r"\?", ".")
    return re.compile(escaped)


def matches(pattern: str, table: TableName) -> bool:
    """Whether a table matches ``owner.name`` with wildcards; unquoted parts are folded to lower case as in PostgreSQL."""
    owner, name = _matcher(pattern)
    return owner.fullmatch(table.owner) is not None and name.fullmatch(table.name) is not None


def keycols_of(tables: Sequence[TableStatement], name: TableName) -> tuple[str, ...]:
    """Return the KEYCOLS of the first TABLE line that selects a table."""
    lines = (table.keycols for table in tables if matches(table.pattern, name))
    return tuple(part.strip('"') for part in next(lines, ()))


class TableFilter:
    """A filter of table names from a TABLE list and its exclusions."""

    def __init__(
        self, patterns: Sequence[str], excludes: Sequence[str] = (), ignored: Sequence[frozenset[int]] = ()
    ) -> None:
        """``ignored``: the operations that the line of each pattern leaves out."""
        self._patterns = tuple(patterns)
        self._excludes = tuple(excludes)
        self._ignored = tuple(ignored) or (NO_OPERATIONS,) * len(self._patterns)

    def __call__(self, table: TableName) -> bool:
        wanted = any(matches(pattern, table) for pattern in self._patterns)
        return wanted and not any(matches(pattern, table) for pattern in self._excludes)

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
