"""Maintenance of an Iceberg table during its delivery: compaction, expiry of snapshots, and files that nothing uses.

Compaction writes the live rows of some files to new ones and replaces them in one snapshot. If delivery has committed
meanwhile, only the snapshot is planned again: rows that it has marked in the old files, and all rows of an old file that it
has rewritten, are marked at their place in the new ones. So delivery never waits, and compaction gets through however often
delivery commits. It is given up only if most of its rows were removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise

import pyarrow as pa
from pyarrow import fs
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation

from ggshell.connectors.lake.compaction import (
    CompactedFile,
    OutputFile,
    bins,
    compacted_files,
    moved_marks,
    rows_in_file,
)
from ggshell.connectors.lake.forms.iceberg_catalog import LOG
from ggshell.connectors.lake.forms.iceberg_files import Partition, TableFiles, WrittenFile, partition_of
from ggshell.connectors.lake.forms.iceberg_rows import described_files, open_deletes
from ggshell.connectors.lake.forms.iceberg_snapshot import CONFLICTS, FileChange, FileChanges, LiveFiles, Snapshots
from ggshell.connectors.lake.forms.table_maintenance import Compacted, Maintainable
from ggshell.errors import ApplyError
from ggshell.parameters.lake_tables import LakeLayouts
from ggshell.types import TableName

ATTEMPTS = 50
"""How often the snapshot of a compaction is planned. An attempt takes about as long as a small commit of delivery."""


class IcebergMaintenance:
    """Maintains one table. ``step`` is called before each step, with its name, for tests that end a process there."""

    def __init__(self, table: Table, step: Callable[[str], None] = lambda _: None, cluster: Sequence[str] = ()) -> None:
        self._table = table
        self._cluster = cluster
        self._snapshots = Snapshots(table.io)
        self._step = step

    def compact(self, target_bytes: int) -> Compacted:
        """Compact the table's small files and those with many deleted rows."""
        live = self._snapshots.read(self._table.refresh().metadata)
        done = Compacted(0, 0)
        for group in bins(described_files(live), target_bytes):
            into = self._compact(live, [file.path for file in group], rows_in_file(group, target_bytes))
            if into is not None:
                done = Compacted(done.files + len(group), done.into + into)
        return done

    def _compact(self, live: LiveFiles, paths: Sequence[str], most_rows: int) -> int | None:
        """Replace files by new ones; return how many, or None if delivery has rewritten most of them."""
        metadata = self._table.metadata
        files = TableFiles(metadata, self._table.io)
        counts = {path: file.record_count for path, file in live.data.items()}
        sources = compacted_files(paths, counts, live.dead)
        every = sum(source.rows for source in sources)
        partition = partition_of(live.data[paths[0]])
        self._step("write")
        added = list(files.write_rows(_live_rows(files, sources), partition, most_rows, self._cluster))
        for _ in range(ATTEMPTS):
            live = self._snapshots.read(self._table.refresh().metadata)
            if 2 * sum(source.rows for source in sources if source.path in live.data) <= every:
                self._remove([each.file.file_path for each in added])
                return None
            with suppress(*CONFLICTS):
                self._replace(live, sources, added, partition)
                return len(added)
        raise ApplyError(f"compaction of {'.'.join(self._table.name())} conflicted with {ATTEMPTS} other commits")

    def _replace(
        self, live: LiveFiles, sources: Sequence[CompactedFile], added: list[WrittenFile], partition: Partition
    ) -> None:
        dead = {path: live.dead_of(path) for path in live.data}
        output = [OutputFile(each.file.file_path, each.file.record_count, each.order) for each in added]
        marks = moved_marks(dead, sources, output)
        gone = {source.path for source in sources if source.path in live.data}
        kept, unmarked = open_deletes(live, {}, gone)
        files = TableFiles(self._table.metadata, self._table.io)
        deletes = [files.write_deletes(marks, partition)] if marks else []
        deletes += [files.write_deletes(each, where) for where, each in kept.items()]
        change = FileChange([*(each.file for each in added), *deletes], gone | unmarked)
        self._step("commit")
        try:
            with self._table.transaction() as transaction:
                FileChanges(
                    transaction, live, change, Operation.REPLACE, {"ggshell.maintenance": "compaction"}
                ).commit()
        except CONFLICTS:
            self._remove([file.file_path for file in deletes])
            raise

    def expire(self, before: int, most: int) -> int:
        """Forget snapshots that were replaced before a time (microseconds since 1970), and all but the newest ``most``.

        Returns how many. Their files stay until they are removed as unreferenced.
        """
        for _ in range(ATTEMPTS):
            metadata = self._table.refresh().metadata
            protected = {each.snapshot_id for each in metadata.refs.values()}
            history = sorted(metadata.snapshots, key=lambda each: (each.sequence_number or 0, each.timestamp_ms))
            old = {each.snapshot_id for each, after in pairwise(history) if after.timestamp_ms * 1000 < before}
            old |= {each.snapshot_id for each in history[: max(0, len(history) - most)]}
            old -= protected
            if not old:
                return 0
            self._step("expire")
            with suppress(*CONFLICTS):
                self._table.maintenance.expire_snapshots().by_ids(sorted(old)).commit()
                return len(old)
        raise ApplyError(f"expiry of {'.'.join(self._table.name())} conflicted with {ATTEMPTS} other commits")

    def unreferenced(self) -> list[str]:
        """The files in the table's folder that none of its versions uses."""
        there = set(self._listed())
        # Read after the listing: what is committed meanwhile is then either not listed or known.
        return sorted(there - self._referenced())

    def _referenced(self) -> set[str]:
        metadata = self._table.refresh().metadata
        found = {self._table.metadata_location, *(each.metadata_file for each in metadata.metadata_log)}
        manifests = set()
        for snapshot in metadata.snapshots:
            found.add(snapshot.manifest_list)
            manifests.update(snapshot.manifests(self._table.io))
        for manifest in manifests:
            found.add(manifest.manifest_path)
            found.update(entry.data_file.file_path for entry in manifest.fetch_manifest_entry(self._table.io))
        found.update(each.statistics_path for each in metadata.statistics)
        return {_plain(path) for path in found}

    def _listed(self) -> Iterator[str]:
        scheme, netloc, path = PyArrowFileIO.parse_location(self._table.location())
        io = self._table.io
        system = io.fs_by_scheme(scheme, netloc) if isinstance(io, PyArrowFileIO) else fs.LocalFileSystem()
        root = _plain(self._table.location()).removesuffix(path)
        for each in system.get_file_info(fs.FileSelector(path, recursive=True, allow_not_found=True)):
            if each.is_file:
                yield f"{root}{each.path}"

    def remove(self, paths: Sequence[str]) -> None:
        self._step("remove")
        self._remove(paths)

    def _remove(self, paths: Sequence[str]) -> None:
        for path in paths:
            with suppress(FileNotFoundError):
                self._table.io.delete(path)

    def data_files(self) -> int:
        return len(self._snapshots.read(self._table.refresh().metadata).data)


def _live_rows(files: TableFiles, sources: Sequence[CompactedFile]) -> Iterator[pa.Table]:
    for source in sources:
        yield from files.live_rows(source.path, source.dead)


def _plain(path: str) -> str:
    return path.removeprefix("file://")


def iceberg_tables(catalog: Catalog, names: Sequence[TableName], layouts: LakeLayouts) -> list[Maintainable]:
    """The log and the named tables, those that exist. Nothing else in the catalog is read: it can belong to others."""
    found = []
    for name in (TableName(*LOG), *names):
        with suppress(NoSuchTableError):
            table = catalog.load_table((name.owner, name.name))
            found.append(Maintainable(str(name), IcebergMaintenance(table, cluster=layouts.of(name).cluster)))
    return found
