"""The live files of an Iceberg table, and the commit of a snapshot that adds and removes any of them.

PyIceberg writes no delete files. ``FileChanges`` is a snapshot producer of it that does, and that also replaces delete files.
A manifest that the change does not concern is kept as it is if it is large; small ones are rewritten together with what
is added, so a table has few manifests and a commit costs the same however many files the table has. PyIceberg copies the
metadata of a table several times in each commit; the entries of its snapshots, which cannot be changed, are not copied here,
so a commit costs about the same however many snapshots the table has.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.io import FileIO
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestWriter,
    ManifestWriterV2,
)
from pyiceberg.table import Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import MetadataLogEntry, Operation, Snapshot, SnapshotLogEntry, Summary
from pyiceberg.table.update.snapshot import _SnapshotProducer
from pyiceberg.typedef import EMPTY_DICT
from pyroaring import BitMap

from ggshell.connectors.lake.forms.iceberg_files import read_deletes
from ggshell.errors import ApplyError

CONFLICTS = (CommitFailedException, ValidationException)
"""What PyIceberg raises if a table has another snapshot than the one that a commit was planned for: nothing was committed.
A ValidationException comes if that one has even expired."""
LARGE_MANIFEST = 100
"""Entries from which a manifest is kept as it is."""
_MANIFESTS = {DataFileContent.DATA: ManifestContent.DATA, DataFileContent.POSITION_DELETES: ManifestContent.DELETES}


def _itself(entry: object, memo: object = None) -> object:
    """The copy of an entry that is frozen."""
    return entry


for _entry in (Snapshot, SnapshotLogEntry, MetadataLogEntry):
    _entry.__deepcopy__ = _itself


class LiveFiles(NamedTuple):
    """The files of a snapshot.

    ``marked``: the rows that each delete file marks; ``dead``: the marked rows of each data file.
    """

    snapshot: int | None
    data: Mapping[str, DataFile]
    deletes: Mapping[str, DataFile]
    marked: Mapping[str, Mapping[str, BitMap]]
    dead: Mapping[str, BitMap]
    manifests: list[tuple[ManifestFile, list[ManifestEntry]]]

    def dead_of(self, path: str) -> BitMap:
        return self.dead.get(path) or BitMap()


class Snapshots:
    """Reads the live files of a table's snapshots. Manifests and delete files never change, so each is read once."""

    def __init__(self, io: FileIO) -> None:
        self._io = io
        self._entries: dict[str, list[ManifestEntry]] = {}
        self._marked: dict[str, dict[str, BitMap]] = {}

    def read(self, metadata: TableMetadata) -> LiveFiles:
        """The live files of the current snapshot. Raises ApplyError for delete files that PyIceberg cannot apply either."""
        snapshot = metadata.current_snapshot()
        manifests = [] if snapshot is None else [(each, self._read(each)) for each in snapshot.manifests(self._io)]
        self._entries = {manifest.manifest_path: entries for manifest, entries in manifests}
        data: dict[str, DataFile] = {}
        deletes: dict[str, DataFile] = {}
        for _, entries in manifests:
            for entry in entries:
                file = entry.data_file
                if file.content not in _MANIFESTS:
                    raise ApplyError(
                        f"{metadata.location} has equality deletes, which this version cannot read",
                        hint="compact the table with the program that wrote them",
                    )
                (data if file.content is DataFileContent.DATA else deletes)[file.file_path] = file
        self._marked = {path: self._marked.get(path) or read_deletes(self._io, path) for path in deletes}
        dead: dict[str, BitMap] = defaultdict(BitMap)
        for marked in self._marked.values():
            for path, positions in marked.items():
                if path in data:
                    dead[path] |= positions
        return LiveFiles(
            snapshot.snapshot_id if snapshot is not None else None, data, deletes, self._marked, dict(dead), manifests
        )

    def _read(self, manifest: ManifestFile) -> list[ManifestEntry]:
        found = self._entries.get(manifest.manifest_path)
        return manifest.fetch_manifest_entry(self._io) if found is None else found


class FileChange(NamedTuple):
    """The files that a snapshot adds, and the paths of those it removes; data files and delete files alike."""

    added: list[DataFile]
    removed: set[str]


class _DeleteManifestWriter(ManifestWriterV2):  # type: ignore[misc]
    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


class FileChanges(_SnapshotProducer["FileChanges"]):  # type: ignore[misc]
    """Commits a FileChange as one snapshot.

    Raises one of ``CONFLICTS`` if the table has another snapshot meanwhile than the one that the change was planned for.
    """

    def __init__(
        self,
        transaction: Transaction,
        live: LiveFiles,
        change: FileChange,
        operation: Operation,
        properties: Mapping[str, str],
    ) -> None:
        super().__init__(
            Operation.OVERWRITE if operation is Operation.REPLACE else operation,
            transaction,
            transaction._table.io,
            snapshot_properties=dict(properties),
        )
        self._live = live
        self._change = change
        self._added_data_files = list(change.added)
        self._named_operation = operation
        self._deleted_data_files = {
            file for path, file in (*live.data.items(), *live.deletes.items()) if path in change.removed
        }
        if self._parent_snapshot_id != live.snapshot:
            raise CommitFailedException(f"snapshot {self._parent_snapshot_id} has replaced {live.snapshot}")

    def _validate_concurrency(self) -> None:
        if self._commit_window is not None and not self._commit_window.is_empty():
            raise CommitFailedException(f"another snapshot has replaced {self._live.snapshot}")

    def _summary(self, snapshot_properties: dict[str, str] = EMPTY_DICT) -> Summary:
        summary = super()._summary(snapshot_properties)
        return Summary(self._named_operation, **summary.additional_properties)

    def _existing_manifests(self) -> list[ManifestFile]:
        return self._manifests()

    def _deleted_entries(self) -> list[ManifestEntry]:
        return [entry for _, entries in self._live.manifests for entry in entries if self._is_removed(entry)]

    def _is_removed(self, entry: ManifestEntry) -> bool:
        return entry.data_file.file_path in self._change.removed

    def _manifests(self) -> list[ManifestFile]:
        kept: list[ManifestFile] = []
        written: dict[tuple[ManifestContent, int], list[ManifestEntry]] = defaultdict(list)
        for manifest, entries in self._live.manifests:
            if len(entries) >= LARGE_MANIFEST and not any(map(self._is_removed, entries)):
                kept.append(manifest)
            else:
                written[manifest.content, manifest.partition_spec_id] += map(self._carried, entries)
        for file in self._change.added:
            entry = ManifestEntry.from_args(
                status=ManifestEntryStatus.ADDED,
                snapshot_id=self._snapshot_id,
                sequence_number=None,
                file_sequence_number=None,
                data_file=file,
            )
            written[_MANIFESTS[file.content], file.spec_id].append(entry)
        return [*(self._written(*key, entries) for key, entries in written.items() if entries), *kept]

    def _carried(self, entry: ManifestEntry) -> ManifestEntry:
        removed = self._is_removed(entry)
        return ManifestEntry.from_args(
            status=ManifestEntryStatus.DELETED if removed else ManifestEntryStatus.EXISTING,
            snapshot_id=self._snapshot_id if removed else entry.snapshot_id,
            sequence_number=entry.sequence_number,
            file_sequence_number=entry.file_sequence_number,
            data_file=entry.data_file,
        )

    def _written(self, content: ManifestContent, spec: int, entries: list[ManifestEntry]) -> ManifestFile:
        with self._writer(content, spec) as writer:
            for entry in entries:
                writer.add_entry(entry)
        return writer.to_manifest_file()

    def _writer(self, content: ManifestContent, spec: int) -> ManifestWriter:
        if content is ManifestContent.DATA:
            return self.new_manifest_writer(self.spec(spec))
        return _DeleteManifestWriter(
            self.spec(spec), self.schema(), self.new_manifest_output(), self._snapshot_id, self._compression
        )
