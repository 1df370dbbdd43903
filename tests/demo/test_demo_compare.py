"""The comparison finds every difference, and names the first rows."""

from __future__ import annotations

import psycopg
import pytest

from ggshell.demo.compare import CHUNK_ROWS, Difference, TableComparison, compare, merge
from ggshell.errors import NotFoundError

TABLE = "CREATE SCHEMA s; CREATE TABLE s.t (k int PRIMARY KEY, v text); CREATE TABLE s.loose (v text, n numeric)"


def _fill(dsn: str, *statements: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(TABLE)
        connection.execute(f"INSERT INTO s.t SELECT i, 'v' || i FROM generate_series(1, {3 * CHUNK_ROWS}) i")
        connection.execute("INSERT INTO s.loose VALUES ('a', 1), ('a', 1), (NULL, 'NaN')")
        for statement in statements:
            connection.execute(statement)


def _compared(north: str, south: str) -> dict[str, TableComparison]:
    return {table.table: table for table in compare(north, south, source_schema="s", target_schema="s")}


def test_equal_tables_are_equal_whatever_their_physical_order(north: str, south: str) -> None:
    _fill(north, "UPDATE s.t SET v = v WHERE k % 7 = 0")
    _fill(south, "UPDATE s.loose SET v = v WHERE v = 'a'")
    assert all(table.equal for table in _compared(north, south).values())


def test_one_row_each_of_missing_extra_and_changed_is_named(north: str, south: str) -> None:
    _fill(north, "INSERT INTO s.t VALUES (-5, NULL)")
    _fill(south, "INSERT INTO s.t VALUES (-4, '')", "UPDATE s.t SET v = NULL WHERE k = 1")
    table = _compared(north, south)["t"]
    assert not table.equal
    assert [(found.kind, found.key) for found in table.differences] == [
        (Difference.EXTRA, "(-4)"),
        (Difference.MISSING, "(-5)"),
        (Difference.CHANGED, "(1)"),
    ]


def test_null_and_empty_differ(north: str, south: str) -> None:
    _fill(north, "UPDATE s.t SET v = NULL WHERE k = 2")
    _fill(south, "UPDATE s.t SET v = '' WHERE k = 2")
    (found,) = _compared(north, south)["t"].differences
    assert (found.source, found.target) == ("(2,)", '(2,"")')


def test_a_difference_in_a_late_chunk_is_found(north: str, south: str) -> None:
    _fill(north)
    _fill(south, "DELETE FROM s.t WHERE k = 999")
    (found,) = _compared(north, south)["t"].differences
    assert (found.kind, found.key) == (Difference.MISSING, "(999)")


def test_a_table_without_key_counts_its_duplicates(north: str, south: str) -> None:
    _fill(north)
    _fill(south, "INSERT INTO s.loose VALUES ('a', 1)")
    table = _compared(north, south)["loose"]
    assert (table.source_rows, table.target_rows) == (3, 4)
    assert [found.kind for found in table.differences] == [Difference.EXTRA]


def test_a_table_that_the_target_lacks_is_not_equal(north: str, south: str) -> None:
    _fill(north)
    _fill(south, "DROP TABLE s.loose")
    assert [name for name, table in _compared(north, south).items() if not table.equal] == ["loose"]


def test_an_empty_schema_is_an_error_not_a_success(north: str, south: str) -> None:
    with pytest.raises(NotFoundError, match="has no table"):
        compare(north, south, source_schema="nowhere", target_schema="nowhere")


def test_merge_walks_both_sides() -> None:
    found = merge([("a", "1"), ("b", "1"), ("d", "1")], [("b", "2"), ("c", "1"), ("d", "1")])
    assert [(row.kind, row.key) for row in found] == [
        (Difference.MISSING, "a"),
        (Difference.CHANGED, "b"),
        (Difference.EXTRA, "c"),
    ]
