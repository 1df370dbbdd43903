"""TRANDATA never breaks the application, and its cost per table does not depend on the number of tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from slot_reading import capturing, collect, end_of, prepare, values

from ggshell.clock import SystemClock
from ggshell.connectors.postgres import describe, session, trandata
from ggshell.connectors.postgres.slot import PUBLICATION
from ggshell.connectors.postgres.table_logging import added_messages
from ggshell.connectors.postgres.table_watch import TableWatch
from ggshell.errors import ConflictError, DatabaseError, GgsError
from ggshell.home.events import Severity
from ggshell.types import TableName


@pytest.fixture
def source(north: str) -> Iterator[psycopg.Connection]:
    with session.connect(north) as connection:
        connection.execute("CREATE SCHEMA s")
        yield connection


def table(name: str) -> TableName:
    return TableName("s", name)


def members(source: psycopg.Connection) -> set[str]:
    """The tables that the publication names explicitly."""
    rows = source.execute(
        "SELECT c.relname FROM pg_publication_rel r JOIN pg_class c ON c.oid = r.prrelid"
        " JOIN pg_publication p ON p.oid = r.prpubid WHERE p.pubname = %s",
        [PUBLICATION],
    )
    return {name for (name,) in rows}


GENERATED = "g int GENERATED ALWAYS AS (v * 2) STORED"
VIRTUAL = "g int GENERATED ALWAYS AS (v * 2) VIRTUAL"


@pytest.mark.parametrize(
    ("columns", "options", "identity"),
    [
        (f"v int, {GENERATED}", {}, None),
        (f"v int, {VIRTUAL}", {}, None),
        ("v int, g int GENERATED ALWAYS AS (v * 2) STORED PRIMARY KEY", {}, None),
        (f"v int PRIMARY KEY, {GENERATED}", {"all_columns": True}, None),
        (f"v int PRIMARY KEY, w int, {GENERATED}", {"keycols": ("w",)}, None),
        (f"v int PRIMARY KEY, {GENERATED}", {}, "default"),
        (f"v int NOT NULL UNIQUE, {GENERATED}", {}, "index"),
        (f"v int NOT NULL UNIQUE, w int, {VIRTUAL}", {}, "index"),
        ("v int", {}, "full"),
        ("v int PRIMARY KEY, w int, UNIQUE (v) INCLUDE (w)", {}, "default"),
    ],
)
def test_updates_of_the_application_never_fail_because_of_generated_columns(
    source: psycopg.Connection, columns: str, options: dict[str, object], identity: str | None
) -> None:
    source.execute(f"CREATE TABLE s.t ({columns})")
    source.execute("INSERT INTO s.t (v) VALUES (1), (2)")
    if identity is None:
        with pytest.raises(DatabaseError, match="every UPDATE and DELETE by the application would fail") as caught:
            trandata.add(source, table("t"), **options)  # type: ignore[arg-type]
        assert caught.value.hint
        assert not members(source)
    else:
        assert trandata.add(source, table("t"), **options).identity == identity  # type: ignore[arg-type]
    source.execute("UPDATE s.t SET v = v + 10")
    source.execute("DELETE FROM s.t WHERE v = 11")


def test_replica_identity_full_is_not_weakened_silently(source: psycopg.Connection) -> None:
    source.execute("CREATE TABLE s.t (id int PRIMARY KEY, code int NOT NULL UNIQUE)")
    source.execute("ALTER TABLE s.t REPLICA IDENTITY FULL")
    assert trandata.add(source, table("t")).identity == "full"
    assert trandata.add(source, table("t"), ("code",)).identity == "full"
    gone = trandata.delete(source, table("t"))
    assert (gone.before, gone.identity) == ("full", "default")


@pytest.mark.parametrize("order", [("child", "parent"), ("parent", "child")])
def test_an_inheritance_child_can_be_added_before_or_after_its_parent(
    source: psycopg.Connection, order: tuple[str, str]
) -> None:
    source.execute("CREATE TABLE s.parent (id int PRIMARY KEY)")
    source.execute("CREATE TABLE s.child () INHERITS (s.parent)")
    trandata.add(source, table(order[0]))
    assert members(source) == {order[0]}
    source.execute("UPDATE s.parent SET id = 1")  # Also of a child that was not added.
    trandata.add(source, table(order[1]))
    assert members(source) == {"parent", "child"}
    assert trandata.info(source, table("child")).identity == "full"
    trandata.delete(source, table("parent"))
    assert members(source) == {"child"}


def test_a_refused_table_does_not_stop_a_wildcard(source: psycopg.Connection) -> None:
    source.execute("CREATE TABLE s.a (id int PRIMARY KEY)")
    source.execute(f"CREATE TABLE s.b (v int, {GENERATED})")
    source.execute("CREATE TABLE s.c (id int)")
    outcome = trandata.add_all(source, describe.resolve(source, "s.*"))
    assert [state.table.name for state in outcome.states if state.enabled] == ["a", "c"]
    assert ["s.b" in str(error) for error in outcome.errors] == [True]


def test_a_partition_without_replica_identity_is_named_and_repaired(source: psycopg.Connection) -> None:
    source.execute("CREATE TABLE s.root (v int) PARTITION BY RANGE (v)")
    source.execute("CREATE TABLE s.low PARTITION OF s.root FOR VALUES FROM (0) TO (10)")
    trandata.add(source, table("root"))
    source.execute("ALTER EVENT TRIGGER ggshell_schematrandata DISABLE")
    source.execute("CREATE TABLE s.high PARTITION OF s.root FOR VALUES FROM (10) TO (20)")
    found = trandata.info(source, table("root"))
    assert not found.enabled
    assert "s.high" in found.lacks
    assert trandata.add(source, table("root")).enabled
    source.execute("UPDATE s.root SET v = v")


@pytest.mark.parametrize(
    ("change", "left_out"),
    [
        ("SET TABLE s.t WHERE (id > 1)", "rows"),
        ("SET TABLE s.t (id, v)", "columns"),
        ("SET (publish = 'insert, update')", "operations"),
        ("SET (publish_via_partition_root = false)", "partitions"),
    ],
)
def test_what_an_administrator_excluded_from_the_publication_is_named_and_repaired(
    source: psycopg.Connection, change: str, left_out: str
) -> None:
    """Regression: Extract captured a part of the changes and did not report it."""
    source.execute("CREATE TABLE s.t (id int PRIMARY KEY, v int, w int) PARTITION BY RANGE (id)")
    source.execute(
        "CREATE TABLE s.low PARTITION OF s.t FOR VALUES FROM (0) TO (10); CREATE TABLE s.plain (id int PRIMARY KEY)"
    )
    trandata.add_all(source, [table("t"), table("plain")])
    source.execute(f"ALTER PUBLICATION ggshell {change}")
    found = trandata.info(source, table("t"))
    assert (found.enabled, found.reason) == (False, f"the publication ggshell leaves out some of its {left_out}")
    assert trandata.add(source, table("t")).enabled
    assert trandata.add(source, table("plain")).enabled


@pytest.mark.parametrize("identity", ["v int", "v int PRIMARY KEY", "v int NOT NULL UNIQUE"])
def test_a_partition_created_later_accepts_updates_and_its_truncate_is_captured(
    source: psycopg.Connection, north: str, identity: str
) -> None:
    source.execute(f"CREATE TABLE s.root ({identity}) PARTITION BY RANGE (v)")
    assert trandata.add(source, table("root")).warning == ""
    source.execute("DROP ROLE IF EXISTS application")
    source.execute("CREATE ROLE application LOGIN")
    source.execute("GRANT ALL ON SCHEMA s TO application; ALTER TABLE s.root OWNER TO application")
    with psycopg.connect(make_conninfo(north, user="application"), autocommit=True) as application:
        application.execute("CREATE TABLE s.low PARTITION OF s.root FOR VALUES FROM (0) TO (10) PARTITION BY RANGE (v)")
        application.execute("CREATE TABLE s.lowest PARTITION OF s.low FOR VALUES FROM (0) TO (5)")
        application.execute(f"CREATE TABLE s.high ({identity})")
        application.execute("ALTER TABLE s.root ATTACH PARTITION s.high FOR VALUES FROM (10) TO (20)")
        application.execute("INSERT INTO s.root VALUES (1), (11)")
        application.execute("UPDATE s.root SET v = v + 1")
        application.execute("DELETE FROM s.root WHERE v = 2")
    state = trandata.info(source, table("root"))
    assert (state.enabled, state.unnoted, len(state.partitions)) == (True, (), 2)
    trandata.delete(source, table("root"))
    assert source.execute("SELECT count(*) FROM pg_event_trigger").fetchone() == (0,)
    source.execute("DROP OWNED BY application CASCADE")


IDENTITIES = {
    "of the root": "ALTER TABLE s.root REPLICA IDENTITY USING INDEX root_a_id_key",
    "of a partition": "CREATE UNIQUE INDEX own ON s.low (b); ALTER TABLE s.low REPLICA IDENTITY USING INDEX own",
    "full": "ALTER TABLE s.root REPLICA IDENTITY FULL",
}


@pytest.mark.parametrize("identity", IDENTITIES.values(), ids=IDENTITIES)
def test_every_partition_logs_what_identifies_rows_of_the_root(
    source: psycopg.Connection, north: str, tmp_path: Path, identity: str
) -> None:
    """The log describes the old rows of partitions by the replica identity of the root."""
    columns = "id int PRIMARY KEY, a int NOT NULL, b int NOT NULL, UNIQUE (a, id)"
    source.execute(f"CREATE TABLE s.root ({columns}) PARTITION BY RANGE (id)")
    source.execute("CREATE TABLE s.low PARTITION OF s.root FOR VALUES FROM (0) TO (10)")
    source.execute(identity)
    assert "s.low" in trandata.info(source, table("root")).lacks
    start = prepare(north, "s.root")
    source.execute("CREATE TABLE s.middle PARTITION OF s.root FOR VALUES FROM (10) TO (20)")
    source.execute(f"CREATE TABLE s.high ({columns})")
    source.execute("ALTER TABLE s.root ATTACH PARTITION s.high FOR VALUES FROM (20) TO (30)")
    assert trandata.info(source, table("root")).lacks == ""
    source.execute("INSERT INTO s.root VALUES (1, 1, 1), (11, 11, 11), (21, 21, 21)")
    source.execute("DELETE FROM s.root")
    with capturing(north, start, tmp_path) as capture:
        rows = collect(capture, end_of(north))[3:]
    assert [{value for _, value in values(row)} for row in rows] == [{b"1"}, {b"11"}, {b"21"}]


@pytest.mark.parametrize(
    ("columns", "says"),
    [("v int", "the application's UPDATE and DELETE on it fail"), ("v int PRIMARY KEY", "TRUNCATE of it alone")],
)
def test_a_login_that_may_not_create_event_triggers_is_warned_about_later_partitions(
    source: psycopg.Connection, north: str, columns: str, says: str
) -> None:
    source.execute("DROP ROLE IF EXISTS modest")
    source.execute("CREATE ROLE modest LOGIN")
    source.execute(f"GRANT CREATE ON DATABASE {source.info.dbname} TO modest; GRANT ALL ON SCHEMA s TO modest")
    with session.connect(make_conninfo(north, user="modest")) as connection:
        connection.execute(f"CREATE TABLE s.root ({columns}) PARTITION BY RANGE (v)")
        connection.execute("CREATE TABLE s.low PARTITION OF s.root FOR VALUES FROM (0) TO (10)")
        state = trandata.add(connection, table("root"))
        assert says in state.warning
        assert ("GGS-00421", state.warning, Severity.WARNING) in added_messages(state)
        warnings: list[str] = []
        watch = TableWatch(
            ["s.*"], lambda _: True, lambda *line: warnings.append(line[2]), SystemClock(), truncates=True
        )
        watch.begin(connection)
        watch.check(connection)
        assert warnings == [state.warning]
    assert "ADD TRANDATA s.root" in trandata.info(source, table("root")).warning
    assert trandata.add(source, table("root")).warning == "", "a superuser creates the event trigger"
    source.execute("DROP OWNED BY modest CASCADE")


def test_a_table_of_another_owner_is_refused_with_the_owner_and_the_required_right(
    source: psycopg.Connection, north: str
) -> None:
    for role in ("modest", "proprietor"):
        source.execute(f"DROP ROLE IF EXISTS {role}")
        source.execute(f"CREATE ROLE {role} LOGIN")
    source.execute(
        f"GRANT CREATE ON DATABASE {source.info.dbname} TO modest; GRANT ALL ON SCHEMA s TO modest, proprietor"
    )
    source.execute("SET ROLE proprietor")
    source.execute("CREATE TABLE s.theirs (id int PRIMARY KEY)")
    source.execute("RESET ROLE")
    with session.connect(make_conninfo(north, user="modest")) as connection:
        with pytest.raises(DatabaseError, match="it belongs to role proprietor, but the login is modest") as caught:
            trandata.add(connection, table("theirs"))
        assert caught.value.hint == "log in as proprietor, or GRANT proprietor TO modest"
        connection.execute("CREATE TABLE s.mine (id int PRIMARY KEY)")
        assert trandata.add(connection, table("mine")).enabled
        source.execute("GRANT proprietor TO modest")
        assert trandata.add(connection, table("theirs")).enabled
    with session.connect(make_conninfo(north, user="proprietor")) as connection:
        connection.execute("CREATE TABLE s.later (id int PRIMARY KEY)")
        with pytest.raises(DatabaseError, match="publication ggshell belongs to role modest"):
            trandata.add(connection, table("later"))
    source.execute("DROP OWNED BY modest, proprietor CASCADE")


def test_a_locked_table_is_refused_with_the_session_that_holds_the_lock(
    source: psycopg.Connection, north: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ggshell.connectors.postgres.lock_waits.LOCK_SECONDS", 0.05)
    source.execute("CREATE TABLE s.t (id int)")
    with psycopg.connect(north) as other:
        other.execute("SELECT count(*) FROM s.t")
        with pytest.raises(ConflictError, match=r"count\(\*\) FROM s\.t") as caught:
            trandata.add(source, table("t"))
        assert f"pid {other.info.backend_pid}" in str(caught.value)
    assert trandata.add(source, table("t")).enabled


def test_settings_that_are_already_in_place_take_no_lock(source: psycopg.Connection, north: str) -> None:
    source.execute("CREATE TABLE s.t (id int PRIMARY KEY)")
    with psycopg.connect(north) as other:
        other.execute("SELECT count(*) FROM s.t")
        assert trandata.add(source, table("t")).enabled


@pytest.mark.parametrize("tables", [3, 60])
def test_the_number_of_queries_does_not_grow_with_the_tables(
    source: psycopg.Connection, tables: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    source.execute("".join(f"CREATE TABLE s.t{number} (id int PRIMARY KEY);" for number in range(tables)))
    names = describe.resolve(source, "s.*")
    asked: list[str] = []
    whole = session.execute

    def counted(connection: psycopg.Connection, statement: str, parameters: object = None) -> list[tuple[object, ...]]:
        asked.append(statement)
        return whole(connection, statement, parameters)

    for module in ("trandata", "identity", "lock_waits", "slot", "table_changes"):
        monkeypatch.setattr(f"ggshell.connectors.postgres.{module}.execute", counted)
    assert len(trandata.add_all(source, names).states) == tables
    assert sum(statement.count("ALTER PUBLICATION") for statement in asked) == tables
    assert len(asked) <= 8
    assert not any("pg_publication_tables" in statement for statement in asked)
    asked.clear()
    assert all(state.enabled for state in trandata.info_all(source, names).values())
    assert len(asked) == 2


def test_a_locked_and_a_refused_table_among_many_do_not_stop_the_others(
    source: psycopg.Connection, north: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("lock_waits.LOCK_SECONDS", "table_changes.BATCH_LOCK_SECONDS"):
        monkeypatch.setattr(f"ggshell.connectors.postgres.{name}", 0.01)
    monkeypatch.setattr("ggshell.connectors.postgres.table_changes.BATCH", 8)
    source.execute("".join(f"CREATE TABLE s.t{number:02} (id int);" for number in range(20)))
    source.execute(f"CREATE TABLE s.t20 (v int, {GENERATED}); CREATE TABLE s.t21 (v int) PARTITION BY RANGE (v)")
    names = [*describe.resolve(source, "s.*"), table("nowhere")]
    with psycopg.connect(north) as other:
        other.execute("LOCK TABLE s.t05 IN ACCESS SHARE MODE")
        outcome = trandata.add_all(source, names)
    assert [str(error).split("table ")[1].split()[0].rstrip(":,") for error in outcome.errors] == [
        *("s.t05", "s.t20", "s.nowhere")
    ]
    assert [state.table.name for state in outcome.states] == [f"t{n:02}" for n in range(22) if n not in (5, 20)]
    assert all(state.enabled and state.before == "default" for state in outcome.states)
    assert len(trandata.delete_all(source, [state.table for state in outcome.states]).states) == 20
    assert not members(source)


def test_a_missing_table_is_named(source: psycopg.Connection) -> None:
    with pytest.raises(GgsError, match=r"s\.nowhere does not exist"):
        trandata.add(source, table("nowhere"))
