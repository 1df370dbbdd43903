"""Strings that are equal but not identical: keys and rows with nondeterministic collations, and ICU sort orders."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from pipelines import REP1, Pipeline
from processes import until

COLLATIONS = """
CREATE COLLATION {s}.nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE COLLATION {s}.natural (provider = icu, locale = 'de-u-kn');
"""
FOLDS = {
    "citext": ("CREATE EXTENSION citext;", "citext", "citext", "text"),
    "icu": (COLLATIONS, "text COLLATE {s}.nocase", "varchar(20) COLLATE {s}.nocase", "text COLLATE {s}.natural"),
}
"""Ways to make 'abc' equal to 'ABC': setup, a long and a short column type, and one that only sorts that way."""
TABLES = """
CREATE TABLE {s}.folded (word {long} PRIMARY KEY, n int);
CREATE TABLE {s}.coded (id int PRIMARY KEY, code {short} NOT NULL UNIQUE);
CREATE TABLE {s}.child (id int PRIMARY KEY, word {long} REFERENCES {s}.folded);
CREATE TABLE {s}.loose (word {long}, n int);
CREATE TABLE {s}.counted (word {ordered} PRIMARY KEY, n int);
"""
KINDS = {"classic": "", "parallel": "PARALLEL, "}


@pytest.fixture(params=FOLDS)
def fold(request: pytest.FixtureRequest, north: str) -> str:
    if request.param == "icu":
        with psycopg.connect(north) as connection:
            try:
                connection.execute("CREATE COLLATION tried (provider = icu, locale = 'und')")
            except psycopg.errors.FeatureNotSupported:
                pytest.skip("this PostgreSQL was built without ICU")
            connection.rollback()
    return str(request.param)


@pytest.fixture(params=KINDS)
def pipeline(request: pytest.FixtureRequest, tmp_path: Path, north: str, south: str, fold: str) -> Iterator[Pipeline]:
    pipeline = Pipeline(tmp_path / "home", north, south)
    first, *columns = FOLDS[fold]
    for schema, run in (("a", pipeline.in_north), ("b", pipeline.in_south)):
        long, short, ordered = (column.format(s=schema) for column in columns)
        run(first.format(s=schema) + TABLES.format(s=schema, long=long, short=short, ordered=ordered))
    pipeline.in_north("CREATE TABLE a.plain (word text PRIMARY KEY, n int)")
    pipeline.in_south(f"CREATE TABLE b.plain (word {FOLDS[fold][1].format(s='b')} PRIMARY KEY, n int)")
    pipeline.in_north("ALTER TABLE a.loose REPLICA IDENTITY FULL")
    pipeline.write("rep1", "REPLICAT rep1\nUSERIDALIAS south\nLOOK_AHEAD_TRANSACTIONS 1000\nMAP a.*, TARGET b.*;\n")
    pipeline.add("a.*", KINDS[request.param])
    pipeline.start("ext1")
    yield pipeline
    pipeline.close()


def wait_and_compare(pipeline: Pipeline, *names: str) -> None:
    """Wait for the last row; then assert that both sides have the same bytes."""
    pipeline.in_north("INSERT INTO a.items VALUES (777, 'end', 0)")
    until("the last row arrives", lambda: pipeline.in_south("SELECT count(*) FROM b.items WHERE id = 777")[0][0] == 1)
    for name in names:
        source = pipeline.in_north(f'SELECT t::text FROM a.{name} t ORDER BY t::text COLLATE "C"')
        until(
            f"{name} has the same rows",
            lambda name=name, source=source: (  # type: ignore[misc]
                pipeline.in_south(f'SELECT t::text FROM b.{name} t ORDER BY t::text COLLATE "C"') == source
            ),
            20,
        )


def test_a_key_is_found_in_any_case(pipeline: Pipeline) -> None:
    """Single rows and many at once: updated, changed in case, deleted, and inserted again in another case."""
    for table in ("folded", "counted", "plain"):
        pipeline.in_north(
            f"INSERT INTO a.{table} SELECT 'Word' || g, g FROM generate_series(1, 60) g",
            f"UPDATE a.{table} SET n = n + 1",
            f"UPDATE a.{table} SET word = upper(word) WHERE n % 2 = 0",
            f"UPDATE a.{table} SET n = n + 1",
            f"UPDATE a.{table} SET word = lower(word) WHERE word = 'WORD7'",
            f"DELETE FROM a.{table} WHERE n % 3 = 0",
            f"INSERT INTO a.{table} SELECT 'woRD' || g, -g FROM generate_series(1, 60) g ON CONFLICT DO NOTHING"
            if table != "plain"
            else f"INSERT INTO a.{table} VALUES ('other', 1)",
        )
    pipeline.in_south("UPDATE b.plain SET word = word")
    pipeline.start("rep1")
    wait_and_compare(pipeline, "folded", "counted", "plain")


def test_of_equal_rows_without_a_key_the_identical_one_is_changed(pipeline: Pipeline) -> None:
    """The table has both 'abc' and 'ABC', and one of them is updated or deleted."""
    pipeline.in_north(
        "INSERT INTO a.loose VALUES ('abc', 1), ('ABC', 1), ('Abc', 1), ('abc', 1)",
        "DELETE FROM a.loose WHERE word::text COLLATE \"C\" = 'Abc'",
        "UPDATE a.loose SET n = 5 WHERE word::text COLLATE \"C\" = 'ABC'",
        "DELETE FROM a.loose WHERE ctid = (SELECT max(ctid) FROM a.loose WHERE word::text COLLATE \"C\" = 'abc')",
    )
    pipeline.start("rep1")
    wait_and_compare(pipeline, "loose")


def test_transactions_with_equal_keys_keep_their_order(pipeline: Pipeline) -> None:
    """Small transactions use the same few keys, unique codes and parents repeatedly, each time in another case."""
    chance = random.Random(11)
    with psycopg.connect(pipeline.north, autocommit=True) as connection:
        for number in range(150):
            word = "".join(chance.choice((letter.upper(), letter)) for letter in chance.choice(("abc", "xyz", "mno")))
            connection.execute("DELETE FROM a.child WHERE word = %s", [word])
            connection.execute("DELETE FROM a.folded WHERE word = %s", [word])
            connection.execute("INSERT INTO a.folded VALUES (%s, %s)", [word, number])
            connection.execute("INSERT INTO a.child VALUES (%s, %s)", [number, word.swapcase()])
            connection.execute("DELETE FROM a.coded WHERE code = %s", [word])
            connection.execute("INSERT INTO a.coded VALUES (%s, %s)", [number, word])
    pipeline.start("rep1")
    wait_and_compare(pipeline, "folded", "child", "coded")


def test_two_keys_that_are_equal_in_the_target_are_reported(pipeline: Pipeline) -> None:
    pipeline.in_north("INSERT INTO a.plain VALUES ('abc', 1)", "INSERT INTO a.plain VALUES ('ABC', 2)")
    pipeline.start("rep1")
    report = pipeline.abended_report(REP1)
    assert "plain_pkey" in report
    assert pipeline.in_south("SELECT word, n FROM b.plain") == [("abc", 1)]
