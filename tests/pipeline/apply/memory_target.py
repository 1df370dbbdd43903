"""An in-memory table as a target: rows by key, transactions, savepoints, and the errors of a real target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ggshell.errors import ApplyError
from ggshell.pipeline.apply.column_groups import require_befores
from ggshell.pipeline.apply.error_rules import UNIQUE
from ggshell.pipeline.apply.target import CheckpointRow, Refusal, TableMapping, TargetTable
from ggshell.record.change import ChangeBatch
from ggshell.record.image import decode_image
from ggshell.record.operation import TWO_IMAGES, IoType
from ggshell.types import TableName

Image = dict[int, bytes | None]
Key = tuple[bytes | None, ...]


class MemoryTarget:
    """One table; ``rows`` are the committed rows."""

    foreign_key_hint = ""
    unmarked = ""

    def __init__(self, table: TargetTable) -> None:
        self._table = table
        self.rows: dict[Key, Image] = {}
        self._open: dict[Key, Image] | None = None
        self._marked: dict[Key, Image] | None = None
        self.confirmed = 0

    def describe(self, table: TableName) -> TargetTable:
        return self._table._replace(name=table)

    def fetch(self, mapping: TableMapping, key: Mapping[int, bytes | None]) -> Image | None:
        found = self._now.get(tuple(key[index] for index in mapping.key))
        return dict(found) if found is not None else None

    def checkpoint(self) -> CheckpointRow | None:
        return None

    def apply(self, batch: ChangeBatch, first: int, last: int, mappings: dict[int, TableMapping]) -> Refusal | None:
        for row in range(first, last):
            mapping = mappings.get(int(batch.table[row]))
            refusal = self.apply_one(batch, row, mapping) if mapping is not None else None
            if refusal is not None:
                return refusal
        return None

    def apply_one(self, batch: ChangeBatch, row: int, mapping: TableMapping) -> Refusal | None:
        before, after = (dict(decode_image(image)) for image in batch.images(row))
        io_type = int(batch.io_type[row])
        rows = self._now = dict(self._now)
        try:
            if io_type == IoType.INSERT:
                return self._put(rows, mapping, after)
            if io_type == IoType.DELETE:
                require_befores(mapping, mapping.compared_deletes, after, "DELETE")
                key = self._find(rows, mapping, after, mapping.compared_deletes)
                if key is None:
                    return Refusal("no row", missing=True)
                del rows[key]
                return None
            compared = mapping.compared_updates
            require_befores(mapping, compared, before, "UPDATE")
            key = self._find(rows, mapping, before if io_type in TWO_IMAGES else after, compared)
        except ApplyError as error:
            return Refusal.of(error)
        if key is None:
            return Refusal("no row", missing=True)
        old = rows.pop(key)
        return self._put(rows, mapping, old | after)

    def commit(self, row: CheckpointRow, ids: Sequence[str] = ()) -> Refusal | None:
        self.rows, self._open, self._marked = self._now, None, None
        self.confirmed += 1
        return None

    def await_answers(self) -> Refusal | None:
        return None

    def set_savepoint(self) -> Refusal | None:
        self._marked = self._now
        return None

    def rollback_to_savepoint(self) -> bool:
        if self._marked is None:
            self.rollback()
            return False
        self._open = self._marked
        return True

    def rollback(self) -> None:
        self._open = self._marked = None

    def durable(self) -> None: ...

    def reconnect(self) -> None: ...

    def close(self) -> None: ...

    @property
    def _now(self) -> dict[Key, Image]:
        return self.rows if self._open is None else self._open

    @_now.setter
    def _now(self, rows: dict[Key, Image]) -> None:
        self._open = rows

    def _put(self, rows: dict[Key, Image], mapping: TableMapping, row: Image) -> Refusal | None:
        key = tuple(row[index] for index in mapping.key)
        if key in rows:
            return Refusal("duplicate key", UNIQUE)
        rows[key] = row
        return None

    def _find(
        self, rows: dict[Key, Image], mapping: TableMapping, image: Image, compared: frozenset[int]
    ) -> Key | None:
        key = tuple(image[index] for index in mapping.key)
        here = rows.get(key)
        same = here is not None and all(here[index] == image[index] for index in compared)
        return key if same else None
