"""SCHEMATRANDATA: tables created later are captured from their first row, and no application statement fails."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from slot_reading import capturing, collect, end_of

from ggshell.connectors.postgres import schema_trandata_sql, session, slot, trandata
from ggshell.connectors.postgres.table_logging import PostgresTableLogging
from ggshell.errors import DatabaseError, NotFoundError
from ggshell.types import TableName

GENERATED = "g int GENERATED ALWAYS AS (v * 2) STORED"


@pytest.fixture
def owner(north: str) -> Iterator[psycopg.Connection]:
    with session.connect(north) as connection:
        connection.execute("CREATE SCHEMA s")
        yield connection


@pytest.fixture
def application(north: str, owner: psycopg.Connection) -> Iterator[psycopg.Connection]:
    """The login of an application that may only create objects in schema s."""
    owner.execute("DROP ROLE IF EXISTS application")
    owner.execute("CREATE ROLE application LOGIN")
    owner.execute("GRANT ALL ON SCHEMA s TO application")
    with psycopg.connect(make_conninfo(north, user="application"), autocommit=True) as connection:
        yield connection
        owner.execute("DROP OWNED BY application CASCADE")


@pytest.mark.parametrize(
    ("statements", "rows"),
    [
        (["CREATE TABLE s.t (id int PRIMARY KEY)", "INSERT INTO s.t VALUES (1)", "UPDATE s.t SET id = 2"], 2),
        (["CREATE TABLE s.t (v int)", "INSERT INTO s.t VALUES (1)", "UPDATE s.t SET v = 2", "DELETE FROM s.t"], 3),
        (["CREATE TABLE s.t AS SELECT generate_series(1, 5) v", "UPDATE s.t SET v = 9 WHERE v = 5"], 6),
        (["SELECT 1 AS v INTO s.t", "DELETE FROM s.t"], 2),
        (["CREATE TABLE s.t AS SELECT 1 AS v WITH NO DATA", "INSERT INTO s.t VALUES (1)"], 1),
        (
            [
                "CREATE TABLE s.t (v int) PARTITION BY RANGE (v)",
                "CREATE TABLE s.low PARTITION OF s.t FOR VALUES FROM (0) TO (10)",
                "INSERT INTO s.t VALUES (1)",
                "CREATE TABLE s.high (v int)",
                "ALTER TABLE s.t ATTACH PARTITION s.high FOR VALUES FROM (10) TO (20)",
                "UPDATE s.t SET v = 11",
            ],
            3,
        ),
        (
            [
                "CREATE TABLE s.old (id int PRIMARY KEY)",
                "CREATE TABLE s.t () INHERITS (s.old)",
                "INSERT INTO s.t VALUES (1)",
            ],
            1,
        ),
        (
            [
                "CREATE TABLE s.t (id int PRIMARY KEY)",
                "ALTER TABLE s.t DROP CONSTRAINT t_pkey",
                "INSERT INTO s.t VALUES (1)",
            ],
            1,
        ),
    ],
)
@pytest.mark.parametrize("in_one_transaction", [True, False])
def test_a_new_table_is_captured_from_its_first_row(
    owner: psycopg.Connection,
    application: psycopg.Connection,
    north: str,
    tmp_path: Path,
    statements: list[str],
    rows: int,
    in_one_transaction: bool,
) -> None:
    PostgresTableLogging(owner).add_schema("s", all_columns=False)
    begin = slot.register(owner, "ext1")
    if in_one_transaction:
        with application.transaction():
            for statement in statements:
                application.execute(statement)
    else:
        for statement in statements:
            application.execute(statement)
    with capturing(north, begin, tmp_path) as capture:
        found = collect(capture, end_of(north))
    assert len(found) == rows
    assert trandata.info(owner, TableName("s", "t")).enabled


def test_a_table_dropped_and_created_again_is_captured(
    owner: psycopg.Connection, application: psycopg.Connection, north: str, tmp_path: Path
) -> None:
    PostgresTableLogging(owner).add_schema("s", all_columns=False)
    begin = slot.register(owner, "ext1")
    for number in range(3):
        application.execute(f"CREATE TABLE s.t (id int PRIMARY KEY, c{number} text)")
        application.execute("INSERT INTO s.t VALUES (1, 'x')")
        application.execute("DROP TABLE s.t")
    with capturing(north, begin, tmp_path) as capture:
        batches = []
        while (batch := capture.read(0.2)) is not None or capture.state.safe < end_of(north):
            batches += [batch] if batch is not None else []
    definitions = {table for batch in batches for table in batch.tables}
    assert {table.columns[1].name for table in definitions} == {"c0", "c1", "c2"}
    assert {column.type_name for table in definitions for column in table.columns} == {"integer", "text"}


def test_no_statement_of_the_application_fails_for_any_table(
    owner: psycopg.Connection, application: psycopg.Connection
) -> None:
    PostgresTableLogging(owner).add_schema("s", all_columns=False)
    warnings: list[str] = []
    application.add_notice_handler(lambda notice: warnings.append(str(notice.message_primary)))
    application.execute(f"CREATE TABLE s.t (v int, {GENERATED})")
    application.execute("INSERT INTO s.t VALUES (1)")
    application.execute("UPDATE s.t SET v = 2")
    assert "does not capture table s.t" in warnings[0]
    assert not trandata.info(owner, TableName("s", "t")).published
    application.execute("ALTER TABLE s.t ADD PRIMARY KEY (v)")
    assert trandata.info(owner, TableName("s", "t")).enabled
    application.execute("ALTER TABLE s.t DROP CONSTRAINT t_pkey")
    application.execute("UPDATE s.t SET v = 3")
    assert not trandata.info(owner, TableName("s", "t")).published


def test_other_schemas_and_temporary_and_unlogged_tables_are_left_alone(owner: psycopg.Connection) -> None:
    PostgresTableLogging(owner).add_schema("s", all_columns=False)
    owner.execute("CREATE SCHEMA other CREATE TABLE t (id int)")
    owner.execute("CREATE TEMPORARY TABLE temporary (id int)")
    owner.execute("CREATE UNLOGGED TABLE s.unlogged (id int)")
    assert trandata.published(owner).names.keys() == frozenset()


def test_the_privileges_that_the_installation_needs_are_named(owner: psycopg.Connection, north: str) -> None:
    owner.execute("CREATE TABLE s.t (id int PRIMARY KEY)")
    trandata.add(owner, TableName("s", "t"))
    owner.execute("DROP ROLE IF EXISTS modest")
    owner.execute("CREATE ROLE modest LOGIN")
    owner.execute(f"GRANT CREATE ON DATABASE {owner.info.dbname} TO modest")
    with session.connect(make_conninfo(north, user="modest")) as connection:
        with pytest.raises(DatabaseError, match="only a superuser can create") as caught:
            PostgresTableLogging(connection).add_schema("s", all_columns=False)
        assert "ADD TRANDATA s.*" in caught.value.hint
        assert schema_trandata_sql.schemas(connection) == {}
    owner.execute("DROP OWNED BY modest CASCADE")


def test_deleting_the_last_schema_removes_everything(owner: psycopg.Connection) -> None:
    owner.execute("CREATE SCHEMA r CREATE TABLE t (id int)")
    owner.execute("CREATE TABLE s.t (id int)")
    for schema in ("s", "r"):
        assert [
            state.identity for state in PostgresTableLogging(owner).add_schema(schema, all_columns=True).tables
        ] == ["full"]
    PostgresTableLogging(owner).delete_schema("s")
    assert [each.enabled for each in PostgresTableLogging(owner).schemas("?")] == [True, False]
    PostgresTableLogging(owner).delete_schema("r")
    assert trandata.published(owner).names.keys() == frozenset()
    assert owner.execute("SELECT count(*) FROM pg_event_trigger").fetchone() == (0,)
    assert owner.execute("SELECT to_regclass('ggshell.schematrandata')").fetchone() == (None,)
    with pytest.raises(NotFoundError, match="has no SCHEMATRANDATA"):
        PostgresTableLogging(owner).delete_schema("r")


def test_a_disabled_event_trigger_is_shown(owner: psycopg.Connection) -> None:
    PostgresTableLogging(owner).add_schema("s", all_columns=False)
    owner.execute("ALTER EVENT TRIGGER ggshell_schematrandata DISABLE")
    assert [(each.added, each.enabled) for each in PostgresTableLogging(owner).schemas("s")] == [(True, False)]
    PostgresTableLogging(owner).add_schema("s", all_columns=False)
    assert PostgresTableLogging(owner).schemas("s")[0].enabled
