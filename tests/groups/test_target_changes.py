"""Target tables altered under running Replicats of every kind receive the values that the altered table accepts."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import psycopg
import pytest
from pipelines import Pipeline
from processes import until

KINDS: Final = {"b": "", "c": "PARALLEL", "d": "COORDINATED MAXTHREADS 3"}
"""The kind of Replicat for each target schema."""


class Change(NamedTuple):
    """The type of a column before and after a change, a value from before it, and one that requires the new type."""

    before: str
    after: str
    old: str
    new: str


CHANGES = (
    Change("real", "double precision", "0.5", "0.123456789012345"),
    Change("date", "timestamp", "2024-01-31", "2024-01-31 17:45:11.123456"),
    Change("date", "timestamptz", "2024-01-31", "2024-01-31 17:45:11.123456+02"),
    Change("timestamp", "timestamptz", "2024-01-31 12:00:00", "2024-01-31 17:45:11.123456+02"),
    Change("double precision", "numeric", "0.5", "1234567890.12345678901234567890"),
    Change("money", "numeric", "0.5", "1234.56789"),
    Change('"char"', "text", "x", "more than a letter"),
    Change("name", "text", "x", "n" * 90),
    Change("char(5)", "text", "x", "kept   "),
    Change("jsonb", "json", '{"a": 1}', '{"b":1,  "a":2}'),
    Change("integer", "bigint", "1", "9876543210"),
    Change("numeric(4,1)", "numeric(9,4)", "1.5", "12345.6789"),
    Change("numeric(9,4)", "numeric(4,1)", "1.5", "123.4"),
    Change("varchar(5)", "text", "x", "longer than five"),
    Change("a.mood", "text", "sad", "neither happy nor sad"),
    Change("integer", "smallint", "1", "7"),
)


@pytest.fixture
def pipeline(tmp_path: Path, north: str, south: str) -> Iterator[Pipeline]:
    pipeline = Pipeline(tmp_path / "home", north, south)
    pipeline.in_south("CREATE SCHEMA c", "CREATE SCHEMA d", "CREATE SCHEMA a")
    yield pipeline
    pipeline.close()


def start_replication(pipeline: Pipeline, *, threads: str = "") -> None:
    """Replicate schema a into the target schemas, each with a different kind of Replicat."""
    pipeline.run("DBLOGIN USERIDALIAS south", "ADD CHECKPOINTTABLE a.checks")
    pipeline.run(
        "DBLOGIN USERIDALIAS north",
        "ADD TRANDATA a.*",
        "REGISTER EXTRACT ext1",
        "ADD EXTRACT ext1, TRANLOG, BEGIN NOW",
        "ADD EXTTRAIL ./dirdat/ea, EXTRACT ext1, MEGABYTES 10",
    )
    for schema, kind in KINDS.items():
        pipeline.write(
            f"rep{schema}",
            f"REPLICAT rep{schema}\nUSERIDALIAS south\n{threads if 'COORD' in kind else ''}MAP a.*, TARGET {schema}.*;\n",
        )
        pipeline.run(
            "DBLOGIN USERIDALIAS south",
            f"ADD REPLICAT rep{schema}, {kind + ',' if kind else ''} EXTTRAIL ./dirdat/ea, CHECKPOINTTABLE a.checks",
        )
    pipeline.start("ext1", *(f"rep{schema}" for schema in KINDS))


def digest(dsn: str, table: str) -> tuple[int, str]:
    """Row count and MD5 of a table, computed by the server."""
    with psycopg.connect(dsn, options="-c timezone=UTC -c extra_float_digits=3") as connection:
        text = f"SELECT count(*), coalesce(md5(string_agg(t::text, ';' ORDER BY id)), '') FROM {table} t"
        found = connection.execute(text).fetchone()
    assert found is not None
    return found


def wait_until_equal(pipeline: Pipeline, table: str) -> None:
    for schema in KINDS:
        until(
            f"{schema}.{table} equals its source",
            lambda schema=schema: digest(pipeline.north, f"a.{table}") == digest(pipeline.south, f"{schema}.{table}"),  # type: ignore[misc]
        )


def test_values_are_exact_when_column_types_change_in_the_target_first(pipeline: Pipeline) -> None:
    for run in (pipeline.in_north, pipeline.in_south):
        run("CREATE TYPE a.mood AS ENUM ('sad', 'happy')")
    for number, change in enumerate(CHANGES):
        make = f"CREATE TABLE {{}}.t{number} (id int PRIMARY KEY, k int UNIQUE, v {change.before}, w text)"
        pipeline.in_north(make.format("a"))
        pipeline.in_south(*(make.format(schema) for schema in KINDS))
    pipeline.in_north("CREATE TABLE a.g (id int PRIMARY KEY, v int, w int)")
    generated = "CREATE TABLE {}.g (id int PRIMARY KEY, v int, w int GENERATED ALWAYS AS (v * 2) STORED, x int)"
    pipeline.in_south(*(generated.format(schema) for schema in KINDS))
    start_replication(pipeline)
    pipeline.in_north("INSERT INTO a.g VALUES (1, 2, 3)")
    tables = [f"t{number}" for number in range(len(CHANGES))]

    def work(value: str, first: int) -> None:
        """Insert and update single rows and many rows at once."""
        with psycopg.connect(pipeline.north, autocommit=True) as connection:
            for table, change in zip(tables, CHANGES, strict=True):
                literal = f"'{getattr(change, value)}'"
                for row in range(first, first + 3):
                    connection.execute(f"INSERT INTO a.{table} VALUES ({row}, {row}, {literal}, 'w')")
                connection.execute(f"UPDATE a.{table} SET v = {literal}, w = 'changed' WHERE id = {first + 1}")
                connection.execute(f"UPDATE a.{table} SET id = -id, v = {literal} WHERE id = {first + 2}")
                connection.execute(
                    f"INSERT INTO a.{table} SELECT n, n, {literal}, 'w' FROM generate_series({first + 10}, {first + 50}) n"
                )
                connection.execute(f"UPDATE a.{table} SET w = 'many', v = {literal} WHERE id > {first + 5}")

    def changes(schema: str) -> list[str]:
        using = {"a.mood": "v::text::{after}", "money": "v::numeric::{after}"}
        return [
            f"ALTER TABLE {schema}.t{number} ALTER v TYPE {each.after}"
            f" USING {using.get(each.before, 'v::{after}').format(after=each.after)}"
            for number, each in enumerate(CHANGES)
        ]

    work("old", 0)
    for table in tables:
        wait_until_equal(pipeline, table)
    for schema in KINDS:
        pipeline.in_south(*changes(schema))
    pipeline.in_north(*changes("a"))
    work("new", 100)
    for table in tables:
        wait_until_equal(pipeline, table)
    for schema in KINDS:
        report = pipeline.home.report(f"REP{schema.upper()}").read_text()
        assert "GGS-00571" in report
        assert f"{schema}.g computes column w itself" in report
        assert f"no value for column x of {schema}.g" in report


RACE_ROWS = 150


def test_no_value_is_converted_to_a_former_type_of_its_column(pipeline: Pipeline) -> None:
    """A table is altered and swapped while rows arrive.

    A trigger records each value as the table received it, with the type of its column at that time."""
    pipeline.in_north("CREATE TABLE a.r (id int PRIMARY KEY, v double precision, exact text)")
    for schema in KINDS:
        pipeline.in_south(
            f"CREATE TABLE {schema}.r (id int PRIMARY KEY, v double precision, exact text)",
            f"CREATE TABLE {schema}_got (id int, kind text, v text, exact text)",
            f"""CREATE FUNCTION {schema}_note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                EXECUTE 'INSERT INTO {schema}_got SELECT $1.id, pg_typeof($1.v)::text, $1.v::text, $1.exact' USING NEW;
                RETURN NULL; END $$""",
            f"CREATE TRIGGER note AFTER INSERT ON {schema}.r FOR EACH ROW EXECUTE FUNCTION {schema}_note()",
            f"ALTER TABLE {schema}.r ENABLE ALWAYS TRIGGER note",
        )
    start_replication(pipeline)
    done = threading.Event()
    failures: list[Exception] = []

    def change(schema: str, kind: str, chance: random.Random) -> str:
        if chance.random() < 0.5:
            return f"ALTER TABLE {schema}.r ALTER v TYPE {kind}"
        return f"""BEGIN; ALTER TABLE {schema}.r RENAME TO old;
            CREATE TABLE {schema}.r (id int PRIMARY KEY, v {kind}, exact text);
            CREATE TRIGGER note AFTER INSERT ON {schema}.r FOR EACH ROW EXECUTE FUNCTION {schema}_note();
            ALTER TABLE {schema}.r ENABLE ALWAYS TRIGGER note;
            DROP TABLE {schema}.old; COMMIT"""

    def disturb(schema: str) -> None:
        chance = random.Random(schema)
        try:
            with psycopg.connect(pipeline.south, autocommit=True) as connection:
                while not done.wait(chance.uniform(0.01, 0.15)):
                    connection.execute(change(schema, chance.choice(["real", "double precision"]), chance))
        except psycopg.Error as error:
            failures.append(error)

    threads = [threading.Thread(target=disturb, args=(schema,)) for schema in KINDS]
    for thread in threads:
        thread.start()
    try:
        numbers = itertools.count()
        with psycopg.connect(pipeline.north, autocommit=True) as connection:

            def insert_until_each_target_had_both_types() -> bool:
                for row in itertools.islice(numbers, RACE_ROWS):
                    value = f"0.1234567890{row:05d}"
                    connection.execute(f"INSERT INTO a.r VALUES ({row}, {value}, {value}::float8::text)")
                    done.wait(0.01)
                types = (f"SELECT count(DISTINCT kind) FROM {schema}_got" for schema in KINDS)
                return all(pipeline.in_south(counted) == [(2,)] for counted in types)

            until("each target had rows of both types", insert_until_each_target_had_both_types)
        rows = next(numbers)
        for schema in KINDS:
            count = f"SELECT count(*) FROM {schema}_got"
            until(f"all rows of {schema}", lambda count=count: pipeline.in_south(count)[0][0] >= rows)  # type: ignore[misc]
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert not failures
    source = pipeline.in_north("SELECT md5(string_agg(id || exact, ';' ORDER BY id)) FROM a.r")
    for schema in KINDS:
        assert pipeline.in_south(f"SELECT md5(string_agg(id || exact, ';' ORDER BY id)) FROM {schema}_got") == source
        wrong = "v <> CASE kind WHEN 'real' THEN exact::real::text ELSE exact END"
        counts = f"SELECT count(*) FILTER (WHERE {wrong}), count(DISTINCT kind) FROM {schema}_got"
        assert pipeline.in_south(counts) == [(0, 2)]
