"""docs/types.md is made from the tables of the connectors, and each of their examples holds on a server."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import duckdb
import psycopg
import pytest
from mariadb_servers import execute, schema_of

from ggshell.connectors.duckdb.statements import from_text, to_text
from ggshell.connectors.duckdb.types import FROM_MARIADB as TO_DUCKDB
from ggshell.connectors.mysql.column_text import raw_values, source_columns
from ggshell.connectors.mysql.literals import literals_of
from ggshell.connectors.mysql.session import connect
from ggshell.connectors.mysql.target_tables import target_table
from ggshell.connectors.mysql.types import FROM_MARIADB, FROM_POSTGRESQL
from ggshell.connectors.postgres.types import FROM_MARIADB as TO_POSTGRESQL
from ggshell.connectors.registry import type_tables
from ggshell.connectors.type_pairs import Grade, TypePair, page
from ggshell.types import TableName

ROOT = Path(__file__).parents[2]


def test_the_page_is_made_from_the_tables() -> None:
    tables = type_tables()
    assert (ROOT / "docs" / "types.md").read_text() == page(tables), "run scripts/types-page"
    assert Grade.LIMITED in page(tables)
    for pair in (pair for table in tables for pair in table.pairs):
        assert pair.values, pair
        assert pair.grade is not Grade.EXACT or not pair.refused, pair


@pytest.mark.parametrize(
    "pair", [*FROM_POSTGRESQL.pairs, *FROM_MARIADB.pairs], ids=lambda pair: f"{pair.source} {pair.target}"
)
def test_values_arrive_in_mariadb_as_the_page_says(mariadb: str, pair: TypePair) -> None:
    execute(mariadb, f"CREATE TABLE t (c {pair.target})")
    name = TableName(schema_of(mariadb), "t")
    with closing(connect(mariadb, applies=True)) as connection, connection.cursor() as cursor:
        table, (column,) = target_table(connection, name), source_columns(connection, name)
        assert table is not None
        literals = literals_of(pair.source, table.columns[0])

        def insert(value: str) -> None:
            cursor.execute(b"INSERT INTO t VALUES (%s)" % literals([value.encode()])[0])  # type: ignore[arg-type]

        for value, wanted in pair.values.items():
            cursor.execute("DELETE FROM t")
            insert(value)
            with raw_values(connection), connection.cursor() as raw:
                raw.execute(f"SELECT {column.expression} FROM t")
                assert column.text(raw.fetchall()[0][0]) == wanted.encode()
        for value in pair.refused:
            with pytest.raises(Exception, match=r"column|'c'|`c`"):
                insert(value)


@pytest.mark.parametrize("pair", TO_POSTGRESQL.pairs, ids=lambda pair: f"{pair.source} {pair.target}")
def test_values_arrive_in_postgresql_as_the_page_says(north: str, pair: TypePair) -> None:
    with psycopg.connect(north, autocommit=True) as connection:
        connection.execute("SET timezone = 'UTC'")
        for value, wanted in pair.values.items():
            assert connection.execute(f"SELECT %s::text::{pair.target}::text", [value]).fetchall() == [(wanted,)]
        for value in pair.refused:
            with pytest.raises(psycopg.Error):
                connection.execute(f"SELECT %s::text::{pair.target}::text", [value])


@pytest.mark.parametrize("pair", TO_DUCKDB.pairs, ids=lambda pair: f"{pair.source} {pair.target}")
def test_values_arrive_in_duckdb_as_the_page_says(pair: TypePair) -> None:
    with duckdb.connect() as connection:
        connection.execute("SET timezone = 'UTC'")
        query = f"SELECT {to_text('c', pair.target)} FROM (SELECT {from_text('$1::VARCHAR', pair.target, pair.source)} AS c)"
        for value, wanted in pair.values.items():
            assert connection.execute(query, [value]).fetchall() == [(wanted,)]
        for value in pair.refused:
            with pytest.raises(duckdb.Error):
                connection.execute(query, [value]).fetchall()
