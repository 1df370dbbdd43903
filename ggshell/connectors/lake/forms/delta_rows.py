"""Replaces rows of a Delta table without rewriting its large files.

A commit adds a file with the new rows and marks the earlier ones in the deletion vectors of their files. Small files, and files
with many deleted rows, are rewritten in the same commit (``file_plan``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from ggshell.connectors.lake import file_plan
from ggshell.connectors.lake.columns import retyped, with_filled
from ggshell.connectors.lake.file_plan import WriteRules
from ggshell.connectors.lake.forms.deletion_vectors import read_vector, write_vector
from ggshell.connectors.lake.forms.delta_feed import fillings, replacements, with_feed
from ggshell.connectors.lake.forms.delta_files import DeltaFiles
from ggshell.connectors.lake.forms.delta_state import Action, AddedFile, DeltaState, log_text
from ggshell.connectors.lake.key_index import KeyIndexes
from ggshell.connectors.lake.partitions import Part, Values, partitioned
from ggshell.files import read_json
from ggshell.parameters.lake_tables import PartitionField, TableLayout

PARQUET_RATIO = 3
"""How much smaller rows are in Parquet than in Arrow, before a file of the table shows it."""


class RowChange(NamedTuple):
    """New rows, and the keys whose earlier rows go (None: all earlier rows).

    ``filled``: the values of added columns in the other earlier rows, which are then all rewritten.
    """

    rows: pa.Table
    replaced: pa.Array | None
    filled: Mapping[str, pa.Scalar] = MappingProxyType({})


class Vectors:
    """The deleted rows of files; each vector is read once."""

    def __init__(self, state: DeltaState) -> None:
        self._state = state
        self._known: dict[str, tuple[object, BitMap]] = {}

    def of(self, file: AddedFile) -> BitMap:
        """Raises StoreError for a vector that cannot be read."""
        if file.vector is None:
            return BitMap()
        known = self._known.get(file.path)
        if known is None or known[0] != file.vector:
            known = self._known[file.path] = (file.vector, read_vector(self._state.store, file.vector))
        return known[1]

    def marked(self, file: AddedFile, rows: BitMap) -> AddedFile:
        """The file with these rows deleted. Its statistics are then bounds, not exact values."""
        vector = write_vector(self._state.store, rows)
        self._known[file.path] = (vector, rows)
        return file._replace(vector=vector, stats=_loose(file.stats))


class DeltaRows:
    """Finds and replaces the rows of one table by key. ``cache``: a folder for the indexes of its files."""

    def __init__(self, state: DeltaState, cache: Path, layout: TableLayout) -> None:
        self._state = state
        self._layout = layout
        self._rules = WriteRules(layout.deleted_share, layout.target_bytes // 4)
        self._indexes = KeyIndexes(cache)
        self._vectors = Vectors(state)

    def rows(self, keys: pa.Array) -> pa.Table:
        """The rows with these keys."""
        files = self._files()
        live = self._state.files
        found = [files.rows_at(live[path], rows) for path, rows in self._hits(files, keys).items()]
        return pa.concat_tables([files.schema.empty_table(), *found])

    def every_row(self) -> pa.Table:
        files = self._files()
        parts = (files.live_rows(file, self._vectors.of(file)) for file in self._state.files.values())
        return pa.concat_tables([files.schema.empty_table(), *chain.from_iterable(parts)])

    def actions(
        self, change: RowChange, schema: pa.Schema, fields: tuple[PartitionField, ...], now: int
    ) -> list[Action]:
        """Write the files of a change; returns the actions that commit it.

        ``schema``: the columns after the change; ``fields``: of the table's partitions; ``now``: milliseconds.
        """
        files = DeltaFiles(self._state.store, self._layout, schema, [field.name for field in fields])
        live = dict(self._state.files)
        fresh = {part.values: part for part in partitioned(change.rows, fields) if part.rows.num_rows}
        hits = self._hits(files, change.replaced) if change.replaced is not None else {}
        every = change.replaced is None or change.filled
        rewritten = set(live) if every else self._rewritten(live, hits, change.rows, fresh)
        old: dict[Values, list[str]] = defaultdict(list)
        for path in () if change.replaced is None else sorted(rewritten):
            old[live[path].partition].append(path)

        def stays(path: str) -> Iterator[pa.Table]:
            for rows in files.live_rows(live[path], self._vectors.of(live[path]) | hits.get(path, BitMap())):
                yield with_filled(rows, change.filled)

        added = self._added(files, live.values(), fresh, old, stays)
        found = [live[path].removed(now) for path in sorted(rewritten)]
        for path in hits:
            if path not in rewritten:
                marked = self._vectors.of(live[path]) | hits[path]
                found += [live[path].removed(now), self._vectors.marked(live[path], marked).added(now)]
        found += [file.added(now) for file in added]
        if not self._layout.feed:
            return found
        return with_feed(found, self._feed(files, hits, change, list(fresh.values()), fields))

    def _files(self) -> DeltaFiles:
        state = self._state
        return DeltaFiles(state.store, self._layout, state.schema, state.partition_columns)

    def _hits(self, files: DeltaFiles, keys: pa.Array) -> dict[str, BitMap]:
        """The positions of live rows with these keys, by the path of the data file."""
        by_place = {self._place(file): file for file in self._state.files.values()}
        self._indexes.retain(list(by_place))
        found = {}
        for place, hits in self._indexes.find(keys, list(by_place), lambda place: files.keys(by_place[place])).items():
            file = by_place[place]
            left = BitMap(hits.positions.astype(np.uint32)) - self._vectors.of(file)
            if left:
                found[file.path] = left
        return found

    def _place(self, file: AddedFile) -> str:
        return f"{self._state.location}/{file.file}"

    def _rewritten(
        self, live: Mapping[str, AddedFile], hits: Mapping[str, BitMap], rows: pa.Table, fresh: Collection[Values]
    ) -> set[str]:
        found = file_plan.files_to_rewrite(
            described_files(live.values()),
            {path: len(positions) for path, positions in hits.items()},
            rows.nbytes // PARQUET_RATIO,
            self._rules,
            [repr(values) for values in fresh],
        )
        return found | {path for path in hits if live[path].deleted + len(hits[path]) >= live[path].rows}

    def _added(
        self,
        files: DeltaFiles,
        live: Collection[AddedFile],
        fresh: Mapping[Values, Part],
        old: Mapping[Values, Sequence[str]],
        stays: Callable[[str], Iterator[pa.Table]],
    ) -> list[AddedFile]:
        """New files: the fresh rows, and what stays of the files that are rewritten (``old``: their paths by partition)."""
        added: list[AddedFile] = []
        for values in {**old, **fresh}:
            parts: Iterator[pa.Table] = chain.from_iterable(map(stays, old.get(values, ())))
            if values in fresh:
                parts = chain(parts, [fresh[values].rows.select(files.schema.names).cast(files.schema)])
            count = self._rows_in_file(live, fresh)
            added += [each.added for each in files.write(parts, Part(values, files.schema.empty_table()), count)]
        return added

    def _rows_in_file(self, live: Collection[AddedFile], fresh: Mapping[Values, Part]) -> int:
        size: float = sum(part.rows.nbytes for part in fresh.values()) / PARQUET_RATIO
        count = sum(part.rows.num_rows for part in fresh.values())
        size, count = size + sum(file.size for file in live), count + sum(file.rows for file in live)
        return max(1, int(self._layout.target_bytes * count / max(1.0, size)))

    def _feed(
        self,
        files: DeltaFiles,
        hits: Mapping[str, BitMap],
        change: RowChange,
        fresh: Collection[Part],
        fields: Sequence[PartitionField],
    ) -> list[Action]:
        """Write the change data feed of a change to files: all rows whose values change, in the columns after it."""
        live = self._state.files
        if change.replaced is None:
            hits = {path: BitMap(range(file.rows)) - self._vectors.of(file) for path, file in live.items()}
        found = files.write_changes(replacements(self._gone(hits, files.schema), fresh, fields))
        for path, file in live.items() if change.replaced is not None and change.filled else ():
            dead = self._vectors.of(file) | hits.get(path, BitMap())
            if len(dead) < file.rows:
                kept = fillings(files.live_rows(file, dead), change.filled)
                found.append(files.write_change_file(file.partition, kept))
        return found

    def _gone(self, hits: Mapping[str, BitMap], schema: pa.Schema) -> pa.Table:
        """Rows by position, in other columns: values of another type are converted as in the new rows."""
        files = self._files() if hits else None
        rows = [files.rows_at(self._state.files[path], each) for path, each in hits.items()] if files else []
        return pa.concat_tables([schema.empty_table(), *(retyped(each, schema) for each in rows)])


def described_files(files: Collection[AddedFile]) -> list[file_plan.DataFile]:
    """Data files as plans of writes and compactions see them."""
    return [file_plan.DataFile(file.path, file.rows, file.size, file.deleted, repr(file.partition)) for file in files]


def _loose(stats: str) -> str:
    return log_text({**read_json(stats), "tightBounds": False})
