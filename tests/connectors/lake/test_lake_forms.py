"""Delta and Iceberg tables after batches of changes: their rows are correct after any change of the columns."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from changes import arrays, histories, valid
from hypothesis import HealthCheck, given, settings
from lakes import PEOPLE, read_table
from single_effects import RecordChange, Values

from ggshell.connectors.lake.columns import Rules
from ggshell.connectors.lake.forms import LakeBatch, LakeTables, open_tables
from ggshell.connectors.lake.net_effects import net_effects
from ggshell.connectors.lake.rows import table_change
from ggshell.connectors.lake.target import LakeTarget, TableForm
from ggshell.errors import ApplyError
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.operation import IoType
from ggshell.types import TableName, TrailPosition

THINGS = TableDefinition(
    TableName("hr", "Odd 'things'"), tuple(Column(name, "text") for name in ("id", "v", "w")), (0,)
)
FORMS = [TableForm.DELTA, TableForm.ICEBERG]
each_form = pytest.mark.parametrize("form", FORMS)


class Tables:
    """The tables of a form in a folder, and their messages; ``merge`` applies changes as a batch of its own."""

    def __init__(self, form: TableForm, folder: Path) -> None:
        self.target = LakeTarget(form, str(folder))
        self._batch = 0
        self.open()

    def open(self) -> LakeTables:
        self.tables = open_tables(self.target, "LAKE", self.target.folder.parent / "cache")
        return self.tables

    def merge(self, definition: TableDefinition, *changes: RecordChange) -> None:
        self._batch += 1
        batch = LakeBatch(self._batch, TrailPosition(3, self._batch * 100))
        self.tables.reached(definition.name)
        held = self.tables.held(definition.name, batch)
        change = table_change([net_effects(arrays(definition, list(changes)))], held, Rules.of(self.tables))
        self.tables.apply(change, batch)

    def rows(self, definition: TableDefinition, *columns: str) -> list[tuple[Any, ...]]:
        found = read_table(self.target, definition.name)
        assert found is not None
        return sorted(tuple(row.values()) for row in found.select(columns).to_pylist())


def insert(**values: str | None) -> RecordChange:
    return RecordChange(IoType.INSERT, {}, values)


def update(**values: str | None) -> RecordChange:
    return RecordChange(IoType.FIELD_COMP, {}, values)


def with_columns(*columns: Column) -> TableDefinition:
    return PEOPLE._replace(columns=columns)


@each_form
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=histories, more=histories)
@pytest.mark.slow
def test_batches_of_changes_give_the_rows_of_the_changes(
    form: TableForm, batches: list[RecordChange], more: list[RecordChange]
) -> None:
    rows: dict[str, Values] = {}
    with tempfile.TemporaryDirectory() as folder:
        tables = Tables(form, Path(folder))
        for changes in ([insert(id="1", v="a", w=None)], batches, more):
            kept = valid(rows, list(changes))
            if kept:
                tables.merge(THINGS, *kept)
        assert tables.rows(THINGS, "id", "v", "w") == sorted(
            (row["id"], row.get("v"), row.get("w")) for row in rows.values()
        )


@each_form
def test_keys_may_contain_any_characters(form: TableForm, tmp_path: Path) -> None:
    keys = ["it's", "a\\b", "", "é", "\U0001f600", '"q"', "z%"]
    tables = Tables(form, tmp_path / "a lake")
    tables.merge(THINGS, *(insert(id=key, v="1", w="2") for key in keys))
    tables.merge(THINGS, *(update(id=key, v="3") for key in keys))
    tables.merge(THINGS, RecordChange(IoType.DELETE, {}, {"id": "it's"}))
    assert tables.rows(THINGS, "id", "v", "w") == sorted((key, "3", "2") for key in keys[1:])


@each_form
def test_a_table_knows_its_last_batch(form: TableForm, tmp_path: Path) -> None:
    tables = Tables(form, tmp_path / "lake")
    assert tables.tables.reached(PEOPLE.name) is None
    tables.merge(PEOPLE, insert(id="1", name="Ada", pay="1"))
    tables.merge(PEOPLE, update(id="1", pay="2"))
    for _ in range(2):
        assert tables.tables.reached(PEOPLE.name) == TrailPosition(3, 200)
        assert tables.tables.reached(None) is None
        tables.open()
    assert open_tables(tables.target, "OTHER", tmp_path / "cache").reached(PEOPLE.name) is None


@each_form
def test_others_may_optimize_a_table_between_two_batches(form: TableForm, tmp_path: Path) -> None:
    tables = Tables(form, tmp_path / "lake")
    for number in range(3):
        tables.merge(PEOPLE, insert(id=str(number), name="Ada", pay="1"))
    if form is TableForm.DELTA:
        from deltalake import DeltaTable

        table = DeltaTable(Path(tables.target.location) / "current" / "hr.people")
        table.optimize.compact()
        table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    else:
        from ggshell.connectors.lake.forms.iceberg_catalog import open_catalog

        table = open_catalog(Path(tables.target.location)).load_table(("hr", "people"))
        table.overwrite(table.scan().to_arrow())
        table.maintenance.expire_snapshots().older_than(datetime.now()).commit()
    tables.merge(PEOPLE, update(id="1", name="Bo"))
    assert tables.rows(PEOPLE, "id", "name") == [(0, "Ada"), (1, "Bo"), (2, "Ada")]
    assert tables.tables.reached(PEOPLE.name) == TrailPosition(3, 400)


@each_form
def test_a_new_column_is_added_and_a_dropped_one_stays(form: TableForm, tmp_path: Path) -> None:
    tables = Tables(form, tmp_path / "lake")
    tables.merge(PEOPLE, insert(id="1", name="Ada", pay="1"), insert(id="2", name="Bo", pay="2"))
    since = Column("since", "timestamp without time zone")
    wider = with_columns(*PEOPLE.columns, since)
    tables.merge(wider, update(id="1", since="2026-11-21 10:00:00"), insert(id="3", name="Cy", pay="3", since=None))
    found = tables.rows(wider, "id", "name", "since")
    assert [(number, name, str(time)) for number, name, time in found] == [
        (1, "Ada", "2026-11-21 10:00:00"),
        (2, "Bo", "None"),
        (3, "Cy", "None"),
    ]
    narrower = with_columns(PEOPLE.columns[0], since)
    tables.merge(narrower, update(id="2", since=None), insert(id="4", since=None))
    assert tables.rows(wider, "id", "name") == [(1, "Ada"), (2, "Bo"), (3, "Cy"), (4, None)]


@each_form
@pytest.mark.parametrize("reopened", [lambda tables: tables.tables, Tables.open], ids=["same", "opened again"])
def test_a_changed_column_type_rewrites_the_table(
    form: TableForm, reopened: Callable[[Tables], LakeTables], tmp_path: Path
) -> None:
    tables = Tables(form, tmp_path / "lake")
    tables.merge(PEOPLE, *(insert(id=str(number), name="x", pay="1.5") for number in range(1, 4)))
    reopened(tables)
    changed = with_columns(Column("id", "bigint"), PEOPLE.columns[1], Column("pay", "text"))
    tables.merge(changed, update(id="2", pay="much"), insert(id="4000000000", name=None, pay="9"))
    assert tables.rows(changed, "id", "pay") == [(1, "1.50"), (2, "much"), (3, "1.50"), (4000000000, "9")]
    tables.merge(changed, RecordChange(IoType.PURGE_DATA, {}, {}))
    assert tables.rows(changed, "id", "pay") == []
    assert tables.tables.reached(PEOPLE.name) == TrailPosition(3, 300)


@each_form
def test_every_type_is_stored_correctly(form: TableForm, tmp_path: Path) -> None:
    kinds: Sequence[tuple[str, str]] = [
        ("smallint", "7"),
        ("bigint", "7"),
        ("real", "1.5"),
        ("boolean", "t"),
        ("date", "2026-11-21"),
        ("timestamp with time zone", "2026-11-21 10:00:00+00"),
        ("bytea", "\\x00ff"),
        ("numeric(38,10)", "1.5"),
        ("jsonb", "{}"),
    ]
    wide = with_columns(Column("id", "integer"), *(Column(f"c{at}", kind) for at, (kind, _) in enumerate(kinds)))
    tables = Tables(form, tmp_path / "lake")
    values = {f"c{at}": value for at, (_, value) in enumerate(kinds)}
    tables.merge(wide, insert(id="1", **values), insert(id="2"))
    tables.merge(wide, update(id="1", c0="8"), update(id="2", c1=None))
    (first, second) = tables.rows(wide, *(column.name for column in wide.columns))
    assert first[1:5] == (8, 7, 1.5, True)
    assert [str(value) for value in first[5:8]] == ["2026-11-21", "2026-11-21 10:00:00+00:00", "b'\\x00\\xff'"]
    assert (float(first[8]), first[9]) == (1.5, "{}")
    assert set(second[1:]) == {None}


@each_form
def test_a_column_with_a_reserved_name_of_the_lake_is_refused(form: TableForm, tmp_path: Path) -> None:
    with pytest.raises(ApplyError, match="_key"):
        Tables(form, tmp_path / "lake").merge(
            with_columns(Column("id", "integer"), Column("_key", "text")), insert(id="1")
        )
