"""Positions in PostgreSQL's log: wherever reading stops, the rest returns what committed later, once and completely."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from connectors.postgres.slot_reading import capturing, collect, end_of, prepare, values

from ggshell.connectors.postgres import session, trandata
from ggshell.demo.postgres_server import REPLICATION_SETTINGS, PostgresServer, find_binaries
from ggshell.errors import ConnectionLostError
from ggshell.types import TableName

Row = tuple[object, ...]
FILL = "INSERT INTO p SELECT g, repeat('x', 50) FROM generate_series(%s::int, %s::int) g"


@pytest.fixture
def source(north: str) -> Iterator[tuple[str, int]]:
    """A database with a captured and an excluded table, which streams large transactions; and the position of the slot."""
    with session.connect(north) as connection:
        connection.execute("ALTER SYSTEM SET logical_decoding_work_mem = '64kB'")
        connection.execute("SELECT pg_reload_conf()")
        connection.execute("CREATE TABLE p (id integer PRIMARY KEY, a text)")
        connection.execute("CREATE TABLE unwanted (id integer)")
        start = prepare(north, "public.p")
    yield north, start
    with session.connect(north) as connection:
        connection.execute("ALTER SYSTEM RESET logical_decoding_work_mem")
        connection.execute("SELECT pg_reload_conf()")


def run(dsn: str, *statements: str) -> None:
    with psycopg.connect(dsn) as connection:
        for statement in statements:
            connection.execute(statement)


def test_reading_from_any_commit_returns_what_committed_after_it(source: tuple[str, int], tmp_path: Path) -> None:
    """Reading resumes at positions shared by commits, begins, many rows, empty transactions and messages."""
    dsn, start = source
    for number in range(4):
        run(dsn, f"INSERT INTO p VALUES ({number})")
    run(dsn, "INSERT INTO p SELECT g FROM generate_series(100, 104) g")
    with psycopg.connect(dsn) as connection, connection.cursor().copy("COPY p FROM STDIN") as copy:
        for number in range(200, 205):
            copy.write_row((number, "copied"))
    run(dsn, "UPDATE p SET a = 'none' WHERE id = -1")
    run(dsn, "SAVEPOINT a", "INSERT INTO p VALUES (300)", "ROLLBACK TO SAVEPOINT a")
    run(dsn, "INSERT INTO unwanted VALUES (1)")
    run(dsn, "SELECT pg_logical_emit_message(true, 'other', 'in a transaction')", "INSERT INTO p VALUES (5)")
    run(dsn, "SELECT pg_logical_emit_message(false, 'other', 'outside')")
    run(dsn, "DELETE FROM p WHERE id = 0", "INSERT INTO p VALUES (6)")
    end = end_of(dsn)
    with capturing(dsn, start, tmp_path) as capture:
        every = collect(capture, end)
    places = sorted({int(str(row[0])) for row in every})
    assert [sum(row[0] == place for row in every) for place in places] == [1, 1, 1, 1, 5, 5, 1, 2]
    for place in places:
        rest = [row for row in every if int(str(row[0])) > place]
        with capturing(dsn, place, tmp_path, after=place) as capture:
            assert collect(capture, end) == rest


def test_a_transaction_that_began_before_a_commit_is_returned_whole_after_it(
    source: tuple[str, int], tmp_path: Path
) -> None:
    """One transaction changes rows before and after another's commit; reading resumes at that commit."""
    dsn, start = source
    with psycopg.connect(dsn) as slow:
        slow.execute("INSERT INTO p VALUES (1, 'before')")
        run(dsn, "INSERT INTO p VALUES (2, 'quick')")
        slow.execute("INSERT INTO p VALUES (3, 'behind')")
        with capturing(dsn, start, tmp_path) as capture:
            (quick,) = collect(capture, end_of(dsn))
            capture.confirm(int(str(quick[0])))
    with capturing(dsn, int(str(quick[0])), tmp_path, after=int(str(quick[0]))) as capture:
        rows = collect(capture, end_of(dsn))
    assert [values(row)[0][1] for row in rows] == [b"1", b"3"]


def test_a_keepalive_during_an_open_transaction_loses_none_of_its_rows(source: tuple[str, int], tmp_path: Path) -> None:
    """The log advances beside an open, streamed transaction; its end is confirmed; then everything is read again."""
    dsn, start = source
    with psycopg.connect(dsn) as slow:
        slow.execute(FILL, [1, 3000])
        with capturing(dsn, start, tmp_path) as capture:
            run(dsn, "INSERT INTO unwanted VALUES (1)", "CREATE TABLE noise AS SELECT 1 AS one")
            assert collect(capture, end_of(dsn)) == []
            assert len(capture.cache.open) == 1, "it stopped right after a begin"
            safe = capture.state.safe
            capture.confirm(safe)
        slow.execute(FILL, [3001, 3010])
        slow.commit()
    with capturing(dsn, safe, tmp_path, after=safe) as capture:
        rows = collect(capture, end_of(dsn))
    assert [values(row)[0][1] for row in rows] == [str(number).encode() for number in range(1, 3011)]


def test_reading_ends_if_the_catalog_does_not_answer(source: tuple[str, int], tmp_path: Path) -> None:
    """Without the catalog, a table with REPLICA IDENTITY FULL would lose its key, and its columns their types."""
    dsn, start = source
    run(dsn, "ALTER TABLE p REPLICA IDENTITY FULL")
    with capturing(dsn, start, tmp_path) as capture:
        run(
            dsn,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
            " AND application_name = 'ggshell extract' AND backend_type = 'client backend'",
            "INSERT INTO p VALUES (1, 'a')",
        )
        with pytest.raises(ConnectionLostError):
            collect(capture, end_of(dsn))
    with capturing(dsn, start, tmp_path) as capture:
        (row,) = collect(capture, end_of(dsn))
    assert values(row) == [(0, b"1"), (1, b"a")]


def test_the_connection_to_the_catalog_has_no_time_limits(source: tuple[str, int], tmp_path: Path) -> None:
    dsn, start = source
    limits = ("statement_timeout", "lock_timeout", "idle_session_timeout")
    database = psycopg.conninfo.conninfo_to_dict(dsn)["dbname"]
    run(dsn, *(f"ALTER DATABASE {database} SET {name} = '500ms'" for name in limits))
    with capturing(dsn, start, tmp_path) as capture:
        assert collect(capture, end_of(dsn)) == []
        run(dsn, "SET statement_timeout = 0", "SELECT pg_sleep(1)")
        run(dsn, "INSERT INTO p VALUES (1, 'a')")
        assert len(collect(capture, end_of(dsn))) == 1


def test_open_ddl_of_a_partitioned_table_does_not_hold_up_other_tables(source: tuple[str, int], tmp_path: Path) -> None:
    dsn, _ = source
    run(
        dsn,
        "CREATE TABLE parts (id integer PRIMARY KEY, a text) PARTITION BY RANGE (id)",
        "CREATE TABLE part PARTITION OF parts DEFAULT",
        "ALTER TABLE unwanted ADD COLUMN later integer DEFAULT 1",  # such columns make the query read the partitions
    )
    with session.connect(dsn) as connection:
        trandata.add(connection, TableName("public", "parts"))
    start = end_of(dsn)
    with psycopg.connect(dsn) as open_ddl, capturing(dsn, start, tmp_path) as capture:
        open_ddl.execute("ALTER TABLE parts ADD COLUMN b integer")
        open_ddl.execute("INSERT INTO parts SELECT g, repeat('x', 50) FROM generate_series(1, 3000) g")
        run(dsn, "INSERT INTO p VALUES (1, 'a')")
        assert len(collect(capture, end_of(dsn))) == 1
        assert len(capture.cache.open) == 1
        open_ddl.rollback()


def test_a_streamed_transaction_that_is_rolled_back_leaves_nothing(source: tuple[str, int], tmp_path: Path) -> None:
    dsn, start = source
    with capturing(dsn, start, tmp_path, limit=100_000) as capture:
        with psycopg.connect(dsn) as large:
            large.execute(FILL, [1, 5000])
            run(dsn, "INSERT INTO p VALUES (0, 'short')")
            assert len(collect(capture, end_of(dsn))) == 1
            assert len(capture.cache.open) == 1
            large.rollback()
        run(dsn, "INSERT INTO p VALUES (1, 'behind')")
        (row,) = collect(capture, end_of(dsn))
        assert values(row) == [(0, b"1"), (1, b"behind")]
        assert len(capture.cache.open) == 0


@pytest.mark.parametrize("rows", [3, 3000], ids=["at its commit", "streamed"])
def test_savepoints_with_ddl_are_rolled_back_with_their_columns(
    source: tuple[str, int], tmp_path: Path, rows: int
) -> None:
    dsn, start = source
    with psycopg.connect(dsn) as connection:
        connection.execute(FILL, [1, rows])
        connection.execute("SAVEPOINT a")
        connection.execute("ALTER TABLE p ADD COLUMN extra integer DEFAULT 7")
        connection.execute("INSERT INTO p VALUES (10001, 'taken back', 8)")
        connection.execute("ROLLBACK TO SAVEPOINT a")
        connection.execute("INSERT INTO p VALUES (10002, 'stays')")
        connection.execute("SAVEPOINT b")
        connection.execute("ALTER TABLE p ADD COLUMN kept integer DEFAULT 1")
        connection.execute("INSERT INTO p VALUES (10003, 'wider', 2)")
        connection.execute("RELEASE SAVEPOINT b")
    with capturing(dsn, start, tmp_path) as capture:
        found = [values(row) for row in collect(capture, end_of(dsn))]
    assert len(found) == rows + 2
    assert found[-2:] == [[(0, b"10002"), (1, b"stays")], [(0, b"10003"), (1, b"wider"), (2, b"2")]]


@pytest.fixture
def prepared_server(server_folder: Path, port: int) -> Iterator[str]:
    """A server that accepts prepared transactions."""
    server = PostgresServer(
        data=server_folder / "data-prepared",
        sockets=server_folder / "s-prepared",
        port=port,
        binaries=find_binaries(),
    )
    server.initialize({**REPLICATION_SETTINGS, "max_prepared_transactions": "10", "shared_buffers": "16MB"})
    server.start()
    yield server.dsn()
    server.stop("immediate")


def test_prepared_transactions_are_returned_only_when_they_are_committed(prepared_server: str, tmp_path: Path) -> None:
    with session.connect(prepared_server) as connection:
        connection.execute("CREATE TABLE p (id integer PRIMARY KEY, a text)")
        start = prepare(prepared_server, "public.p")
        for name in ("stays", "goes"):
            connection.execute("BEGIN")
            connection.execute("INSERT INTO p VALUES (%s, %s)", [len(name), name])
            connection.execute(f"PREPARE TRANSACTION '{name}'")
        connection.execute("INSERT INTO p VALUES (1, 'between')")
        with capturing(prepared_server, start, tmp_path) as capture:
            (between,) = collect(capture, end_of(prepared_server))
            assert values(between)[0] == (0, b"1")
            capture.confirm(capture.state.safe)
        connection.execute("ROLLBACK PREPARED 'goes'")
        connection.execute("COMMIT PREPARED 'stays'")
    place = int(str(between[0]))
    with capturing(prepared_server, place, tmp_path, after=place) as capture:
        (row,) = collect(capture, end_of(prepared_server))
    assert values(row) == [(0, b"5"), (1, b"stays")]
