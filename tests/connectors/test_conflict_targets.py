"""The same conflicts in PostgreSQL, in DuckDB and in memory, compared with a model of the rules in the manual."""

from __future__ import annotations

import random
from pathlib import Path

import psycopg
import pytest
from pipeline.apply.hand_made import BEGIN
from pipeline.apply.test_two_sites import Workload, random_rules
from pipeline.apply.two_sites import COMPACT, FULL, Change, Rules, Site, Values

from ggshell.connectors.duckdb import session as duckdb_session
from ggshell.connectors.duckdb.target import DuckTarget
from ggshell.connectors.postgres.target import PostgresTarget
from ggshell.pipeline.apply.target import Target

CREATE = "CREATE TABLE t (id integer PRIMARY KEY, name text, price bigint, rank bigint, changed timestamp)"


class Stored:
    """The table t in a database."""

    def __init__(self, target: Target, table: str) -> None:
        self.target, self.table = target, table

    def execute(self, statement: str) -> list[tuple[object, ...]]:
        target = self.target
        if isinstance(target, DuckTarget):
            return duckdb_session.execute(target._connection, statement)
        assert isinstance(target, PostgresTarget)
        with psycopg.connect(target._conninfo, autocommit=True) as connection:
            cursor = connection.execute(statement)  # type: ignore[call-overload]
            return cursor.fetchall() if cursor.description else []

    def fill(self, rows: dict[str, Values]) -> None:
        self.execute("DELETE FROM t")
        for row in rows.values():
            values = ("NULL" if value is None else f"'{value}'" for value in row.values())
            self.execute(f"INSERT INTO t VALUES ({', '.join(values)})")

    @property
    def rows(self) -> dict[str, Values]:
        found = self.execute("SELECT id::text, name, price::text, rank::text, changed::text FROM t")
        names = ("id", "name", "price", "rank", "changed")
        return {str(row[0]): dict(zip(names, row, strict=True)) for row in found}  # type: ignore[arg-type]


def differing(rng: random.Random) -> tuple[Workload, dict[str, Values], dict[str, Values]]:
    """The rows of a source, and the rows of a target that differ from them in places."""
    application = Workload(rng, "insert update delete move", wild=True)
    source = {str(row["id"]): row for row in application.start()}
    target = {key: dict(row) for key, row in source.items() if rng.random() < 0.8}
    for row in target.values():
        row.update({"name": "mine", "rank": rng.choice([None, "9", "11"])} if rng.random() < 0.6 else {})
    return application, source, target


def conflicts(rng: random.Random, stored: Stored, rules: Rules) -> int:
    """Apply changes of a source to differing rows; returns the number of conflicts."""
    images = rng.choice([COMPACT, FULL])
    application, source, target = differing(rng)
    there = Site(rules, images)
    there.fill(source)
    here = Site(rules, images)
    here.fill(target)
    stored.fill(target)
    real = Site(rules, images, rng.choice([1, 1000]), real=(stored.target, stored.table))
    for _ in range(25):
        change = application.change(there.rows)
        if isinstance(change, Change):
            there.write(change)
    here.run(there, 100)
    real.run(there, 100)
    assert stored.rows == here.rows
    assert [each.conflict for each in real.answered] == [each.conflict for each in here.answered]
    return len(real.answered)


def rounds(request: pytest.FixtureRequest) -> int:
    return 6 * max(1, int(request.config.getoption("--rounds")))


def test_postgresql_resolves_conflicts_by_the_rules(request: pytest.FixtureRequest, south: str) -> None:
    with psycopg.connect(south, autocommit=True) as connection:
        connection.execute(CREATE)
    found = 0
    for seed in range(rounds(request)):
        rng = random.Random(seed)
        stored = Stored(PostgresTarget(south, "rep1", "/home", None, BEGIN), "public.t")
        try:
            found += conflicts(rng, stored, random_rules(rng))
        finally:
            stored.target.close()
    assert found > 3 * rounds(request)


@pytest.mark.slow
def test_duckdb_resolves_conflicts_by_the_rules(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    login = duckdb_session.login_of(tmp_path / "t.duckdb")
    connection = duckdb_session.connect(login)
    duckdb_session.execute(connection, CREATE)
    connection.close()
    found = 0
    for seed in range(rounds(request)):
        rng = random.Random(seed)
        stored = Stored(DuckTarget(login, "rep1", "/home", None, BEGIN), "main.t")
        try:
            found += conflicts(rng, stored, random_rules(rng))
        finally:
            stored.target.close()
    assert found > 3 * rounds(request)
