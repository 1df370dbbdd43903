"""COMPARE between MariaDB tables, and between PostgreSQL and MariaDB."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from all_types import KINDS, create_table, random_row
from cli.shell import Shell
from mariadb_servers import EXACT_TEXTS, UUID, execute, numbers, schema_of

from ggshell.connectors.mysql.compare_side import MysqlComparison
from ggshell.connectors.mysql.session import connect as connect_mariadb
from ggshell.connectors.postgres.compare_side import PostgresComparison
from ggshell.connectors.postgres.session import connect
from ggshell.pipeline.compare.drill import Pair, walk
from ggshell.pipeline.compare.tables import ComparedTable, compare_tables
from ggshell.types import TableName

POSTGRES = """CREATE TABLE t (id int PRIMARY KEY, big numeric, small smallint, flag boolean, ratio double precision, half real,
    name text, fixed char(5), data bytea, day date, at time(6), moment timestamp(6), zoned timestamptz(3), doc jsonb,
    raw json, bits bit(4), uid uuid, took interval)"""
MARIADB = f"""CREATE TABLE t (id int PRIMARY KEY, big decimal(65,10), small smallint, flag tinyint(1), ratio double, half float,
    name varchar(100), fixed char(5), data blob, day date, at time(6), moment datetime(6), zoned timestamp(3) NULL, doc json,
    raw json, bits bit(4), uid {UUID}, took time(6))"""
ROWS = (
    (1, "0", 0, True, 0.0, 0.1, "Zoë 😀", "ab", b"\0\xff", "2024-02-29", "23:59:59.999999", "1000-01-01 00:00:00",
     "2024-03-31 01:30:00.123", '{"a": [1, null]}', '{"b":  2}', "0101", "6ccd780c-baba-1026-9564-5b8c656024db", "00:00:00"),
    (2, "-99999999999999999999.0000000001", -32768, False, 1e-7, -2.5e30, "it's \\ \n", "", b"", "9999-12-31", "00:00:00",
     "9999-12-31 23:59:59.999999", "1970-01-01 00:00:01", "[]", "[]", "1111", None, "-837:59:59.5"),
    (3, "12.50", 5, None, -1.7976931348623157e308, 1.5e-10, "", "x", b"x", None, None, None, None, None, None, None, None,
     "100:00:00.000001"),
    (4, *[None] * 17),
)  # fmt: skip
NAMES = "id, big, small, flag, ratio, half, name, fixed, data, day, at, moment, zoned, doc, raw, bits, uid, took"


@pytest.fixture
def both(north: str, mariadb: str) -> Iterator[tuple[PostgresComparison, MysqlComparison]]:
    """The same rows in a table of PostgreSQL and a table of MariaDB."""
    marks = ", ".join(["%s"] * 18)
    with connect(north) as here, closing(connect_mariadb(mariadb)) as there:
        here.execute(POSTGRES)
        execute(mariadb, MARIADB)
        with there.cursor() as cursor:
            for row in ROWS:
                here.execute(f"INSERT INTO t ({NAMES}) VALUES ({marks})", row)
                bits = None if row[15] is None else int(str(row[15]), 2)
                cursor.execute(f"INSERT INTO t ({NAMES}) VALUES ({marks})", (*row[:15], bits, *row[16:]))
            here.execute("INSERT INTO t (id, name) SELECT n, 'name ' || n FROM generate_series(100, 1099) n")
            cursor.execute(f"INSERT INTO t (id, name) SELECT seq, CONCAT('name ', seq) FROM {numbers(100, 1099)}")
        yield PostgresComparison(here), MysqlComparison.of(there, mariadb)


def _compared(databases: Any, pairs: list[tuple[TableName, TableName]]) -> ComparedTable:
    (found,) = compare_tables(databases, pairs, 0, lambda _: False)
    assert found.problem == ""
    return found


def test_equal_rows_of_all_families_are_equal_in_both_directions(
    both: tuple[PostgresComparison, MysqlComparison],
) -> None:
    here, there = both
    names = TableName("public", "t"), TableName(schema_of(there.login), "t")
    for databases, pair in (((here, there), names), ((there, here), names[::-1])):
        found = _compared(databases, [pair])
        assert [(each.key, each.source, each.target) for each in found.differences] == []
        assert (found.source_rows, found.target_rows) == (1004, 1004)


@pytest.mark.parametrize(
    ("change", "keys"),
    [
        ("UPDATE t SET name = 'other' WHERE id = 100", [("100",)]),
        ("UPDATE t SET name = 'NAME 100' WHERE id = 100", [("100",)]),
        ("UPDATE t SET ratio = 1.0000001e-7 WHERE id = 2", [("2",)]),
        ("UPDATE t SET data = X'00FE', moment = NULL WHERE id = 1", [("1",)]),
        ("DELETE FROM t WHERE id IN (3, 1099)", [("3",), ("1099",)]),
        ("INSERT INTO t (id) VALUES (5), (-5)", [("-5",), ("5",)]),
    ],
)
def test_every_difference_is_found(
    both: tuple[PostgresComparison, MysqlComparison], change: str, keys: list[tuple[str]]
) -> None:
    here, there = both
    execute(there.login, change)
    pair = TableName("public", "t"), TableName(schema_of(there.login), "t")
    assert [each.key for each in _compared((here, there), [pair]).differences] == keys
    columns = here.columns(pair[0]), there.columns(pair[1])
    sides = Pair(here.side(pair[0], *columns), there.side(pair[1], *columns))
    try:
        assert sorted(each.key for part in walk(sides, 100, 8) for each in part.differences) == sorted(keys)
    finally:
        sides.close()


def test_tables_without_a_key_and_with_keys_of_text_are_compared(north: str, mariadb: str) -> None:
    keys = ["a", "B", "b", "ä", "é1", "日本", "😀", ""]
    with connect(north) as here, closing(connect_mariadb(mariadb)) as there:
        here.execute("CREATE TABLE k (a text, b date, PRIMARY KEY (a, b)); CREATE TABLE u (a text, b int)")
        execute(
            mariadb,
            f"CREATE TABLE k (a varchar(9) COLLATE {EXACT_TEXTS}, b date, PRIMARY KEY (a, b))",
            "CREATE TABLE u (a varchar(9), b int)",
        )
        with there.cursor() as cursor:
            for key in keys:
                here.execute("INSERT INTO k VALUES (%s, '2024-01-01')", [key])
                cursor.execute("INSERT INTO k VALUES (%s, '2024-01-01')", [key])
            here.execute("INSERT INTO u VALUES ('x', 1), ('x', 1), ('y', NULL)")
            cursor.execute("INSERT INTO u VALUES ('y', NULL), ('x', 1), ('x', 1), ('x', 1)")
        databases = PostgresComparison(here), MysqlComparison.of(there, mariadb)
        schema = schema_of(mariadb)
        assert not _compared(databases, [(TableName("public", "k"), TableName(schema, "k"))]).differences
        columns = [
            each.columns(TableName(owner, "k")) for each, owner in zip(databases, ("public", schema), strict=True)
        ]
        sides = [
            each.side(TableName(owner, "k"), *columns)  # type: ignore[arg-type]
            for each, owner in zip(databases, ("public", schema), strict=True)
        ]
        assert not [part for part in walk(Pair(*sides), 2, 2) if part.differences]  # type: ignore[arg-type]
        (extra,) = _compared(databases, [(TableName("public", "u"), TableName(schema, "u"))]).differences
        assert (extra.source, extra.target) == (None, ("x", "1"))


@pytest.fixture
def long_values(north: str, mariadb: str, small_packets: int) -> Iterator[Any]:
    """Equal rows with values whose texts exceed max_allowed_packet: in PostgreSQL, and in two tables of MariaDB."""
    size = small_packets * 3 // 4
    with connect(north) as here, closing(connect_mariadb(mariadb)) as there:
        here.execute("CREATE TABLE one (id int PRIMARY KEY, b bytea, c text, d text, e text)")
        here.execute(
            "INSERT INTO one SELECT 1, decode(repeat('00ff', %s), 'hex'), repeat('é', %s), repeat('d', %s), e"
            " FROM (SELECT '\\x' || repeat('ee', %s) AS e) x",
            [size // 2, size // 2, size, size],
        )
        for table in ("one", "two"):
            execute(
                mariadb,
                f"CREATE TABLE {table} (id int PRIMARY KEY, b longblob, c longtext, d longtext, e longblob)",
                f"INSERT INTO {table} VALUES (1, REPEAT(X'00FF', {size // 2}), REPEAT('é', {size // 2}),"
                f" REPEAT('d', {size}), REPEAT(X'EE', {size}))",
            )
        yield PostgresComparison(here), MysqlComparison.of(there, mariadb)


@pytest.mark.parametrize("column", ["b", "c", "d"])
def test_values_longer_than_max_allowed_packet_are_compared(
    long_values: tuple[PostgresComparison, MysqlComparison], column: str
) -> None:
    """Regression: the text of such a row was NULL, which the sum of a range ignores."""
    here, there = long_values
    execute(there.login, "UPDATE one SET e = ''", "UPDATE two SET e = ''")
    here.connection.execute("UPDATE one SET e = '\\x'")
    schema = schema_of(there.login)
    own = TableName(schema, "one"), TableName(schema, "two")
    others = TableName("public", "one"), TableName(schema, "two")
    with closing(connect_mariadb(there.login)) as beside:
        pairs = [((MysqlComparison.of(beside, there.login), there), own), ((here, there), others)]
        assert [_compared(databases, [names]).differences for databases, names in pairs] == [(), ()]
        execute(there.login, f"UPDATE two SET {column} = CONCAT('x', SUBSTR({column}, 2))")
        for databases, names in pairs:
            (found,) = _compared(databases, [names]).differences
            rows = zip("ibcde", found.source or (), found.target or (), strict=True)
            different = {name: (source, target) for name, source, target in rows if source != target}
            assert list(different) == [column]
            assert None not in different[column]


def test_a_long_binary_value_differs_from_its_digits_as_a_text(
    long_values: tuple[PostgresComparison, MysqlComparison],
) -> None:
    """The server cannot make the digits, and no value counts as equal that was not compared."""
    here, there = long_values
    pair = TableName("public", "one"), TableName(schema_of(there.login), "one")
    (found,) = _compared((here, there), [pair]).differences
    assert found.target is not None
    assert found.target[4] == "a binary value whose digits are longer than max_allowed_packet"


def test_tables_whose_names_differ_in_case_are_different_tables(mariadb: str) -> None:
    execute(
        mariadb,
        "CREATE TABLE tab (a int PRIMARY KEY, b int)",
        "CREATE TABLE TAB (a int, b int PRIMARY KEY)",
        "CREATE TABLE Tab (a int, b int, PRIMARY KEY (b, a))",
    )
    with closing(connect_mariadb(mariadb)) as connection:
        side = MysqlComparison.of(connection, mariadb)
        found = {name: side.columns(TableName(schema_of(mariadb), name)) for name in ("tab", "TAB", "Tab")}
    assert {name: (each.names, each.key_names) for name, each in found.items()} == {
        "tab": (("a", "b"), ("a",)),
        "TAB": (("a", "b"), ("b",)),
        "Tab": (("a", "b"), ("b", "a")),
    }


def test_a_text_that_is_not_a_document_differs_from_null(north: str, mariadb: str) -> None:
    with connect(north) as here, closing(connect_mariadb(mariadb)) as there:
        here.execute("CREATE TABLE doc (id int PRIMARY KEY, d jsonb)")
        here.execute("INSERT INTO doc VALUES (1, NULL)")
        execute(mariadb, "CREATE TABLE doc (id int PRIMARY KEY, d longtext)", "INSERT INTO doc VALUES (1, 'none')")
        pair = TableName("public", "doc"), TableName(schema_of(mariadb), "doc")
        (found,) = _compared((PostgresComparison(here), MysqlComparison.of(there, mariadb)), [pair]).differences
        assert (found.source, found.target) == (("1", None), ("1", "none"))


def test_a_repair_script_makes_mariadb_tables_equal(mariadb: str, shell: Shell) -> None:
    schema, chance = schema_of(mariadb), random.Random(5)
    shell.home.ensure()
    execute(mariadb, create_table("one"), create_table("two"))
    marks = ", ".join(["%s"] * (len(KINDS) + 1))
    with closing(connect_mariadb(mariadb)) as connection, connection.cursor() as cursor:
        for number in range(60):
            row = [number, *random_row(chance)]
            cursor.execute(f"INSERT INTO one VALUES ({marks})", row)
            if number % 3:
                cursor.execute(
                    f"INSERT INTO two VALUES ({marks})", [number, *random_row(chance)] if number % 2 else row
                )
            cursor.execute("INSERT INTO two (id) VALUES (%s)", [1000 + number])
    statement = f"COMPARE {mariadb} TO {mariadb}, TABLE {schema}.one, INTO {schema}.two, LAG 0 SEC"
    first = shell.batch(f"{statement}, REPAIR fix.sql")
    assert "100 rows differ" in first.err, first.out + first.err
    script = (shell.home.root / "fix.sql").read_text()
    with closing(connect_mariadb(mariadb)) as connection, connection.cursor() as cursor:
        for line in script.replace(";\n", ";\n\0").split("\0"):
            text = "\n".join(part for part in line.splitlines() if not part.startswith("--"))
            if text.strip():
                cursor.execute(text)
    answer = shell.batch(statement)
    assert answer.code == 0, answer.out + answer.err
