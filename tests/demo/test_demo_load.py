"""Schemas, rows and the initial copy."""

from __future__ import annotations

import psycopg
from same_rows import unequal_tables

from ggshell.demo import load
from ggshell.demo.servers import DemoServers


def test_a_hundred_thousand_rows_satisfy_the_foreign_keys(demo: DemoServers) -> None:
    with psycopg.connect(demo.dsn("north")) as connection:
        counts = connection.execute(
            """SELECT (SELECT sum(n_live_tup) FROM pg_stat_user_tables WHERE schemaname = 'shop'),
                      (SELECT count(*) FROM pg_constraint WHERE contype = 'f' AND conparentid = 0)"""
        ).fetchone()
    assert counts is not None
    assert counts[0] >= 100_000
    assert counts[1] >= 8


def test_the_same_seed_gives_the_same_rows(demo: DemoServers) -> None:
    with psycopg.connect(demo.dsn("south"), autocommit=True) as connection:
        for schema in ("again", "and_again"):
            load.make_schema(connection, schema)
            load.load_rows(connection, schema, seed=11)
        unequal = unequal_tables(demo.dsn("south"), demo.dsn("south"), "again", "and_again")
        connection.execute("DROP SCHEMA again, and_again CASCADE")
    assert unequal == {}


def test_an_existing_schema_is_kept(demo: DemoServers) -> None:
    with psycopg.connect(demo.dsn("north"), autocommit=True) as connection:
        assert load.make_schema(connection, load.SCHEMA) is False
        assert load.is_empty(connection) is False


def test_the_copy_equals_its_source_and_can_be_repeated(demo: DemoServers) -> None:
    pairs = ((load.SCHEMA, load.SCHEMA), (load.SCHEMA, load.MIRROR))
    for _ in range(2):
        assert load.copy_rows(demo.dsn("north"), demo.dsn("south"), pairs) > 200_000
    for schema in (load.SCHEMA, load.MIRROR):
        assert unequal_tables(demo.dsn("north"), demo.dsn("south"), load.SCHEMA, schema) == {}
