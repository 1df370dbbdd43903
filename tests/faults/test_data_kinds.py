"""Values of every type at their limits, and changing partitions, replicated between databases by real processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from pipelines import Pipeline
from processes import until

TYPES = """
CREATE TYPE {s}.mood AS ENUM ('sad', 'so so', 'glad, "very"');
CREATE TYPE {s}.place AS (x numeric, label text);
CREATE TYPE {s}.road AS (name text, ends {s}.place[], mood {s}.mood);
CREATE TABLE {s}.limits (id int PRIMARY KEY, n numeric, f double precision, r real, d date, t timestamp, tz timestamptz,
  span interval, b bytea, v text, c char(5), flags bit(5), bits bit varying, j json, jb jsonb, m {s}.mood, p {s}.place,
  w {s}.road, ws {s}.road[], na numeric[], ta text[][], twice numeric GENERATED ALWAYS AS (n * 2) STORED);
CREATE TABLE {s}.alike (n numeric, f double precision, d date, j json, p {s}.place, bits bit varying);
"""
VALUES = (
    # id, n, f, r, d, t, tz, span, b, v, c, flags, bits, j, jb, m, p, w, ws, na, ta
    "1, repeat('9', 1000)::numeric, 'NaN', '-Infinity', '4713-01-01 BC', '4713-01-01 00:00:00 BC', '4714-11-24 00:00:00+00 BC',"
    " '-178000000 years', '', '', '', B'00000', B'', '{\"b\":1, \"a\" : 2,\"b\":3}', '{\"b\":1, \"a\" : 2}', 'sad',"
    " ROW(NULL, '')::{s}.place, NULL, '{{}}', '{{}}', '{{}}'",
    "2, ('0.' || repeat('0', 998) || '12')::numeric, 'Infinity', '1e-45', 'infinity', '294276-12-31 23:59:59.999999',"
    " '-infinity', '178000000 years 11 mons', decode(repeat('00ff5c27', 3000), 'hex'), repeat('ä\\\"''', 3000), 'a', B'10101',"
    " repeat('10', 900)::bit varying, 'null', 'null', 'glad, \"very\"', ROW(1.50, 'a \"b\", (c)')::{s}.place,"
    " ROW('r', ARRAY[ROW(1, NULL)::{s}.place, NULL, ROW('NaN', ',')::{s}.place], 'so so')::{s}.road,"
    " ARRAY[ROW('q', NULL, NULL)::{s}.road, NULL], ARRAY['NaN', NULL, 1.0, 'Infinity']::numeric[],"
    " ARRAY[['a', NULL], ['NULL', 'x,y\"']]",
    "3, 'NaN', -0.0, 'NaN', '5874897-12-31', 'infinity', '2024-10-27 02:30:00+01', '1 mon -1 day 00:00:00.000001', NULL,"
    " NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL",
    "4, 'Infinity', 5e-324, 3.4028235e38, '-infinity', NULL, NULL, '24:00:00', '\\x00', E'\\t\\n\\\\N', 'abcde', B'11111',"
    " B'1', '[1 , 2]', '[]', 'so so', ROW(-1e-200, NULL)::{s}.place, ROW(NULL, NULL, NULL)::{s}.road,"
    " ARRAY[]::{s}.road[], '[-1:0]={{1,2}}', '{{{{a}},{{b}}}}'",
)
PARTED = """
CREATE TABLE {s}.parted (id int, day date, v text, PRIMARY KEY (id, day)) PARTITION BY RANGE (day);
CREATE TABLE {s}.parted_23 PARTITION OF {s}.parted FOR VALUES FROM ('2023-01-01') TO ('2024-01-01');
CREATE TABLE {s}.parted_24 PARTITION OF {s}.parted FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
CREATE TABLE {s}.parted_rest PARTITION OF {s}.parted DEFAULT;
"""


@pytest.fixture
def pipeline(tmp_path: Path, north: str, south: str) -> Iterator[Pipeline]:
    pipeline = Pipeline(tmp_path / "home", north, south)
    yield pipeline
    pipeline.close()


def start(pipeline: Pipeline, *tables: str) -> None:
    pipeline.add()
    pipeline.run(
        "DBLOGIN USERIDALIAS north", *(f"ADD TRANDATA a.{table}" for table in tables), "START ext1", "START rep1"
    )


def wait_and_compare(pipeline: Pipeline, *names: str) -> None:
    """Wait for the last row; then assert that both sides print the same."""
    pipeline.in_north("INSERT INTO a.items VALUES (777, 'end', 0)")
    until("the last row arrives", lambda: pipeline.in_south("SELECT count(*) FROM b.items WHERE id = 777")[0][0] == 1)
    for name in names:
        source = pipeline.in_north(f"SELECT t::text FROM a.{name} t ORDER BY 1")
        assert source, "there is something to compare"
        assert pipeline.in_south(f"SELECT t::text FROM b.{name} t ORDER BY 1") == source, name


def test_values_at_their_limits_are_replicated_updated_and_found(pipeline: Pipeline) -> None:
    """Values are inserted, updated, given another key and, in a table without a key, found by all columns."""
    pipeline.in_north(TYPES.format(s="a"), "ALTER TABLE a.alike REPLICA IDENTITY FULL")
    pipeline.in_south(TYPES.format(s="b"))
    start(pipeline, "limits", "alike")
    names = "id, n, f, r, d, t, tz, span, b, v, c, flags, bits, j, jb, m, p, w, ws, na, ta"
    rows = [f"({values.replace('{{', '{').replace('}}', '}').replace('{s}', 'a')})" for values in VALUES]
    pipeline.in_north(
        f"INSERT INTO a.limits ({names}) VALUES {', '.join(rows)}",
        f"INSERT INTO a.limits ({names}) SELECT id + 100 * g, {names.removeprefix('id, ')}"
        " FROM a.limits, generate_series(1, 10) g",
        "UPDATE a.limits SET v = 'changed' WHERE id < 50",
        "UPDATE a.limits SET id = -id, m = 'glad, \"very\"' WHERE id > 900",
        "UPDATE a.limits x SET n = y.n, j = y.j, p = y.p, w = y.w FROM a.limits y WHERE y.id = 2 AND x.id BETWEEN 200 AND 250",
        "DELETE FROM a.limits WHERE id % 100 = 4 AND id > 500",
        "INSERT INTO a.alike SELECT n, f, d, j, p, bits FROM a.limits",
        "INSERT INTO a.alike VALUES (1.0, 0.0, NULL, '{\"a\":1}', NULL, B''), (1.00, -0.0, NULL, '{\"a\": 1}', NULL, B'')",
        "UPDATE a.alike SET bits = B'111' WHERE n::text = '1.00'",
        "DELETE FROM a.alike WHERE ctid IN (SELECT min(ctid) FROM a.alike"
        " GROUP BY n::text, f::text, d, j::text, p::text, bits)",
    )
    wait_and_compare(pipeline, "limits", "alike")


@pytest.mark.parametrize("plain", [False, True], ids=["to partitions", "to one table"])
def test_partitions_change_during_replication(pipeline: Pipeline, plain: bool) -> None:
    """Rows move between partitions; one is detached, emptied and attached again, and another one is created."""
    pipeline.in_north(PARTED.format(s="a"))
    pipeline.in_south(
        "CREATE TABLE b.parted (id int, day date, v text, PRIMARY KEY (id, day))" if plain else PARTED.format(s="b")
    )
    start(pipeline, "parted")
    pipeline.in_north(
        "INSERT INTO a.parted SELECT g, '2023-06-01'::date + 20 * g, 'v' || g FROM generate_series(1, 60) g",
        "UPDATE a.parted SET day = day + 365 WHERE id % 2 = 0",
        "UPDATE a.parted_24 SET v = 'directly' WHERE id % 3 = 0",
    )
    with psycopg.connect(pipeline.north) as connection:
        connection.execute("INSERT INTO a.parted VALUES (100, '2024-02-02', 'before')")
        connection.execute("ALTER TABLE a.parted DETACH PARTITION a.parted_24")
        connection.execute(
            "ALTER TABLE a.parted ATTACH PARTITION a.parted_24 FOR VALUES FROM ('2024-01-01') TO ('2025-01-01')"
        )
        connection.execute("UPDATE a.parted SET v = 'behind' WHERE id = 100")
        connection.execute(
            "CREATE TABLE a.parted_30 PARTITION OF a.parted FOR VALUES FROM ('2030-01-01') TO ('2031-01-01')"
        )
        connection.execute("INSERT INTO a.parted VALUES (101, '2030-02-02', 'new')")
    pipeline.in_north(
        "DELETE FROM a.parted WHERE id < 10", "INSERT INTO a.parted_23 VALUES (200, '2023-01-01', 'last')"
    )
    wait_and_compare(pipeline, "parted")


def test_a_table_rewrite_between_savepoints_and_another_column_order(pipeline: Pipeline) -> None:
    """DDL that is rolled back, DDL that is committed, and a target with another column order and extra columns."""
    pipeline.in_north("CREATE TABLE a.grows (id int PRIMARY KEY, n int, v text)")
    pipeline.in_south("CREATE TABLE b.grows (own text DEFAULT 'own', late int, v text, id bigint PRIMARY KEY, n text)")
    start(pipeline, "grows")
    with psycopg.connect(pipeline.north) as connection:
        connection.execute("INSERT INTO a.grows SELECT g, g, 'x' FROM generate_series(1, 3000) g")
        connection.execute("SAVEPOINT one")
        connection.execute("ALTER TABLE a.grows ADD COLUMN gone int DEFAULT 5")
        connection.execute("INSERT INTO a.grows VALUES (5000, 1, 'gone', 6)")
        connection.execute("UPDATE a.grows SET gone = 7 WHERE id <= 2000")
        connection.execute("ROLLBACK TO SAVEPOINT one")
        connection.execute("UPDATE a.grows SET v = 'y' WHERE id <= 10")
        connection.execute("SAVEPOINT two")
        connection.execute("ALTER TABLE a.grows ALTER COLUMN n TYPE bigint USING n * 10")
        connection.execute("ALTER TABLE a.grows ADD COLUMN late int")
        connection.execute("INSERT INTO a.grows VALUES (5001, 50000000000, 'kept', 1)")
        connection.execute("UPDATE a.grows SET late = id, n = n WHERE id BETWEEN 100 AND 200")
        connection.execute("RELEASE SAVEPOINT two")
    pipeline.in_north("INSERT INTO a.items VALUES (778, 'end', 0)")
    until("the last row arrives", lambda: pipeline.in_south("SELECT count(*) FROM b.items WHERE id = 778")[0][0] == 1)
    rewritten = "CASE WHEN id > 5000 OR id BETWEEN 100 AND 200 THEN n ELSE n / 10 END"
    source = pipeline.in_north(f"SELECT 'own', late, v, id, ({rewritten})::text FROM a.grows ORDER BY id")
    assert len(source) == 3001
    assert pipeline.in_south("SELECT own, late, v, id, n FROM b.grows ORDER BY id") == source, (
        "what a rewrite computes is not logged"
    )
