"""Delivers batches of a trail to a lake, each exactly once.

Spark's stream defines the contents of a batch; the commit shows whether it is stored. Tasks write the files of the log and
reduce the rest to net effects (``slices``); this module composes them and commits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from ggshell.connectors.lake.columns import Rules
from ggshell.connectors.lake.commits import CommitLog, LakeCommit
from ggshell.connectors.lake.forms import HeldTable, LakeBatch, LakeTables, TableChange
from ggshell.connectors.lake.history import VersionChanges
from ggshell.connectors.lake.net_effects import NetEffects, of_one_shape
from ggshell.connectors.lake.rekeying import lost_key
from ggshell.connectors.lake.rows import table_change, version_change
from ggshell.connectors.lake.slices import SlicePart, SliceTask
from ggshell.errors import StoreError
from ggshell.parameters.lake_tables import DEFAULT_LAYOUTS, Deletes, LakeLayouts, TableLayout
from ggshell.query.trail_read import HomeKeys
from ggshell.record.definition import table_number
from ggshell.record.operation import IoType
from ggshell.types import Csn, TableName, TrailPosition

Wanted = Callable[[TableName], bool]
Count = Callable[[TableName, int, int], None]
Run = Callable[[SliceTask], list[SlicePart]]
"""Runs a task on every split of a batch."""


class TableEffects(NamedTuple):
    """The changes of one table: their net effects, one for each key that it had, or, with HISTORY, each change."""

    net: list[NetEffects]
    versions: list[VersionChanges]

    @property
    def has_key(self) -> bool:
        """Whether the table has a key, so that it can have a current state."""
        definitions = [each.definition for each in self.net] + [each.changes.definition for each in self.versions]
        return any(definition.key for definition in definitions)


class Attempt(NamedTuple):
    """A commit that was begun, and the rows by table and operation that it has."""

    commit: LakeCommit
    counts: Mapping[tuple[TableName, int], int]


class LakeDelivery:
    """Writes batches, with these guarantees, each of them tested:

    1. A committed batch is not written again, regardless of Spark's state.
    2. A batch's data is complete before its commit. An attempt without a commit is overwritten by the next one, or, if a table
       itself records the position that it has reached, continued after that position. The commit names that table too.
    3. A table without a key has a log and no current state, and a warning reports this once (``warn``). If a table loses its
       key, the delivery ends, because its current state would become wrong.
    """

    def __init__(
        self,
        tables: LakeTables,
        log: CommitLog,
        wanted: Wanted,
        count: Count,
        warn: Callable[[str], None],
        keys: HomeKeys | None = None,
        least: Csn | None = None,
        layouts: LakeLayouts = DEFAULT_LAYOUTS,
        trail: str = "",
    ) -> None:
        """``least``: the CSN of the first transaction that is delivered; the trail can contain earlier ones.

        ``trail``: the name of the trail's files, for the commits.
        """
        self.committed = log.latest()
        self._tables = tables
        self._log = log
        self._wanted = wanted
        self._count = count
        self._warn = warn
        self._keys = keys
        self._least = least
        self._layouts = layouts
        self._trail = trail
        self._explained: set[TableName] = set()
        self._said: set[str] = set()
        self._attempt: Attempt | None = None

    def write(self, run: Run, number: int) -> None:
        """Write a batch unless it is already committed. Raises ApplyError, DiskError, TrailError.

        After ConnectionLostError it can be called again: data of the batch that the store already has is found or overwritten.
        """
        self._settle()
        done = self.committed
        if done is not None and number <= done.batch:
            return
        if done is not None:
            self._log.require_there(done)
        logged = self._ahead([None])
        layout = self._tables.log_layout(number)
        task = SliceTask(self._wanted, self._keys, layout, logged, least=self._least, layouts=self._layouts)
        parts = sorted(run(task), key=lambda part: part.order)
        last = max((part.last for part in parts if part.last is not None), default=None)
        if last is None:
            return
        versions = dict(done.tables) if done is not None else {}
        _require_keys(parts, versions)
        batch = LakeBatch(number, last.position, dict(versions))
        counts = _summed(parts)
        files = [file for part in parts for file in part.files]
        if files:
            self._tables.append_log(files, batch)
        self._explain(parts, counts)
        effects = _composed(parts, self._layouts)
        ahead = self._ahead(effects)
        for name, found in self._missing(run, task, effects, ahead).items():
            self._change(name, found, batch, versions)
        versions |= {str(name): number for name in ahead}
        total = sum(count for (_, io_type), count in counts.items() if io_type != IoType.SEQUENCE_OP)
        facts = last.csn, last.xid, last.commit_time
        commit = LakeCommit(number, batch.position, *facts, total, versions, self._trail)
        self._log.sync()
        if done is not None:
            self._log.require_there(done)
        self._attempt = Attempt(commit, counts)
        self._log.add(commit)
        self._complete(self._attempt)

    def _settle(self) -> None:
        """Find out whether the last commit was stored, if the store has not reported it."""
        if self._attempt is not None and self._log.latest() == self._attempt.commit:
            self._complete(self._attempt)

    def _complete(self, attempt: Attempt) -> None:
        self.committed, self._attempt = attempt.commit, None
        for (name, io_type), count in attempt.counts.items():
            if io_type != IoType.SEQUENCE_OP:
                self._count(name, io_type, count)

    def _ahead(self, names: Iterable[TableName | None]) -> dict[TableName | None, TrailPosition]:
        """The positions of the tables that a crash left ahead of the commits."""
        found = {name: self._tables.reached(name) for name in names}
        done = self.committed
        return {
            name: reached
            for name, reached in found.items()
            if reached is not None and (done is None or reached > done.position)
        }

    def _missing(
        self,
        run: Run,
        task: SliceTask,
        found: dict[TableName, TableEffects],
        ahead: Mapping[TableName | None, TrailPosition],
    ) -> dict[TableName, TableEffects]:
        """The changes of a batch by table; of a table that a crash left ahead, only those that it does not have."""
        if not ahead:
            return found
        names = frozenset(name for name in ahead if name is not None)
        again = run(task._replace(log=None, reached=ahead, only=names))
        found = {name: effects for name, effects in found.items() if name not in ahead}
        return found | _composed(sorted(again, key=lambda part: part.order), self._layouts)

    def _change(self, name: TableName, found: TableEffects, batch: LakeBatch, versions: dict[str, int]) -> None:
        """Write the change of a table's current rows."""
        held = self._tables.held(name, batch)
        if held is None and str(name) in batch.versions:
            raise StoreError(
                f"lake {self._log.location} no longer contains table {name}, which has changed in batch"
                f" {batch.versions[str(name)]}",
                hint="restore it, or deliver the table to another lake",
            )
        if held is None and not found.has_key:
            return
        rules = Rules.of(self._tables)
        change = version_change(found.versions, held, rules) if found.versions else table_change(found.net, held, rules)
        kept = _partition_messages(name, held, self._layouts.of(name))
        renewed = _renewed_message(held, change) if held is not None else []
        for text in [*kept, *renewed, *_column_messages(change)]:
            if text not in self._said:
                self._said.add(text)
                self._warn(text)
        self._tables.apply(change, batch)
        versions[str(name)] = batch.number

    def _explain(self, parts: list[SlicePart], counts: Mapping[tuple[TableName, int], int]) -> None:
        """Report, once, each sequence and each table without a key."""
        keyless = {name for part in parts for name, effects in part.effects.items() if any(map(_is_keyless, effects))}
        for name in sorted(keyless - self._explained):
            self._warn(f"{name} has no key: the lake contains its changes in the log, but not its current state.")
        self._explain_truncates(counts)
        sequences = {name for name, io_type in counts if io_type == IoType.SEQUENCE_OP}
        for name in sorted(sequences - self._explained):
            self._warn(f"{name} is a sequence: its values are not applied to a lake.")
        self._explained |= keyless | sequences

    def _explain_truncates(self, counts: Mapping[tuple[TableName, int], int]) -> None:
        """Report, once, each table that is truncated and that the lake does not have."""
        truncated = {name for name, io_type in counts if io_type == IoType.PURGE_DATA} - self._explained
        known = self.committed.tables if self.committed is not None else {}
        for name in sorted(name for name in truncated if str(name) not in known and not _rows_of(name, counts)):
            self._warn(
                f"{name} is truncated, and the lake does not have it. The rows of a partition stay in its table."
            )
            self._explained.add(name)


def _is_keyless(effects: NetEffects) -> bool:
    return bool(effects.definition.columns) and not effects.definition.key


def _require_keys(parts: list[SlicePart], known: Iterable[str]) -> None:
    """Raise ApplyError if a table has changes without a key after the lake has got current rows of it."""
    current = set(known)
    for part in parts:
        for name, several in part.effects.items():
            for effects in several:
                if _is_keyless(effects) and str(name) in current:
                    raise lost_key(name)
                if effects.definition.key and effects.keys:
                    current.add(str(name))
        current.update(map(str, part.versions))


def _rows_of(name: TableName, counts: Mapping[tuple[TableName, int], int]) -> int:
    """How many rows of a table a batch has, without its TRUNCATEs."""
    return sum(count for (table, io_type), count in counts.items() if table == name and io_type != IoType.PURGE_DATA)


def _partition_messages(name: TableName, held: HeldTable | None, layout: TableLayout) -> list[str]:
    """What the administrator should know about an existing table whose partitions are not those of its layout."""
    if held is None or held.partition is None or not layout.partition or {*held.partition} == {*layout.partition}:
        return []
    fields = ", ".join(field.text for field in held.partition)
    there = f"partitioned by ({fields})" if fields else "without partitions"
    return [f"PARTITIONBY does not apply to {name}, which exists in the lake: it stays {there}."]


def _column_messages(change: TableChange) -> list[str]:
    """What the administrator should know about changed columns."""
    name, found = change.definition.name, []
    if change.changed:
        found.append(f"Rewriting {name}: the type of {', '.join(change.changed)} has changed.")
    if change.reused:
        names = ", ".join(new for new, _ in change.reused)
        found.append(f"Rewriting {name}: {names} is a different column than before: the rows have its own values.")
    if change.rekeyed:
        key = ", ".join(f"{each.name} {each.type_name}".strip() for each in change.key)
        found.append(f"Rewriting {name}: its key has changed to {key}.")
    if change.filled:
        found.append(f"Rewriting {name}: earlier rows get the default of {', '.join(change.filled)}.")
    found += [f"Column {old} of {name} is renamed to {new}." for old, new in change.renamed]
    found += [f"Column {each.name} of {name} is widened to {each.type}." for each in change.widened]
    found += [
        f"Column {each} of {name} was dropped or renamed at the source: it stays in the lake, and new rows have NULL."
        for each in change.dropped
    ]
    found += [
        f"Column {old} of {name} has another type at the source, which does not hold all values in the lake: "
        f"column {new} has the new values."
        for old, new in change.stored_as
    ]
    found += [
        f"Column {each} of {name} has values that its type in the lake does not hold: they are NULL, and the log has them."
        for each in change.nulled
    ]
    return found


def _renewed_message(held: HeldTable, change: TableChange) -> list[str]:
    """What to report if the numbers of a table and of all its columns are other ones than before."""
    before = set(map(table_number, held.numbers.values())) - {0}
    now = {table_number(column.number) for column in change.definition.columns} - {0}
    if not before or not now or before & now or change.cleared:
        return []
    return [
        f"{change.definition.name} is another table than before at the source, or the source has moved: earlier rows stay in"
        " the lake, and columns are found by their names."
    ]


def _summed(parts: list[SlicePart]) -> dict[tuple[TableName, int], int]:
    found: dict[tuple[TableName, int], int] = {}
    for part in parts:
        for key, count in part.counts.items():
            found[key] = found.get(key, 0) + count
    return found


def _composed(parts: list[SlicePart], layouts: LakeLayouts) -> dict[TableName, TableEffects]:
    """The changes of the parts of a batch, which are in order, of each table whose current rows they change."""
    effects: dict[TableName, list[NetEffects]] = {}
    versions: dict[TableName, list[VersionChanges]] = {}
    for part in parts:
        for name, each in part.effects.items():
            effects.setdefault(name, []).extend(each)
        for name, several in part.versions.items():
            versions.setdefault(name, []).extend(several)
    found = {name: TableEffects([], several) for name, several in versions.items()}
    for name, some in effects.items():
        keeps_deleted = layouts.of(name).deletes is Deletes.MARKED
        shapes = of_one_shape(some, keeps_deleted=keeps_deleted)
        net = [each for each in shapes if each.cleared or (each.definition.key and each.keys)]
        if net and name not in found:
            found[name] = TableEffects(net, [])
    return {name: found[name] for name in sorted(found)}
