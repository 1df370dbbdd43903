"""Maintains the tables of a lake: compaction, expiry of old versions, removal of files that nothing uses.

It runs in a separate process during the group's delivery. Every step is safe wherever the process ends: a compaction is one
commit, and files without a commit, also those of killed processes, are removed by a later maintenance.
"""

from __future__ import annotations

from ggshell.clock import Clock, SystemClock
from ggshell.connectors.lake.commits import CommitLog, require_lake
from ggshell.connectors.lake.credentials import applied, group_environment
from ggshell.connectors.lake.forms.table_maintenance import Maintainable
from ggshell.connectors.lake.outages import errors_by_cause
from ggshell.connectors.lake.target import LakeTarget, TableForm, lake_target
from ggshell.durations import MICROSECONDS
from ggshell.errors import ApplyError, ConflictError, DiskError, GgsError
from ggshell.files import locked
from ggshell.home.checkpoint import GroupKind, load
from ggshell.home.home import Home
from ggshell.home.maintenance import MaintenanceFiles, MaintenanceResult, MaintenanceSettings, TableResult, removable
from ggshell.parameters.lake_tables import LakeLayouts
from ggshell.parameters.loading import load_replicat
from ggshell.types import TableName

BUSY = 3
"""The exit code of a process that found another maintenance of the same lake."""


def maintain(
    home: Home, group: str, target: LakeTarget, settings: MaintenanceSettings, clock: Clock
) -> MaintenanceResult:
    """Maintain the tables that a group delivers to, and record the result in the home.

    Raises ConflictError if a maintenance of the group is already running; otherwise the error that ended the maintenance,
    which is recorded as well.
    """
    files = MaintenanceFiles(home.root, group)
    with locked(files.lock, f"maintenance of REPLICAT {group}"):
        result = MaintenanceResult(clock.now())
        files.save(result)
        try:
            with errors_by_cause(target):
                tables = _maintain(open_maintenance(home, group, target, clock), settings, files, clock)
        except (GgsError, OSError) as error:
            shown = error if isinstance(error, GgsError) else DiskError(f"lake {target.location}: {error}")
            files.save(result._replace(ended=clock.now(), code=shown.code, error=str(shown)))
            raise shown from error
        result = result._replace(ended=clock.now(), tables=tuple(tables))
        files.save(result)
    return result


def run_maintenance(home: Home, group: str) -> int:
    """The process of a maintenance that Manager starts. Returns the exit code; ``maintain`` has recorded an error."""
    options = load(home.checkpoint(group, GroupKind.REPLICAT)).options
    target = lake_target(home, options.target)
    try:
        with applied(group_environment(home, group, target)):
            maintain(home, group, target, options.maintenance, SystemClock())
    except ConflictError:
        return BUSY
    return 0


def _maintain(
    tables: list[Maintainable], settings: MaintenanceSettings, files: MaintenanceFiles, clock: Clock
) -> list[TableResult]:
    known, left, found = files.unreferenced(), dict[str, int](), list[TableResult]()
    for name, table, versions_by_files in tables:
        compacted = table.compact(settings.target_bytes)
        expired = table.expire(clock.now() - settings.retain * MICROSECONDS, settings.versions)
        age = max(settings.safe_age, settings.retain) if versions_by_files else settings.safe_age
        old, waiting = removable(known, table.unreferenced(), clock.now(), age)
        table.remove(old)
        left |= waiting
        found.append(TableResult(name, compacted.files, compacted.into, expired, len(old), table.data_files()))
    files.save_unreferenced(left)
    return found


def group_layouts(home: Home, group: str) -> LakeLayouts:
    """The layouts of the tables, from the group's parameter file; the default ones if it has none yet."""
    path = home.parameters(group)
    return load_replicat(path, group).layouts if path.is_file() else LakeLayouts()


def open_maintenance(home: Home, group: str, target: LakeTarget, clock: Clock) -> list[Maintainable]:
    """The log and the tables that a group delivers to. A location or catalog can also contain the tables of others.

    There are none before the first commit. Raises StoreError, ApplyError, and StateError if the lake is missing.
    """
    log, checkpoint = CommitLog(target, group), home.checkpoint(group, GroupKind.REPLICAT)
    if checkpoint.is_file():
        require_lake(log, load(checkpoint))
    if target.form is TableForm.PARQUET:
        raise ApplyError(
            f"lake {target.location} consists of Parquet files, which cannot be replaced together while others read them",
            hint="use a lake of Delta or Iceberg tables (TARGET delta:… or iceberg:…)",
        )
    done, layouts = log.latest(), group_layouts(home, group)
    if done is None:
        return []
    names = sorted(map(TableName.parse, done.tables))
    if target.form is TableForm.ICEBERG:
        from ggshell.connectors.lake.forms.iceberg_catalog import catalog_of
        from ggshell.connectors.lake.forms.iceberg_maintenance import iceberg_tables

        return iceberg_tables(catalog_of(target), names, layouts)
    from ggshell.connectors.lake.forms.delta_maintenance import delta_tables

    return delta_tables(target.location, names, layouts, clock)
