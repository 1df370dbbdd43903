"""Capture from a real PostgreSQL server: committed rows are returned once, in commit order, with identical bytes."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from connectors.postgres.slot_reading import capturing, collect, prepare, values

from ggshell.connectors.postgres import encode, log, protocol, session, slot, trandata, wire
from ggshell.demo.postgres_server import PostgresServer
from ggshell.errors import CaptureError, ConnectionLostError, DatabaseError
from ggshell.record.definition import Column, column_number
from ggshell.record.image import decode_image, split_key_update
from ggshell.record.operation import IoType
from ggshell.types import TableName, text_literal

Rows = list[tuple[str, int, list[tuple[int, bytes | None]]]]


TYPES = {
    "boolean": ["true", "false"],
    "smallint": ["-32768"],
    "integer": ["7"],
    "bigint": ["9223372036854775807"],
    "numeric": ["'NaN'", "1e1000", "0." + "1" * 990, "'-Infinity'"],
    "real": ["1.17549435e-38", "'NaN'"],
    "double precision": ["0.1::float8 + 0.2::float8", "'Infinity'"],
    "money": ["'12.34'"],
    "char(5)": ["'ab'"],
    "varchar(20)": ["''", r"E'tab\tnew\nback\\slash'"],
    "text": ["'ünï'", "NULL", "''", r"'\N'"],
    "bytea": [r"'\x00ff10'", "''"],
    "date": ["'4713-01-01 BC'", "'infinity'"],
    "time": ["'24:00:00'"],
    "timetz": ["'12:00:00+05:30'"],
    "timestamp": ["'-infinity'", "'2024-02-29 23:59:59.999999'"],
    "timestamptz": ["'2024-10-27 02:30:00+02'", "'infinity'"],
    "interval": ["'1 year -2 mons 3 days 04:05:06.789'", "'-00:00:01'"],
    "uuid": ["'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"],
    "json": ["""'{"b": 1,  "a": [null]}'"""],
    "jsonb": ["""'{"b": 1, "a": "x"}'"""],
    "bit(3)": ["B'101'"],
    "bit varying(8)": ["B'1'", "B''"],
    "inet": ["'10.0.0.1/8'"],
    "cidr": ["'10.0.0.0/8'"],
    "macaddr": ["'08:00:2b:01:02:03'"],
    "point": ["'(1.5,2)'"],
    "box": ["'(1,2),(3,4)'"],
    "polygon": ["'((0,0),(1,1),(2,0))'"],
    "tsvector": ["'a:1 b:2'"],
    "tsquery": ["'a & b'"],
    "int4range": ["'[1,5)'", "'empty'"],
    "tstzrange": ["'[2024-01-01 00:00+00,)'"],
    "int8multirange": ["'{[1,3), [5,7)}'"],
    "integer[]": ["'{1,NULL,3}'", "'{{1,2},{3,4}}'"],
    "text[]": ["""ARRAY['a,b', NULL, 'q"x', '']"""],
    "oid": ["42"],
    "mood": ["'so so'"],
    "positive": ["3"],
    "pair": ["ROW(1, 'a,b')::pair"],
    "pg_lsn": ["'0/16B3748'"],
}


def test_every_type_is_captured_as_the_database_prints_it(north: str, tmp_path: Path) -> None:
    columns = ", ".join(f"c{number} {kind}" for number, kind in enumerate(TYPES))
    with session.connect(north) as connection:
        connection.execute("CREATE TYPE mood AS ENUM ('so so', 'ok')")
        connection.execute("CREATE DOMAIN positive AS integer CHECK (VALUE > 0)")
        connection.execute("CREATE TYPE pair AS (a integer, b text)")
        connection.execute(f"CREATE TABLE types (id integer PRIMARY KEY, {columns})")
        start = prepare(north, "public.types")
        for number in range(4):
            given = ", ".join(items[number % len(items)] for items in TYPES.values())
            connection.execute(f"INSERT INTO types VALUES ({number}, {given})")
        shown = ", ".join(f"c{number}::text" for number in range(len(TYPES)))
        # char(n) loses its blanks in a cast to text; the log keeps them.
        shown = shown.replace(f"c{list(TYPES).index('char(5)')}::text", "'ab   '")
        expected = connection.execute(f"SELECT id::text, {shown} FROM types ORDER BY id").fetchall()
        end = session.current_position(connection)[0]
    with capturing(north, start, tmp_path) as capture:
        rows = collect(capture, end)
    got = [tuple(None if value is None else value.decode() for _, value in values(row)) for row in rows]
    booleans = list(TYPES).index("boolean") + 1
    got = [(*row[:booleans], {"t": "true", "f": "false"}[str(row[booleans])], *row[booleans + 1 :]) for row in got]
    assert got == expected


@pytest.mark.parametrize("ready", [1, 4000])
@pytest.mark.parametrize("few", [0, 10_000])
def test_both_encoders_give_the_images_of_each_replica_identity(
    north: str, tmp_path: Path, few: int, ready: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encode, "FEW_ROWS", few)
    monkeypatch.setattr(log, "READY_MESSAGES", ready)
    big = "x" * 9000
    with session.connect(north) as connection:
        connection.execute("CREATE TABLE k (id integer PRIMARY KEY, a text, b text)")
        connection.execute("ALTER TABLE k ALTER b SET STORAGE EXTERNAL")
        connection.execute("CREATE TABLE f (id integer PRIMARY KEY, a text, b text)")
        connection.execute("CREATE TABLE nokey (id integer, a text)")
        connection.execute('CREATE TABLE "Mixed Case" ("Id" integer PRIMARY KEY, "order" text)')
        start = prepare(north, "public.k", "public.nokey", 'public."Mixed Case"')
        trandata.add(connection, TableName("public", "f"), all_columns=True)
        connection.execute("INSERT INTO k VALUES (1, 'a', %s)", [big])
        connection.execute("UPDATE k SET a = 'b'")
        connection.execute("UPDATE k SET id = 2")
        connection.execute("DELETE FROM k")
        connection.execute("INSERT INTO f VALUES (1, 'a', NULL)")
        connection.execute("UPDATE f SET a = 'b'")
        connection.execute("DELETE FROM f")
        connection.execute("INSERT INTO nokey VALUES (1, NULL)")
        connection.execute("UPDATE nokey SET a = ''")
        connection.execute("DELETE FROM nokey")
        connection.execute("""INSERT INTO "Mixed Case" VALUES (1, 'z')""")
        connection.execute("TRUNCATE k, f")
        end = session.current_position(connection)[0]
    with capturing(north, start, tmp_path) as capture:
        rows = collect(capture, end)
    got = []
    for _, table, io_type, data, *_ in rows:
        if io_type == IoType.KEY_FIELD_COMP:
            before, after = split_key_update(data)  # type: ignore[arg-type]
            got.append((table.name.name, io_type, decode_image(before), decode_image(after)))  # type: ignore[attr-defined]
        else:
            got.append((table.name.name, io_type, decode_image(data)))  # type: ignore[attr-defined,arg-type]
    long = big.encode()
    assert got == [
        ("k", 5, [(0, b"1"), (1, b"a"), (2, long)]),
        ("k", 15, [(0, b"1"), (1, b"b")]),
        ("k", 115, [(0, b"1")], [(0, b"2"), (1, b"b")]),
        ("k", 3, [(0, b"2")]),
        ("f", 5, [(0, b"1"), (1, b"a"), (2, None)]),
        ("f", 15, [(0, b"1"), (1, b"b")]),
        ("f", 3, [(0, b"1")]),
        ("nokey", 5, [(0, b"1"), (1, None)]),
        ("nokey", 115, [(0, b"1"), (1, None)], [(0, b"1"), (1, b"")]),
        ("nokey", 3, [(0, b"1"), (1, b"")]),
        ("Mixed Case", 5, [(0, b"1"), (1, b"z")]),
        ("k", 100, []),
        ("f", 100, []),
    ]


def test_both_encoders_agree_on_long_and_short_values(
    north: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with session.connect(north) as connection:
        connection.execute("CREATE TABLE v (id serial PRIMARY KEY, a text, b bytea)")
        start = prepare(north, "public.v")
        connection.execute(
            "INSERT INTO v (a, b) SELECT CASE WHEN g % 7 > 0 THEN repeat('y', g * 331) END, decode(repeat('00', g), 'hex')"
            " FROM generate_series(0, 300) g"
        )
        end = session.current_position(connection)[0]
    results = []
    for few, ready in ((0, 4000), (10_000, 4000), (0, 100)):
        monkeypatch.setattr(encode, "FEW_ROWS", few)
        monkeypatch.setattr(log, "READY_MESSAGES", ready)
        with capturing(north, start, tmp_path) as capture:
            results.append(collect(capture, end))
    assert results[0] == results[1] == results[2]
    assert len(results[0]) == 301


@pytest.mark.parametrize("plain", [True, False])
def test_both_connections_return_the_same_rows_and_accept_the_same_feedback(
    north: str, tmp_path: Path, plain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "is_plain", lambda *_: plain)
    with session.connect(north) as connection:
        connection.execute("CREATE TABLE w (id integer PRIMARY KEY, a text)")
        start = prepare(north, "public.w")
        connection.execute("INSERT INTO w SELECT g, repeat('d', g % 999) FROM generate_series(1, 3000) g")
        connection.execute("INSERT INTO w VALUES (0, repeat('long', 500000))")
        connection.execute("UPDATE w SET a = id WHERE id BETWEEN 1 AND 40")
        connection.execute("DELETE FROM w WHERE id = 1")
        connection.execute("TRUNCATE w")
        end = session.current_position(connection)[0]
    with capturing(north, start, tmp_path) as capture:
        rows = collect(capture, end)
        capture.confirm(capture.state.safe)
        with session.connect(north) as connection:
            for _ in range(200):
                status = slot.slot_status(connection, "ggs_ext1")
                if status is not None and status.confirmed >= end:
                    break
            else:
                raise AssertionError(f"the slot was not confirmed: {status}")
    assert [row[2] for row in rows] == [5] * 3001 + [15] * 40 + [3, 100]
    assert [values(row) for row in rows[:3000]] == [
        [(0, b"%d" % number), (1, b"d" * (number % 999))] for number in range(1, 3001)
    ]
    assert values(rows[3000])[1] == (1, b"long" * 500_000)


@pytest.mark.parametrize("plain", [True, False])
def test_both_connections_report_a_lost_connection_and_a_refused_start(
    north: str, tmp_path: Path, plain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "is_plain", lambda *_: plain)
    start = prepare(north)
    with capturing(north, start, tmp_path) as capture, session.connect(north) as connection:
        with pytest.raises(DatabaseError, match="active"), capturing(north, start, tmp_path):
            pass
        connection.execute("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active")
        with pytest.raises(ConnectionLostError):
            for _ in range(100):
                capture.read(0.2)


def test_an_unencrypted_tcp_connection_is_read_from_its_socket(north: str, north_server: PostgresServer) -> None:
    info = psycopg.conninfo.conninfo_to_dict(north)
    with (
        session.connect(psycopg.conninfo.make_conninfo(**{**info, "host": "127.0.0.1"})) as control,
        session.connect(psycopg.conninfo.make_conninfo(**{**info, "host": "127.0.0.1"}), replication=True) as log,
    ):
        assert protocol.is_plain(log, control)


@pytest.mark.parametrize("ready", [30, 1_000_000])
@pytest.mark.parametrize("limit", [64 << 20, 100_000])
def test_streamed_transactions_interleave_lose_rolled_back_savepoints_and_may_spill(
    north: str, tmp_path: Path, limit: int, ready: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "READY_MESSAGES", ready)
    with session.connect(north) as connection:
        connection.execute("ALTER SYSTEM SET logical_decoding_work_mem = '64kB'")
        connection.execute("SELECT pg_reload_conf()")
        connection.execute("CREATE TABLE s (id integer PRIMARY KEY, a text)")
        start = prepare(north, "public.s")
    with capturing(north, start, tmp_path, limit=limit) as capture, session.connect(north) as other:
        large = psycopg.connect(north)
        fill = "INSERT INTO s SELECT g, repeat('x', 50) FROM generate_series(%s::int, %s::int) g"
        large.execute(fill, [1, 5000])
        large.execute("SAVEPOINT a")
        large.execute(fill, [10_001, 15_000])
        large.execute("ROLLBACK TO SAVEPOINT a")
        large.execute(fill, [5001, 6000])
        other.execute("INSERT INTO s VALUES (0, 'short')")
        short = collect(capture, session.current_position(other)[0])
        assert [row[3] for row in short] == [read[3] for read in short if values(read)[1] == (1, b"short")]
        assert len(short) == 1
        assert len(capture.cache.open) == 1
        large.commit()
        rows = collect(capture, session.current_position(other)[0])
        large.close()
        if limit < 1 << 20:
            assert capture.cache.spills > 0
    assert [values(row)[0][1] for row in rows] == [str(number).encode() for number in range(1, 6001)]
    assert [row[5] for row in rows] == [True] + [False] * 5999
    assert [row[6] for row in rows] == [False] * 5999 + [True]
    with session.connect(north) as connection:
        connection.execute("ALTER SYSTEM RESET logical_decoding_work_mem")
        connection.execute("SELECT pg_reload_conf()")


def test_unconfirmed_transactions_are_sent_again_and_known_ones_are_dropped(north: str, tmp_path: Path) -> None:
    with session.connect(north) as connection:
        connection.execute("CREATE TABLE r (id integer PRIMARY KEY)")
        start = prepare(north, "public.r")
        for number in range(5):
            connection.execute("INSERT INTO r VALUES (%s)", [number])
        end = session.current_position(connection)[0]
    with capturing(north, start, tmp_path) as capture:
        first = collect(capture, end)
    with capturing(north, start, tmp_path, after=first[2][0]) as capture:  # type: ignore[arg-type]
        assert collect(capture, end) == first[3:]
        capture.confirm(capture.state.safe)
    with session.connect(north) as connection:
        for _ in range(200):
            status = slot.slot_status(connection, "ggs_ext1")
            if status is not None and not status.active:
                break
    with pytest.raises(CaptureError, match="ahead"), capturing(north, start, tmp_path):
        pass


def test_the_safe_position_advances_on_an_idle_source(north: str, tmp_path: Path) -> None:
    with session.connect(north) as connection:
        connection.execute("CREATE TABLE r (id integer PRIMARY KEY)")
        connection.execute("CREATE TABLE unwanted (id integer PRIMARY KEY)")
        start = prepare(north, "public.r", "public.unwanted")
        with capturing(north, start, tmp_path, wanted=lambda name: name.name == "r") as capture:
            connection.execute("INSERT INTO unwanted VALUES (1)")
            connection.execute("CREATE TABLE noise AS SELECT 1 AS one")
            assert collect(capture, session.current_position(connection)[0]) == []


def columns_captured(dsn: str, folder: Path, table: str, create: str, *changes: str) -> list[tuple[Column, ...]]:
    """The columns of each row that is captured after the changes of a new table."""
    with session.connect(dsn) as connection:
        connection.execute(create)
        start = prepare(dsn, f"public.{table}")
        for statement in changes:
            connection.execute(statement)
        end = session.current_position(connection)[0]
    with capturing(dsn, start, folder) as capture:
        return [row[1].columns for row in collect(capture, end)]  # type: ignore[attr-defined]


def test_an_added_column_changes_only_later_rows(north: str, tmp_path: Path) -> None:
    found = columns_captured(
        north,
        tmp_path,
        "d",
        "CREATE TABLE d (id integer PRIMARY KEY)",
        "INSERT INTO d VALUES (1)",
        "ALTER TABLE d ADD b text DEFAULT 'new'",
        "INSERT INTO d VALUES (2, 'x')",
    )
    assert [len(columns) for columns in found] == [1, 2]


def test_added_columns_come_with_the_values_of_earlier_rows(north: str, tmp_path: Path) -> None:
    defaults = {
        "integer": "42",
        "text": "a{b},\"c' d",
        "text[]": '{"x y",NULL}',
        "timestamptz": "2026-01-02 03:04:05.5+00",
        "bytea": "\\x00ff",
        "varchar(5)": "",
    }
    with session.connect(north) as connection:
        connection.execute("CREATE TABLE m (id integer PRIMARY KEY)")
        start = prepare(north, "public.m")
        connection.execute("INSERT INTO m VALUES (1)")
        for number, (kind, text) in enumerate(defaults.items()):
            connection.execute(f"ALTER TABLE m ADD c{number} {kind} DEFAULT {text_literal(text)}")
        connection.execute("ALTER TABLE m ADD without integer")
        connection.execute("INSERT INTO m VALUES (2)")
        kept = session.current_position(connection)[0]
        with capturing(north, start, tmp_path) as capture:
            rows = collect(capture, kept)
            connection.execute("ALTER TABLE m ADD volatile double precision DEFAULT random()")  # rewrites the table
            connection.execute("INSERT INTO m VALUES (3)")
            rows += collect(capture, session.current_position(connection)[0])
    first, second, third = ([each.missing for each in row[1].columns] for row in rows)  # type: ignore[attr-defined]
    assert first == [None]
    assert second == [None, *defaults.values(), None]
    assert third == [None] * (len(defaults) + 3)


def test_an_added_column_of_partitions_comes_with_the_value_of_earlier_rows(north: str, tmp_path: Path) -> None:
    found = columns_captured(
        north,
        tmp_path,
        "q",
        "CREATE TABLE q (id integer PRIMARY KEY) PARTITION BY RANGE (id);"
        " CREATE TABLE q1 PARTITION OF q FOR VALUES FROM (0) TO (10)",
        "INSERT INTO q VALUES (1)",
        "ALTER TABLE q ADD a integer DEFAULT 7, ADD b text",
        "INSERT INTO q VALUES (2)",
    )
    assert [each.missing for each in found[1]] == [None, "7", None]


def test_a_column_keeps_its_number_when_it_is_renamed(north: str, tmp_path: Path) -> None:
    """Also if the catalog already has the new name when the log is read."""
    with session.connect(north) as connection:
        connection.execute("CREATE TABLE n (id integer PRIMARY KEY, gone text, b text)")
        connection.execute("ALTER TABLE n DROP gone")
        start = prepare(north, "public.n")
        with capturing(north, start, tmp_path) as capture:
            connection.execute("INSERT INTO n VALUES (1, 'x')")
            before = collect(capture, session.current_position(connection)[0])
            connection.execute("ALTER TABLE n RENAME b TO c")
            connection.execute("INSERT INTO n VALUES (2, 'y')")
            connection.execute("ALTER TABLE n RENAME c TO d")
            connection.execute("INSERT INTO n VALUES (3, 'z')")
            after = collect(capture, session.current_position(connection)[0])
        table = connection.execute("SELECT 'n'::regclass::oid::bigint").fetchone()
    assert table is not None
    numbers = [column_number(table[0], 1), column_number(table[0], 3)]
    found = [[(each.name, each.number) for each in row[1].columns] for row in (*before, *after)]  # type: ignore[attr-defined]
    assert found == [list(zip(("id", name), numbers, strict=True)) for name in ("b", "c", "d")]


def test_partitions_are_captured_as_their_root_without_generated_columns(north: str, tmp_path: Path) -> None:
    with session.connect(north) as connection:
        connection.execute("CREATE TABLE p (id integer PRIMARY KEY, g integer GENERATED ALWAYS AS (id * 2) STORED)"
                           " PARTITION BY RANGE (id)")  # fmt: skip
        connection.execute("CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10)")
        start = prepare(north, "public.p")
        connection.execute("INSERT INTO p (id) VALUES (1)")
        connection.execute("UPDATE p SET id = 2")
        end = session.current_position(connection)[0]
    with capturing(north, start, tmp_path) as capture:
        rows = collect(capture, end)
    assert [(row[1].name.name, row[2]) for row in rows] == [("p", 5), ("p", 115)]  # type: ignore[attr-defined]
    assert [column.name for column in rows[0][1].columns] == ["id"]  # type: ignore[attr-defined]


def test_a_missing_or_active_slot_is_named(north: str, tmp_path: Path) -> None:
    with pytest.raises(DatabaseError, match="ggs_ext1 does not exist"), capturing(north, 0, tmp_path):
        pass
    start = prepare(north)
    with (
        capturing(north, start, tmp_path),
        pytest.raises(DatabaseError, match="active"),
        capturing(north, start, tmp_path),
    ):
        pass
