"""A lake of Delta tables.

    <target>/log                      every change, once, by owner and table
    <target>/current/shop.orders      the current rows, with ``_key``

Each write is one Delta commit, which includes an application transaction (``ggshell/<GROUP>``). Its version is the position
in the trail: file number and RBA in one number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
from deltalake.exceptions import DeltaError

from ggshell.clock import Clock, SystemClock
from ggshell.connectors.lake.forms import HeldTable, LakeBatch, TableChange
from ggshell.connectors.lake.forms.delta_log import PARTITIONS, added_files, delta_layout
from ggshell.connectors.lake.forms.delta_rows import DeltaRows, RowChange
from ggshell.connectors.lake.forms.delta_state import FEED_SETTING, Action, DeltaState, table_location
from ggshell.connectors.lake.forms.source_record import record_properties, source_record
from ggshell.connectors.lake.log_files import LogFile, LogLayout
from ggshell.connectors.lake.partitions import (
    derived,
    field_values,
    fields_of,
    fields_text,
    possible,
    require_free_names,
)
from ggshell.errors import ApplyError, StoreError
from ggshell.parameters.lake_tables import DEFAULT_LAYOUTS, LakeLayouts, PartitionField
from ggshell.query.trail_read import COLUMNS, chosen
from ggshell.types import TableName, TrailPosition

RBA_BITS = 33
"""The bits for the RBA. A trail file has 2,000 MB plus the rest of its last transaction, so 8 GB are enough."""
ATTEMPTS = 20
"""How often a write is planned. Only maintenance, which commits rarely, writes to the same tables."""
_FIELDS = "ggshell.partition"
"""The property of a table with the fields of its partitions."""


class DeltaTables:
    """The Delta tables at a location."""

    def __init__(
        self, location: str, group: str, cache: Path, layouts: LakeLayouts = DEFAULT_LAYOUTS, clock: Clock | None = None
    ) -> None:
        self._location = location
        self._application = f"ggshell/{group.upper()}"
        self._cache = cache
        self._layouts = layouts
        self._clock = clock or SystemClock()
        self._states: dict[str, DeltaState] = {}
        self._rows: dict[TableName, DeltaRows] = {}

    def reached(self, name: TableName | None) -> TrailPosition | None:
        version = self._state(name).marks.get(self._application)
        return None if version is None else TrailPosition(version >> RBA_BITS, version & ((1 << RBA_BITS) - 1))

    def held(self, name: TableName, batch: LakeBatch) -> HeldTable | None:
        state = self._state(name)
        if not state.exists:
            return None
        fields = self._fields(name, state)
        extra = {field.name for field in derived(fields)}
        schema = pa.schema([field for field in state.schema if field.name not in extra])
        rows = self._row_changes(name, state)

        def found(keys: pa.Array | None) -> pa.Table:
            return (rows.every_row() if keys is None else rows.rows(keys)).select(schema.names)

        said = source_record(state.configuration)
        return HeldTable(schema, found, said.numbers, said.key, fields)

    def fitting(self, kind: pa.DataType) -> pa.DataType:
        return kind

    def widens(self, old: pa.DataType, new: pa.DataType) -> bool:
        """Not all readers know the table feature for wider types."""
        return False

    @property
    def renames(self) -> bool:
        """A renamed column would need the table feature for names, which not all readers know."""
        return False

    def log_layout(self, number: int) -> LogLayout:
        self._state(None)
        return delta_layout(self._location, chosen(COLUMNS))

    def append_log(self, files: Sequence[LogFile], batch: LakeBatch) -> None:
        def actions(state: DeltaState, now: int) -> list[Action]:
            created = [] if state.exists else state.creation(chosen(COLUMNS), PARTITIONS, {}, now)
            return [*created, *added_files(files, now)]

        self._write(None, "WRITE", batch, actions)

    def apply(self, change: TableChange, batch: LakeBatch) -> None:
        name = change.definition.name
        _require_possible(name, change.rows.schema)

        def actions(state: DeltaState, now: int) -> list[Action]:
            fields = self._fields(name, state)
            require_free_names(change.rows.schema.names, fields)
            if change.changed:
                fields = possible(fields, change.rows.schema)
            schema = _with_derived(change.rows.schema, fields)
            described = self._described(state, change, schema, fields, now)
            replaced = None if change.cleared or not state.exists else change.replaced
            rows = RowChange(change.rows, replaced, change.filled)
            return [*described, *self._row_changes(name, state).actions(rows, schema, fields, now)]

        self._write(name, "MERGE", batch, actions)

    def _described(
        self, state: DeltaState, change: TableChange, schema: pa.Schema, fields: Sequence[PartitionField], now: int
    ) -> list[Action]:
        """The actions that create the table, or change its columns or its settings."""
        layout = self._layouts.of(change.definition.name)
        wanted: Mapping[str, str] = {
            _FIELDS: fields_text(fields),
            FEED_SETTING: str(layout.feed).lower(),
            **record_properties(change),
        }
        if state.exists and state.schema == schema and wanted.items() <= state.configuration.items():
            return []
        return state.creation(schema, [field.name for field in fields], wanted, now)

    def _fields(self, name: TableName, state: DeltaState) -> tuple[PartitionField, ...]:
        """The fields of the table's partitions: those that it was created with."""
        if not state.exists:
            return self._layouts.of(name).partition
        return fields_of(state.configuration.get(_FIELDS, "[]"))

    def _row_changes(self, name: TableName, state: DeltaState) -> DeltaRows:
        if name not in self._rows:
            self._rows[name] = DeltaRows(state, self._cache / quote(str(name), safe=""), self._layouts.of(name))
        return self._rows[name]

    def _write(
        self,
        name: TableName | None,
        operation: str,
        batch: LakeBatch,
        planned: Callable[[DeltaState, int], list[Action]],
    ) -> None:
        """Plan a write and commit it; plan it again if maintenance has committed meanwhile.

        If another process of this group has committed the batch, the table has all of it.
        """
        state = self._state(name)
        for _ in range(ATTEMPTS):
            now = self._clock.now() // 1000
            with _refusing("the log" if name is None else str(name)):
                if state.commit([*planned(state, now), self._mark(batch, now)], operation, now):
                    return
            reached = self.reached(name)
            if reached is not None and reached >= batch.position:
                return
        raise ApplyError(f"a write to {state.location} conflicted with {ATTEMPTS} other commits")

    def _state(self, name: TableName | None) -> DeltaState:
        """The present state of a table, which may not exist yet. Raises StoreError."""
        path = table_location(self._location, name)
        if path not in self._states:
            self._states[path] = DeltaState(path)
        try:
            return self._states[path].refresh()
        except (ValueError, KeyError, TypeError) as error:
            raise StoreError(f"Delta table {path} cannot be opened: {error}") from error

    def _mark(self, batch: LakeBatch, now: int) -> Action:
        seqno, rba = batch.position
        if rba >> RBA_BITS:
            raise ApplyError(f"RBA {rba} is too large for a Delta lake", hint="use smaller trail files")
        return {"txn": {"appId": self._application, "version": seqno << RBA_BITS | rba, "lastUpdated": now}}


def _with_derived(schema: pa.Schema, fields: Sequence[PartitionField]) -> pa.Schema:
    """The columns of a table: those of its rows, and those that stand for the transforms of its partitions."""
    empty = schema.empty_table()
    for field in derived(fields):
        schema = schema.append(pa.field(field.name, field_values(empty, field).type))
    return schema.remove_metadata()


@contextmanager
def _refusing(what: str) -> Iterator[None]:
    """Convert errors of the library, and of values that do not fit, to ApplyError."""
    try:
        yield
    except (DeltaError, pa.ArrowInvalid) as error:
        raise ApplyError(f"Delta cannot write {what}: {str(error).splitlines()[0]}") from error


def _require_possible(name: TableName, schema: pa.Schema) -> None:
    """Raise ApplyError if the format, or its library, cannot have a table."""
    hint = "exclude the table with MAPEXCLUDE, or deliver it to a lake of Iceberg tables"
    if "%" in name.name or "%" in name.owner:
        raise ApplyError(f"Delta's library cannot open a table with % in its name: {name}", hint=hint)
    folded: dict[str, str] = {}
    for column in schema.names:
        other = folded.setdefault(column.lower(), column)
        if other != column:
            raise ApplyError(f"a Delta table cannot have both columns {other} and {column}: {name}", hint=hint)
