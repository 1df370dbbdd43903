"""COMPARE between a database and a lake, computed by DuckDB or by Spark."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import psycopg
import pytest
from batches import Row
from deliveries import BEGIN, Deliveries
from lakes import Lake, image
from query.both_engines import local_engine, spark_engine

from ggshell.connectors.lake import compare_side
from ggshell.connectors.lake.compare_side import LakeComparison
from ggshell.connectors.lake.target import TableForm
from ggshell.connectors.lake.types import FROM_MARIADB, FROM_POSTGRESQL
from ggshell.connectors.mysql.compare_side import MysqlComparison
from ggshell.connectors.mysql.session import connect as connect_mariadb
from ggshell.connectors.postgres.compare_side import PostgresComparison
from ggshell.connectors.postgres.session import connect
from ggshell.errors import StateError
from ggshell.parameters.lake_tables import Deletes, LakeLayouts, PartitionField, TableLayout
from ggshell.pipeline.compare import drill
from ggshell.pipeline.compare.tables import ComparedTable, compare_tables
from ggshell.query.engines import Engines
from ggshell.query.session import WarmSession
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.operation import IoType
from ggshell.types import TableName

KINDS = TableName("hr", "kinds")
ITEMS = TableDefinition(
    TableName("hr", "items"),
    (Column("id", "bigint", 20), Column("name", "text", 25), Column("pay", "numeric(8,2)", 1700)),
    (0,),
)


@pytest.fixture
def engines(warm: WarmSession) -> list[Engines]:
    return [local_engine(), spark_engine(warm)]


@pytest.fixture
def database(north: str) -> Iterator[psycopg.Connection[Any]]:
    with connect(north) as connection:
        connection.execute("CREATE SCHEMA hr")
        yield connection


def compared(source: Any, lake: Lake, engines: Sequence[Engines], table: TableName) -> ComparedTable:
    """The result of a comparison, which is the same with every engine."""
    found = [
        result
        for engine in engines
        for result in compare_tables((source, side(lake, engine)), [(table, table)], 0, lambda _: False)
    ]
    assert [each.problem for each in found] == [""] * len(engines)
    assert all(_shown(each) == _shown(found[0]) for each in found)
    return found[0]


def side(lake: Lake, engine: Engines) -> LakeComparison:
    return LakeComparison(lake.target, {}, engine)


def _shown(found: ComparedTable) -> Any:
    return found.source_rows, found.target_rows, sorted(map(repr, found.differences))


def keys(found: ComparedTable) -> dict[str, str]:
    """The kinds of the differences by key."""
    return {",".join(each.key): str(each.kind) for each in found.differences}


def deliver(
    lake: Lake, definition: TableDefinition, rows: list[list[str | None]], deletes: Deletes = Deletes.REMOVED
) -> None:
    """Insert rows into a lake."""
    delivery = Deliveries(lake, split_bytes=1 << 20)
    delivery.layouts = LakeLayouts((("hr.*", TableLayout(deletes=deletes)),))
    delivery.batch(0, BEGIN, lake.write([Row(definition, IoType.INSERT, image(*row)) for row in rows]))


@pytest.mark.parametrize("lake", list(TableForm), indirect=True)
def test_values_of_every_type_are_equal_unless_the_lake_cannot_hold_them(
    lake: Lake, engines: list[Engines], database: psycopg.Connection[Any]
) -> None:
    kinds = ["mood" if pair.source == "an enum" else pair.source for pair in FROM_POSTGRESQL.pairs]
    columns = ", ".join(f"c{number} {kind}" for number, kind in enumerate(kinds))
    database.execute("CREATE TYPE mood AS ENUM ('new')")
    database.execute(f"CREATE TABLE hr.kinds (id int PRIMARY KEY, {columns})")
    lost = set[str]()
    for number, pair in enumerate(FROM_POSTGRESQL.pairs):
        known = [value for value in pair.refused if not value.startswith("9999")]  # PostgreSQL begins in 4713 BC.
        for place, value in enumerate([*pair.values, *known]):
            row = 100 * number + place + 1
            database.execute(f"INSERT INTO hr.kinds (id, c{number}) VALUES (%s, %s::{kinds[number]})", [row, value])
            lost |= {str(row)} if value in pair.refused else set()
    names = ["id", *(f"c{number}" for number in range(len(kinds)))]
    definition = TableDefinition(KINDS, tuple(map(Column, names, ["integer", *kinds])), (0,))
    texts = ", ".join(f"CASE WHEN {name} IS NOT NULL THEN concat({name}) END" for name in names)  # as a trail has them
    asked = f"SELECT {texts} FROM hr.kinds ORDER BY id"
    deliver(lake, definition, [list(row) for row in database.execute(asked).fetchall()])
    assert set(keys(compared(PostgresComparison(database), lake, engines, KINDS))) == lost


@pytest.mark.parametrize("lake", [TableForm.DELTA], indirect=True)
def test_infinity_and_years_before_christ_equal_no_other_moment(
    lake: Lake, engines: list[Engines], database: psycopg.Connection[Any]
) -> None:
    database.execute("CREATE TABLE hr.kinds (id int PRIMARY KEY, day date, moment timestamp, zoned timestamptz)")
    database.execute("SET timezone = 'Europe/Zurich'")
    moments: list[tuple[str, str | None]] = [("0044-03-15 BC", "0044-03-15"), ("infinity", None), ("-infinity", None)]
    rows: list[list[str | None]] = []
    for number, (here, there) in enumerate(moments):
        database.execute("INSERT INTO hr.kinds VALUES (%s, %s, %s, %s)", [number, *[here] * 3])
        rows.append([str(number), there, *[there and f"{there} 00:00:00"] * 2])
    kinds = ("integer", "date", "timestamp without time zone", "timestamp with time zone")
    definition = TableDefinition(KINDS, tuple(map(Column, ("id", "day", "moment", "zoned"), kinds)), (0,))
    deliver(lake, definition, rows)
    found = compared(PostgresComparison(database), lake, engines[:1], KINDS)
    sides = [(each.source, each.target) for each in found.differences]
    assert [mine[place] == theirs[place] for mine, theirs in sides if mine and theirs for place in (1, 2, 3)] == [
        False
    ] * 9


@pytest.mark.parametrize("lake", [TableForm.ICEBERG], indirect=True)
def test_values_of_every_type_of_mariadb_are_equal_unless_the_lake_cannot_hold_them(
    lake: Lake, engines: list[Engines], mariadb: str
) -> None:
    kinds = ["enum('new')" if pair.source == "enum" else pair.source for pair in FROM_MARIADB.pairs]
    columns = ", ".join(f"c{number} {kind} NULL" for number, kind in enumerate(kinds))
    names = ["id", *(f"c{number}" for number in range(len(kinds)))]
    definition = TableDefinition(KINDS, tuple(map(Column, names, ["integer", *kinds])), (0,))
    lost, rows = set[str](), list[list[str | None]]()
    with closing(connect_mariadb(mariadb)) as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = 'ALLOW_INVALID_DATES'")
        cursor.execute(f"CREATE TABLE kinds (id int PRIMARY KEY, {columns})")
        for number, pair in enumerate(FROM_MARIADB.pairs):
            for place, value in enumerate([*pair.values, *pair.refused]):
                row = 100 * number + place + 1
                kept: Any = bytes.fromhex(value[2:]) if value.startswith("\\x") else value
                kept = int(kept, 2) if pair.source.startswith("bit(") else kept
                cursor.execute(f"INSERT INTO kinds (id, c{number}) VALUES (%s, %s)", (row, kept))
                rows.append([str(row), *(value if each == number else None for each in range(len(kinds)))])
                lost |= {str(row)} if value in pair.refused else set()
        connection.commit()
        deliver(lake, definition, rows)
        database = MysqlComparison.of(connection, mariadb)
        (table,) = database.tables("*.kinds")
        for engine in engines:
            (found,) = compare_tables((database, side(lake, engine)), [(table, KINDS)], 0, lambda _: False)
            assert (found.problem, set(keys(found))) == ("", lost)


@pytest.mark.parametrize("lake", [TableForm.DELTA], indirect=True)
def test_exactly_the_rows_that_differ_are_found_in_any_range(
    lake: Lake, engines: list[Engines], database: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key has a text and a number; ranges and what is transferred at once are small."""
    monkeypatch.setattr(compare_side, "_RANGE_ROWS", 160)
    monkeypatch.setattr(drill, "RANGE_ROWS", 100)
    monkeypatch.setattr(drill, "TRANSFERRED", 7)
    database.execute("CREATE TABLE hr.items (id bigint, name text, pay numeric(8,2), PRIMARY KEY (name, id))")
    rows = [[str(number), f"%'\\é{number % 7}", f"{number}.50"] for number in range(-150, 150)]
    deliver(lake, ITEMS._replace(key=(1, 0)), rows)
    with database.cursor() as cursor:
        cursor.executemany("INSERT INTO hr.items VALUES (%s, %s, %s)", rows)
    assert keys(compared(PostgresComparison(database), lake, engines, ITEMS.name)) == {}
    chosen = random.Random(3).sample(rows, 30)
    wanted = {f"{name},{number}": "changed" for number, name, _ in chosen[:10]}
    wanted |= {f"{name},{number}": "extra" for number, name, _ in chosen[10:20]}
    wanted |= {f"new,{number}": "missing" for number, _, _ in chosen[20:]}
    for number, name, _ in chosen[:10]:
        database.execute("UPDATE hr.items SET pay = -pay WHERE id = %s AND name = %s", [number, name])
    for number, name, _ in chosen[10:20]:
        database.execute("DELETE FROM hr.items WHERE id = %s AND name = %s", [number, name])
    for number, _, _ in chosen[20:]:
        database.execute("INSERT INTO hr.items VALUES (%s, 'new', 0)", [number])
    assert keys(compared(PostgresComparison(database), lake, engines, ITEMS.name)) == wanted


@pytest.mark.parametrize("lake", [TableForm.ICEBERG], indirect=True)
@pytest.mark.parametrize("deletes", [Deletes.MARKED, Deletes.CLOSED])
def test_deleted_rows_and_former_versions_do_not_count(
    lake: Lake, engines: list[Engines], database: psycopg.Connection[Any], deletes: Deletes
) -> None:
    database.execute("CREATE TABLE hr.items (id bigint PRIMARY KEY, name text, pay numeric(8,2))")
    database.execute("INSERT INTO hr.items VALUES (1, 'Ada', 1), (3, 'Cy', 7)")
    deliver(lake, ITEMS, [["1", "Ada", "1.00"], ["2", "Bo", "2.00"], ["3", "Cy", "3.00"]], deletes)
    begin = lake.end
    changes = [
        Row(ITEMS, IoType.DELETE, image("2", "Bo", "2.00")),
        Row(ITEMS, IoType.FIELD_COMP, image("3", "Cy", "7.00")),
    ]
    delivery = Deliveries(lake)
    delivery.layouts = LakeLayouts((("hr.*", TableLayout(deletes=deletes)),))
    delivery.batch(1, begin, lake.write(changes))
    found = compared(PostgresComparison(database), lake, engines, ITEMS.name)
    assert (found.source_rows, found.target_rows, found.differences) == (2, 2, ())


@pytest.mark.parametrize("lake", [TableForm.PARQUET], indirect=True)
def test_equal_rows_of_a_table_without_a_key_are_counted(
    lake: Lake, engines: list[Engines], database: psycopg.Connection[Any]
) -> None:
    database.execute('CREATE TABLE hr."Notes" ("Line" text, data bytea)')
    database.execute("""INSERT INTO hr."Notes" VALUES ('a', NULL), ('a', NULL), ('', '\\x00ff'), (NULL, '')""")
    columns = (Column("Line", "text", 25), Column("data", "bytea", 17))
    definition = TableDefinition(TableName("hr", "Notes"), columns, (0, 1))
    deliver(lake, definition, [["a", None], ["", "\\x00ff"], [None, "\\x"]])
    found = compared(PostgresComparison(database), lake, engines, definition.name)
    assert (found.source_rows, found.target_rows) == (4, 3)
    assert [(each.kind, each.source, each.target) for each in found.differences] == [("missing", ("a", None), None)]


@pytest.mark.parametrize("lake", [TableForm.DELTA], indirect=True)
def test_a_lake_can_be_compared_with_itself_and_a_missing_table_is_named(lake: Lake, engines: list[Engines]) -> None:
    deliver(lake, ITEMS, [["1", "Ada", "1.00"], ["2", None, None]])
    for engine in engines:
        databases = side(lake, engine), side(lake, engine)
        assert databases[0].tables("hr.*") == [ITEMS.name]
        assert databases[0].columns(ITEMS.name).key_names == ("id",)
        assert compared(databases[0], lake, [engine], ITEMS.name).differences == ()
        pairs = [(ITEMS.name, TableName("hr", "nowhere"))]
        (found,) = compare_tables(databases, pairs, 0, lambda _: False)
        assert found.problem == "there is no table hr.nowhere in the target"


@pytest.mark.parametrize("lake", [TableForm.PARQUET], indirect=True)
def test_floating_point_numbers_have_the_same_text_on_every_side(
    lake: Lake, engines: list[Engines], database: psycopg.Connection[Any], mariadb: str
) -> None:
    """PostgreSQL and MariaDB give different texts to some integers above 2 ** 53."""
    numbers = random.Random(7)
    values = [
        sign * numbers.uniform(1, 10) * 10.0**power for power in range(-12, 36) for sign in (1, -1) for _ in range(6)
    ]
    values += [1e23, 5e22, 2.620136414624388e17, 9007199254740992.0, 9007199254740993.0, -0.0, 5e-324, 1e35, -1e300]
    definition = TableDefinition(KINDS, (Column("id", "integer", 23), Column("x", "double precision", 701)), (0,))
    deliver(lake, definition, [[str(number), repr(value)] for number, value in enumerate(values)])
    database.execute("CREATE TABLE hr.kinds (id int PRIMARY KEY, x double precision)")
    with closing(connect_mariadb(mariadb)) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE kinds (id int PRIMARY KEY, x double)")
        for number, value in enumerate(values):
            database.execute("INSERT INTO hr.kinds VALUES (%s, %s)", [number, value])
            cursor.execute("INSERT INTO kinds VALUES (%s, %s)", (number, value))
        connection.commit()
        here, there = PostgresComparison(database), MysqlComparison.of(connection, mariadb)
        (table,) = there.tables("*.kinds")
        lakes = side(lake, engines[0])
        for databases, pair in (
            ((here, lakes), (KINDS, KINDS)),
            ((there, lakes), (table, KINDS)),
            ((here, there), (KINDS, table)),
        ):
            (found,) = compare_tables(databases, [pair], 0, lambda _: False)
            assert (found.problem, found.source_rows, found.differences) == ("", len(values), ())


@pytest.mark.parametrize("lake", [TableForm.DELTA], indirect=True)
def test_a_table_of_300_columns_is_compared(
    lake: Lake, engines: list[Engines], database: psycopg.Connection[Any]
) -> None:
    names = [f"c{number}" for number in range(300)]
    database.execute(f"CREATE TABLE hr.kinds ({', '.join(f'{name} int' for name in names)}, PRIMARY KEY (c0))")
    database.execute(f"INSERT INTO hr.kinds VALUES ({', '.join('7' for _ in names)})")
    definition = TableDefinition(KINDS, tuple(Column(name, "integer", 23) for name in names), (0,))
    deliver(lake, definition, [["7"] * 299 + ["8"]])
    found = compared(PostgresComparison(database), lake, engines[:1], KINDS)
    assert keys(found) == {"7": "changed"}


@pytest.mark.parametrize("lake", [TableForm.DELTA], indirect=True)
def test_rows_whose_key_the_lakes_cannot_hold_are_not_taken_for_equal(lake: Lake, engines: list[Engines]) -> None:
    columns = (Column("at", "timestamp without time zone", 1114), Column("v", "text", 25))
    first, second = (TableDefinition(TableName("hr", name), columns, (0,)) for name in ("first", "second"))
    deliver(lake, first, [["infinity", "b"]])
    begin = lake.end
    rows = [Row(second, IoType.INSERT, image("infinity", "other"))]
    Deliveries(lake).batch(1, begin, lake.write(rows))
    databases = side(lake, engines[0]), side(lake, engines[0])
    (found,) = compare_tables(databases, [(first.name, second.name)], 0, lambda _: False)
    assert found.problem == "1 row of the source without a value in its key (at)"


@pytest.mark.parametrize("lake", list(TableForm), indirect=True)
def test_a_table_partitioned_by_a_time_with_zone_is_compared(
    lake: Lake, engines: list[Engines], database: psycopg.Connection[Any]
) -> None:
    database.execute("CREATE TABLE hr.kinds (id int PRIMARY KEY, at timestamptz)")
    database.execute("INSERT INTO hr.kinds VALUES (1, '2026-01-01 02:00+02'), (2, NULL), (3, '2026-01-01')")
    columns = (Column("id", "integer", 23), Column("at", "timestamp with time zone", 1184))
    delivery = Deliveries(lake)
    delivery.layouts = LakeLayouts((("hr.*", TableLayout(partition=(PartitionField("at"),))),))
    definition = TableDefinition(KINDS, columns, (0,))
    rows = [["1", "2026-01-01 00:00:00+00"], ["2", None], ["3", "2026-01-01 12:30:00.5+00"]]
    delivery.batch(0, BEGIN, lake.write([Row(definition, IoType.INSERT, image(*row)) for row in rows]))
    assert keys(compared(PostgresComparison(database), lake, engines, KINDS)) == {"3": "changed"}


@pytest.mark.parametrize("lake", [TableForm.DELTA], indirect=True)
def test_a_table_that_cannot_be_read_is_reported_and_the_others_are_compared(
    lake: Lake, engines: list[Engines], database: psycopg.Connection[Any]
) -> None:
    for name in ("items", "more"):
        database.execute(f"CREATE TABLE hr.{name} (id bigint PRIMARY KEY, name text, pay numeric(8,2))")
    deliver(lake, ITEMS, [["1", "Ada", "1.00"]])
    begin, more = lake.end, ITEMS._replace(name=TableName("hr", "more"))
    Deliveries(lake).batch(1, begin, lake.write([Row(more, IoType.INSERT, image("1", "Ada", "1.00"))]))
    (file,) = (lake.folder / "current" / "hr.items").rglob("*.parquet")
    file.write_bytes(b"PAR1 damaged")
    lake.is_whole = False
    for engine in engines:
        databases = PostgresComparison(database), side(lake, engine)
        pairs = [(name, name) for name in databases[0].tables("hr.*")]
        found = {each.source.name: each for each in compare_tables(databases, pairs, 0, lambda _: False)}
        assert f"{file.name} cannot be read: " in found["items"].problem
        assert keys(found["more"]) == {"1": "extra"}


@pytest.mark.parametrize("lake", list(TableForm), indirect=True)
def test_columns_of_the_source_named_like_those_of_a_lake_are_compared(
    lake: Lake, engines: list[Engines], database: psycopg.Connection[Any]
) -> None:
    database.execute("CREATE TABLE hr.kinds (id int PRIMARY KEY, _deleted boolean, _current text)")
    database.execute("INSERT INTO hr.kinds VALUES (1, true, 'no'), (2, false, 'yes')")
    kinds = {"id": "integer", "_deleted": "boolean", "_current": "text"}
    columns = tuple(Column(name, kind, number=number) for number, (name, kind) in enumerate(kinds.items(), 65537))
    deliver(lake, TableDefinition(KINDS, columns, (0,)), [["1", "t", "no"], ["2", "f", "no"]])
    found = compared(PostgresComparison(database), lake, engines, KINDS)
    assert (found.source_rows, found.target_rows, keys(found)) == (2, 2, {"2": "changed"})
    assert compared(side(lake, engines[0]), lake, engines[:1], KINDS).differences == ()


@pytest.mark.parametrize("lake", [TableForm.DELTA], indirect=True)
def test_a_location_without_a_lake_and_a_wrong_form_are_refused(lake: Lake) -> None:
    deliver(lake, ITEMS, [["1", "Ada", "1.00"]])
    for target, text in (
        ("delta:./nowhere", "no Replicat has delivered to delta:"),
        ("iceberg:./lake", "contains delta tables of LAKE"),
        ("delta:./lake, REPAIR ./x.sql", "REPAIR requires two databases of the same kind"),
    ):
        refused = lake.shell(f"COMPARE delta:./lake TO {target}", engine="local")
        assert (refused.returncode, text in refused.stderr) == (1, True)
    assert "equal" in lake.run("COMPARE delta:./lake TO delta:./lake", engine="local")


@pytest.mark.parametrize("lake", [TableForm.DELTA], indirect=True)
def test_a_running_query_ends_when_the_comparison_is_canceled(lake: Lake, engines: list[Engines]) -> None:
    deliver(lake, ITEMS, [["1", "Ada", "1.00"]])
    for engine in engines:
        columns = side(lake, engine).columns(ITEMS.name)
        table = side(lake, engine).side(ITEMS.name, columns, columns)
        table.cancel()
        with pytest.raises(StateError, match="the query was canceled"):
            table._connection.ask("SELECT count(*) FROM range(0, 1000000000000000)", ())
