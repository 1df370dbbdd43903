"""The script of COMPARE … REPAIR makes the rows of a MariaDB table equal to those of the source, and changes nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing

import pytest
from mariadb_servers import execute, schema_of

from ggshell.connectors.mysql.compare_side import MysqlComparison
from ggshell.connectors.mysql.session import connect
from ggshell.pipeline.compare.tables import ComparedTable, compare_tables
from ggshell.types import TableName

Sides = tuple[MysqlComparison, MysqlComparison]


@pytest.fixture
def sides(mariadb: str) -> Iterator[Sides]:
    with closing(connect(mariadb)) as here, closing(connect(mariadb)) as there:
        yield MysqlComparison.of(here, mariadb), MysqlComparison.of(there, mariadb)


def _compared(sides: Sides) -> ComparedTable:
    names = TableName(schema_of(sides[0].login), "one"), TableName(schema_of(sides[0].login), "two")
    (found,) = compare_tables(sides, [names], 0, lambda _: False)
    assert found.problem == ""
    return found


def _tables(sides: Sides, columns: str, one: str, two: str) -> None:
    """Create the tables one and two with the same columns and these rows."""
    for table, rows in (("one", one), ("two", two)):
        execute(
            sides[0].login,
            f"CREATE TABLE {table} ({columns}) COLLATE utf8mb4_general_ci",
            "SET sql_mode = ''",
            f"INSERT INTO {table} VALUES {rows}",
        )


def _repair(sides: Sides) -> str:
    """Make the tables equal by the script, which is returned."""
    script = sides[1].repair_script([_compared(sides)], "", replicated=True)
    execute(sides[0].login, *(line for line in re.sub(r"(?m)^--.*\n", "", script).split(";\n") if line.strip()))
    assert not _compared(sides).differences
    return script


def test_long_binary_values_are_repaired(sides: Sides, small_packets: int) -> None:
    """Regression: the script set such a value to NULL."""
    size = small_packets // 3
    long = f"REPEAT(X'00FF', {size // 2})"
    columns = "id int PRIMARY KEY, b longblob, c longtext"
    _tables(sides, columns, f"(1, {long}, REPEAT('c', {size})), (2, {long}, 'x')", f"(1, {long}, 'd'), (2, '', 'x')")
    script = _repair(sides)
    assert script.count("MD5(`b`) = ") == 1


def test_a_row_without_a_key_is_removed_by_exactly_its_values(sides: Sides) -> None:
    """Regression: a row that is equal under the collation was removed."""
    _tables(
        sides,
        "a varchar(9), p point",
        "('A', NULL), ('a ', NULL), ('é', NULL)",
        "('A', NULL), ('a', NULL), ('a ', NULL)",
    )
    execute(sides[0].login, "INSERT INTO two VALUES ('e', POINT(1, 2)), ('é', NULL), ('E', POINT(1, 2))")
    _repair(sides)
    assert execute(sides[0].login, "SELECT a FROM two ORDER BY BINARY a") == [("A",), ("a ",), ("é",)]


def test_a_column_that_an_update_renews_keeps_its_value(sides: Sides) -> None:
    columns = "id int PRIMARY KEY, a int, at timestamp NOT NULL DEFAULT '2020-01-01' ON UPDATE CURRENT_TIMESTAMP"
    time = "2021-02-03 04:05:06"
    _tables(sides, columns, f"(1, 1, '{time}'), (2, 2, '{time}')", f"(1, 0, '{time}'), (2, 0, '2022-01-01')")
    _repair(sides)
    assert execute(sides[0].login, "SELECT CAST(at AS CHAR) FROM two") == [(time,), (time,)]


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("(1, 'a', 1), (2, 'B', 1)", "(1, 'b', 1), (2, 'A', 1)"),
        ("(1, 'b', 1), (2, 'c', 1), (3, 'd', 1)", "(1, 'a', 1), (2, 'b', 1), (3, 'c', 1)"),
        ("(1, 'b', 1), (2, 'a', 1)", "(2, 'b', 1), (3, 'a', 1)"),
        ("(1, NULL, 1), (2, NULL, 2), (3, 'a', 1)", "(1, 'a', 1), (2, NULL, 1), (3, NULL, 1)"),
    ],
)
def test_rows_can_exchange_their_unique_values(sides: Sides, one: str, two: str) -> None:
    """Regression: the second row still had the value when the first one took it."""
    _tables(sides, "id int PRIMARY KEY, a varchar(9), b int, UNIQUE (a, b)", one, two)
    _repair(sides)


def test_a_row_with_columns_of_the_target_alone_is_never_removed(sides: Sides) -> None:
    _tables(sides, "id int PRIMARY KEY, a int UNIQUE", "(1, 1), (2, 2)", "(1, 2), (2, 1)")
    execute(sides[0].login, "ALTER TABLE two ADD own int")
    assert "DELETE" not in sides[1].repair_script([_compared(sides)], "", replicated=True)


def test_the_error_value_of_an_enum_is_repaired(sides: Sides) -> None:
    columns = "id int PRIMARY KEY, e enum('x','y') NOT NULL, a varchar(9)"
    _tables(sides, columns, "(1, 0, 'b\\\\n'), (2, 0, 'b'), (3, 'x', 'b')", "(1, 'y', 'b\\\\n'), (3, 0, 'c')")
    _repair(sides)
    assert execute(sides[0].login, "SELECT e + 0 FROM two ORDER BY id") == [(0,), (0,), (1,)]
