"""Maintenance of a Delta table during its delivery: compaction, expiry of the log, and files that nothing uses.

If delivery has committed during a compaction, only the commit is planned again: rows that were deleted in the old files
meanwhile are marked in the new ones. A version is readable as long as its files exist, so versions expire with the files that
only they use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain

from ggshell.clock import Clock
from ggshell.connectors.lake.compaction import (
    CompactedFile,
    OutputFile,
    bins,
    compacted_files,
    moved_marks,
    rows_in_file,
)
from ggshell.connectors.lake.forms.deletion_vectors import vector_file
from ggshell.connectors.lake.forms.delta_files import DeltaFiles, WrittenFile
from ggshell.connectors.lake.forms.delta_rows import Vectors, described_files
from ggshell.connectors.lake.forms.delta_state import LOG, Action, AddedFile, DeltaState, delta_table_at, table_location
from ggshell.connectors.lake.forms.table_maintenance import Compacted, Maintainable
from ggshell.connectors.lake.partitions import Part
from ggshell.connectors.lake.store import LakeStore
from ggshell.errors import ApplyError
from ggshell.object_stores import open_place, store_error
from ggshell.parameters.lake_tables import LakeLayouts, TableLayout
from ggshell.types import TableName

ATTEMPTS = 50
"""How often the commit of a compaction is planned. An attempt takes about as long as a small commit of delivery."""
_LOG = f"{LOG}/"


class DeltaMaintenance:
    """Maintains the Delta table at a location. ``step`` is called before each step, with its name, for tests."""

    def __init__(
        self, location: str, layout: TableLayout, clock: Clock, step: Callable[[str], None] = lambda _: None
    ) -> None:
        self._location = location
        self._layout = layout
        self._clock = clock
        self._place = open_place(location)
        self._state = DeltaState(location)
        self._vectors = Vectors(self._state)
        self._step = step

    def compact(self, target_bytes: int) -> Compacted:
        """Compact the table's small files and those with many deleted rows."""
        live = dict(self._state.refresh().files)
        done = Compacted(0, 0)
        for group in bins(described_files(live.values()), target_bytes):
            into = self._compact(live, [file.path for file in group], rows_in_file(group, target_bytes))
            if into is not None:
                done = Compacted(done.files + len(group), done.into + into)
        return done

    def _compact(self, live: Mapping[str, AddedFile], paths: Sequence[str], most_rows: int) -> int | None:
        """Replace files by new ones; return how many, or None if delivery has rewritten most of them."""
        dead = {path: self._vectors.of(live[path]) for path in paths}
        sources = compacted_files(paths, {path: live[path].rows for path in paths}, dead)
        every = sum(source.rows for source in sources)
        files = DeltaFiles(self._state.store, self._layout, self._state.schema, self._state.partition_columns)
        self._step("write")
        parts = chain.from_iterable(files.live_rows(live[path], dead[path]) for path in paths)
        added = list(files.write(parts, Part(live[paths[0]].partition, files.schema.empty_table()), most_rows))
        for _ in range(ATTEMPTS):
            present = self._state.refresh().files
            if 2 * sum(source.rows for source in sources if source.path in present) <= every and every:
                self.remove([f"{self._location}/{each.added.file}" for each in added])
                return None
            self._step("commit")
            now = self._clock.now() // 1000
            if self._state.commit(self._replacement(sources, added, now), "OPTIMIZE", now):
                return len(added)
        raise ApplyError(f"compaction of {self._location} conflicted with {ATTEMPTS} other commits")

    def _replacement(self, sources: Sequence[CompactedFile], added: Sequence[WrittenFile], now: int) -> list[Action]:
        """The actions that replace files; rows that were deleted meanwhile are marked in the new files."""
        live = self._state.files
        there = [source.path for source in sources if source.path in live]
        output = [OutputFile(each.added.path, each.added.rows, each.order) for each in added]
        marks = moved_marks({path: self._vectors.of(live[path]) for path in there}, sources, output)
        new = [
            self._vectors.marked(each.added, marks[each.added.path]) if each.added.path in marks else each.added
            for each in added
        ]
        gone = [live[path].removed(now, changes=False) for path in there]
        return [*gone, *(file.added(now, changes=False) for file in new)]

    def expire(self, before: int, most: int) -> int:
        """Remove log entries that are older than a checkpoint and the table's log retention."""
        self._step("expire")
        table = delta_table_at(self._location)
        entries = self._log_entries()
        table.create_checkpoint()
        table.cleanup_metadata()
        return entries - self._log_entries()

    def _log_entries(self) -> int:
        return sum(1 for path in self._listed() if path.startswith(_LOG) and path.endswith(".json"))

    def unreferenced(self) -> list[str]:
        there = [path for path in self._listed() if not path.startswith(_LOG)]
        # Read after the listing: what is committed meanwhile is then either not listed or known.
        used = {path for file in self._state.refresh().files.values() for path in _files_of(file)}
        return sorted(f"{self._location}/{path}" for path in there if path not in used)

    def _listed(self) -> Iterator[str]:
        """The files below the location, relative to it."""
        from pyarrow import fs

        try:
            found = self._place.system.get_file_info(fs.FileSelector(self._place.path, recursive=True))
        except OSError as error:
            raise store_error(self._location, error) from error
        for each in found:
            if each.is_file:
                yield each.path.removeprefix(self._place.path).lstrip("/")

    def remove(self, paths: list[str]) -> None:
        for path in paths:
            place = self._place.child(path.removeprefix(f"{self._location}/"))
            try:
                place.system.delete_file(place.path)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise store_error(path, error) from error

    def data_files(self) -> int:
        return len(self._state.refresh().files)


def _files_of(file: AddedFile) -> list[str]:
    """The files of a data file: itself, and that of its deletion vector."""
    vector = vector_file(file.vector) if file.vector is not None else None
    return [file.file] if vector is None else [file.file, vector]


def delta_tables(location: str, names: Sequence[TableName], layouts: LakeLayouts, clock: Clock) -> list[Maintainable]:
    """The log and the named tables, those that exist."""
    found = []
    for name in (None, *names):
        place = table_location(location, name)
        if LakeStore(place).names(LOG):
            layout = TableLayout() if name is None else layouts.of(name)
            found.append(
                Maintainable(str(name or "log"), DeltaMaintenance(place, layout, clock), versions_by_files=True)
            )
    return found
