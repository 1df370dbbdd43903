"""Which columns of a record find the row that a statement changes, and which columns an UPDATE sets."""

from __future__ import annotations

from collections.abc import Iterable

from ggshell.errors import ApplyError
from ggshell.pipeline.apply.column_groups import require_befores
from ggshell.pipeline.apply.target import TableMapping
from ggshell.record.fields import Value

Columns = tuple[int, ...]


class RowSearch:
    """How the rows of one mapping are found: by their key, and by the old values that COMPARECOLS compares.

    ``whole_row``: the table has no key. Its rows are found by all their columns, and several may be equal.
    """

    def __init__(self, mapping: TableMapping) -> None:
        self.key = frozenset(mapping.key)
        self.whole_row = not mapping.single and len(self.key) == len(mapping.source.columns)
        self._mapping = mapping
        self._set_places: dict[tuple[Columns, bool], list[int]] = {}

    def for_delete(self, columns: Columns) -> list[int]:
        """The places, in an image, of the columns that find the row to delete. Raises ApplyError if it lacks one."""
        compared = self._mapping.compared_deletes
        require_befores(self._mapping, compared, columns, "DELETE")
        return self.places(columns, compared)

    def for_update(self, columns: Columns, *, moves: bool) -> list[int]:
        """The places of the columns that find the row to update. Raises ApplyError if the image lacks one.

        ``moves``: the key changes, and the image is the one before the change.
        """
        compared = self._mapping.compared_updates
        require_befores(self._mapping, compared, columns if moves else (), "UPDATE")
        return self.places(columns, compared if moves else frozenset())

    def places(self, columns: Columns, compared: frozenset[int]) -> list[int]:
        """The places of the key and of those columns that must be unchanged. Raises ApplyError without the whole key."""
        mapped = self._mapping.columns
        places = [place for place, index in enumerate(columns) if index in self.key and mapped[index] is not None]
        if len(places) < len(self.key) and not self.whole_row:
            lacking = sorted(self.key.difference(columns))
            names = ", ".join(self._mapping.source.columns[index].name for index in lacking)
            raise ApplyError(f"the trail record lacks {names}, required to find rows of {self._mapping.target.name}")
        if compared:
            places += [place for place, index in enumerate(columns) if index in compared and index not in self.key]
        return places

    def finds_one(self, values: Iterable[tuple[int, Value]]) -> bool:
        """Whether these columns and values match one row at most: a unique key allows several rows with NULL."""
        return self._mapping.single and all(value is not None for index, value in values if index in self.key)

    def set_places(self, columns: Columns, *, moves: bool = False) -> list[int]:
        """The places, in an image, of the columns that an UPDATE sets; ``moves``: it changes the key."""
        places = self._set_places.get((columns, moves))
        if places is None:
            places = [
                place
                for place, index in enumerate(columns)
                if self._mapping.writable(index) and (moves or index not in self.key)
            ]
            self._set_places[columns, moves] = places
        return places
