"""TRAIL ASOF: at every transaction both engines return the rows that the database had."""

from __future__ import annotations

from pathlib import Path

import pytest
from batches import Row, ddl_row, ddl_statement
from both_engines import local_engine, spark_engine
from trail_samples import (
    BEGIN,
    EMPLOYEES,
    ODD,
    delete,
    insert,
    key_update,
    random_transactions,
    trail_in,
    update,
    write_trail,
)

from ggshell.errors import UsageError
from ggshell.query.queries.asof import Moment, as_of
from ggshell.query.queries.trails import QueriedTrails, trails
from ggshell.query.session import WarmSession
from ggshell.record.ddl import DdlColumn
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.image import decode_image, split_key_update
from ggshell.record.operation import IoType
from ggshell.types import Csn

pytestmark = pytest.mark.slow

NAMES = [column.name for column in EMPLOYEES.columns]
Table = dict[str, dict[str, str | None]]


def written(folder: Path, transactions: list[list[Row]], max_bytes: int = 9000) -> QueriedTrails:
    name = trail_in(folder)
    write_trail(name, transactions, max_bytes=max_bytes)
    return trails([str(name)], folder, local_engine())


def image(data: bytes | memoryview) -> dict[str, str | None]:
    return {NAMES[index]: None if value is None else value.decode() for index, value in decode_image(data)}


def apply(table: Table, row: Row) -> None:
    """Apply a change to a table, as a database does."""
    if row.table != EMPLOYEES:
        return
    if row.io_type == IoType.PURGE_DATA:
        table.clear()
    elif row.io_type == IoType.KEY_FIELD_COMP:
        before, after = map(image, split_key_update(row.data))
        table[str(after["id"])] = {**table.pop(str(before["id"])), **after}
    elif row.io_type == IoType.DELETE:
        del table[str(image(row.data)["id"])]
    elif row.io_type == IoType.INSERT:
        table[str(image(row.data)["id"])] = image(row.data)
    else:
        table[str(image(row.data)["id"])].update(image(row.data))


def rows_of(table: Table) -> list[tuple[str | None, ...]]:
    return [tuple(row.get(name) for name in NAMES) for _, row in sorted(table.items(), key=lambda each: int(each[0]))]


@pytest.mark.parametrize("seed", [11, 12])
def test_asof_returns_the_rows_that_the_database_had(tmp_path: Path, seed: int) -> None:
    transactions = random_transactions(seed, 40)
    truncate = Row(EMPLOYEES, IoType.PURGE_DATA, b"")
    transactions = [*transactions, [transactions[0][0], truncate], *random_transactions(seed + 1, 30)]
    queried = written(tmp_path, transactions)
    table: Table = {}
    for csn, rows in enumerate(transactions, 1):
        for row in rows:
            apply(table, row)
        if csn % 7 == 0 or csn in (40, 41, len(transactions)):
            found = as_of(queried, EMPLOYEES, Moment(csn=str(Csn(csn))))
            assert found.rows == rows_of(table)
            assert (found.unknown, found.older) == ((), 0)
            assert as_of(queried, EMPLOYEES, Moment(time=BEGIN + csn * 1000)).rows == found.rows


def test_both_engines_return_the_same_rows_as_of_a_csn(warm: WarmSession, tmp_path: Path) -> None:
    queried = written(tmp_path, random_transactions(13, 120))
    moment = Moment(csn=str(Csn(90)))
    on_duckdb = as_of(queried, EMPLOYEES, moment)
    on_spark = as_of(QueriedTrails(queried.files, spark_engine(warm)), EMPLOYEES, moment)
    assert on_spark.rows == on_duckdb.rows
    assert on_duckdb.rows


def test_a_column_that_no_record_contains_is_reported_as_unknown(tmp_path: Path) -> None:
    queried = written(tmp_path, [[update(EMPLOYEES, id="1", name=None)], [insert(EMPLOYEES, id="2", name="b")]])
    found = as_of(queried, EMPLOYEES, Moment(csn=str(Csn(2))))
    assert found.rows == [("1", None, None, None, None), ("2", "b", None, None, None)]
    assert found.older == 1
    assert found.unknown[:3] == ((0, "salary"), (0, "hired"), (0, "active"))


def test_values_follow_a_key_change_and_do_not_come_from_an_earlier_row_with_the_key(tmp_path: Path) -> None:
    full = {"salary": "1", "hired": None, "active": "t"}
    queried = written(
        tmp_path,
        [
            [insert(EMPLOYEES, id="1", name="one", **full), insert(EMPLOYEES, id="2", name="two", **full)],
            [delete(EMPLOYEES, id="2"), key_update(EMPLOYEES, {"id": "1"}, {"id": "2"})],
            [insert(EMPLOYEES, id="1", name="new")],
        ],
    )
    found = as_of(queried, EMPLOYEES, Moment(csn=str(Csn(3))))
    assert found.rows == [("1", "new", None, None, None), ("2", "one", "1", None, "t")]
    assert found.unknown == ((0, "salary"), (0, "hired"), (0, "active"))


def test_an_initial_load_trail_supplies_unchanged_rows(tmp_path: Path) -> None:
    load, changes = trail_in(tmp_path, "ia"), trail_in(tmp_path, "ea")
    write_trail(load, [[insert(EMPLOYEES, id=str(n), name="loaded") for n in range(5)]], first_csn=10)
    write_trail(changes, [[update(EMPLOYEES, id="1", name="early")]], first_csn=9)
    write_trail(changes, [[update(EMPLOYEES, id="2", name="late")]], first_csn=11)
    write_trail(changes, [[update(EMPLOYEES, id="3", name="later")]], first_csn=12)
    queried = trails([str(load), str(changes)], tmp_path, local_engine())
    found = as_of(queried, EMPLOYEES, Moment(csn=str(Csn(12))))
    assert [row[1] for row in found.rows] == ["loaded", "loaded", "late", "later", "loaded"]
    assert found.older == 0  # Also of the row that changed before the load.


def test_a_table_without_a_key_is_refused(tmp_path: Path) -> None:
    queried = written(tmp_path, [[insert(ODD, t="2026-11-20")]])
    with pytest.raises(UsageError, match="has no key"):
        as_of(queried, ODD, Moment(csn=str(Csn(1))))


PEOPLE = EMPLOYEES.name
FIRST = TableDefinition(
    PEOPLE, (Column("id", "integer", 23), Column("name", "text", 25), Column("old", "text", 25)), (0,)
)
SECOND = TableDefinition(
    PEOPLE, (Column("no", "integer", 23), Column("name", "text", 25), Column("new", "text", 25)), (0,)
)
THIRD = TableDefinition(PEOPLE, (Column("no", "integer", 23), Column("old", "text", 25)), (0,))


def altered(text: str, columns: str, tag: str = "ALTER TABLE") -> Row:
    """A statement after which the table has these columns: ``1 no, 2 name``."""
    pairs = (each.split() for each in columns.split(", ")) if columns else ()
    found = [DdlColumn(int(number), name, "integer" if number == "1" else "text", 25) for number, name in pairs]
    return ddl_row(ddl_statement(tag, text, columns=found))


ALTERED = [
    [insert(FIRST, id="1", name="Ada", old="a"), insert(FIRST, id="2", name="Bob", old="b")],
    [altered("alter table employees rename id to no", "1 no, 2 name, 3 old")],
    [altered("alter table employees drop old, add new text", "1 no, 2 name, 4 new")],
    [update(SECOND, no="2", name="Bea", new="n"), insert(SECOND, no="3", name="Cy", new=None)],
    [altered("alter table employees rename name to old", "1 no, 2 old, 4 new")],
    [altered("drop table employees", "", "DROP TABLE")],
    [
        altered("create table employees (no int, old text)", "1 no, 2 old", "CREATE TABLE"),
        insert(THIRD, no="9", old="z"),
    ],
]
WANTED = {
    1: (("id", "name", "old"), [("1", "Ada", "a"), ("2", "Bob", "b")]),
    2: (("no", "name", "old"), [("1", "Ada", "a"), ("2", "Bob", "b")]),
    3: (("no", "name", "new"), [("1", "Ada", None), ("2", "Bob", None)]),
    4: (("no", "name", "new"), [("1", "Ada", None), ("2", "Bea", "n"), ("3", "Cy", None)]),
    5: (("no", "old", "new"), [("1", "Ada", None), ("2", "Bea", "n"), ("3", "Cy", None)]),
    6: (("no", "name", "new"), []),  # the table does not exist: the columns of its last row
    7: (("no", "old"), [("9", "z")]),
}


def test_the_columns_are_those_in_force_across_ddl_statements(tmp_path: Path, warm: WarmSession) -> None:
    queried = written(tmp_path, ALTERED, max_bytes=1 << 20)
    on_spark = QueriedTrails(queried.files, spark_engine(warm))
    for csn, (columns, rows) in WANTED.items():
        found = as_of(queried, THIRD, Moment(csn=str(Csn(csn))))
        assert (found.columns, found.rows) == (columns, rows), csn
        if csn in (5, 7):
            again = as_of(on_spark, THIRD, Moment(csn=str(Csn(csn))))
            assert (again.columns, again.rows) == (columns, rows), csn


def test_the_columns_are_those_of_the_last_row_without_ddl_statements(tmp_path: Path) -> None:
    queried = written(tmp_path, [ALTERED[0], [], ALTERED[3]][::2])
    assert as_of(queried, SECOND, Moment(csn=str(Csn(1)))).columns == ("id", "name", "old")
    assert as_of(queried, SECOND, Moment(csn=str(Csn(2)))).columns == ("no", "name", "new")
