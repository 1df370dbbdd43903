"""The initial load from MariaDB: the same text for each value as the log has, as of one position of the log."""

from __future__ import annotations

import random
from contextlib import closing

import pytest
from all_types import KINDS, create_table, random_row
from log_files import rows_of
from mariadb_servers import IS_MYSQL, execute, log_status, schema_of

from ggshell.connectors.mysql.session import connect
from ggshell.connectors.mysql.table_load import MysqlTables
from ggshell.demo.mariadb_server import MariadbServer
from ggshell.record.image import decode_image
from ggshell.types import TableName

ROWS = 60
SHAPES = "CREATE TABLE shape (id INT PRIMARY KEY, g GEOMETRY, f FLOAT, d DOUBLE, n NUMERIC(8,3) INVISIBLE DEFAULT 1.5)"


def _loaded(login: str, table: str) -> dict[bytes | None, dict[str, bytes | None]]:
    """The rows of a table as an initial load has them, by their first column."""
    found: dict[bytes | None, dict[str, bytes | None]] = {}
    snapshot = MysqlTables(login).snapshot("load1", lambda _: True)
    assert snapshot is not None
    with closing(snapshot):
        (chosen,) = snapshot.tables([f"{schema_of(login)}.{table}"], lambda _: True, lambda _: ())
        names = [column.name for column in chosen.definition.columns]
        assert chosen.definition.key == (0,)
        for batch in snapshot.read(1, chosen):
            for row in range(len(batch)):
                values = {names[index]: value for index, value in decode_image(batch.data(row))}
                found[values[names[0]]] = values
    return found


def test_load_and_log_have_the_same_text_for_every_value_of_every_type(
    mariadb: str, mariadb_server: MariadbServer
) -> None:
    execute(mariadb, "FLUSH BINARY LOGS")
    name, _ = log_status(mariadb)
    chance = random.Random(11)
    with closing(connect(mariadb)) as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = 'ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO'")
        cursor.execute(create_table("every"))
        cursor.execute(SHAPES)
        places = ", ".join(["%s"] * (len(KINDS) + 1))
        for number in range(ROWS):
            cursor.execute(f"INSERT INTO every VALUES ({places})", [number, *random_row(chance)])
            wkt = chance.choice(["POINT(1 2)", "LINESTRING(0 0, 1.5 -2)", "POLYGON((0 0, 1 0, 1 1, 0 0))"])
            numbers = [chance.uniform(-1e9, 1e9), chance.uniform(-1e-9, 1e9)]
            cursor.execute(
                "INSERT INTO shape (id, g, f, d) VALUES (%s, ST_GeomFromText(%s, %s), %s, %s)",
                [number, wkt, chance.choice([0, 4326]), *numbers],
            )
    rows = list(rows_of(mariadb_server.data / str(name)))
    for table in ("every", "shape"):
        logged = {row.values["id"]: row.values for row in rows if row.table == TableName(schema_of(mariadb), table)}
        assert len(logged) == ROWS
        loaded = _loaded(mariadb, table)
        for key, values in logged.items():
            assert loaded[key] == values


def test_the_csn_of_a_snapshot_is_before_the_next_transaction(mariadb: str) -> None:
    execute(mariadb, "CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    _, position = log_status(mariadb)
    snapshot = MysqlTables(mariadb).snapshot("load1", lambda _: True)
    assert snapshot is not None
    with closing(snapshot):
        execute(mariadb, "INSERT INTO t VALUES (2)")
        assert snapshot.csn.value & 0xFFFFFFFF == int(position) - 1
        (table,) = snapshot.tables([f"{schema_of(mariadb)}.*"], lambda _: True, lambda _: ())
        assert sum(len(batch) for batch in snapshot.read(1, table)) == 1


def test_a_value_is_loaded_whole_if_its_digits_exceed_max_allowed_packet(mariadb: str, small_packets: int) -> None:
    """Regression: the server returned NULL for the digits of such a value, and the load had NULL."""
    size = small_packets * 3 // 4
    execute(
        mariadb,
        "CREATE TABLE t (id INT PRIMARY KEY, b LONGBLOB NOT NULL, c LONGTEXT CHARACTER SET latin1)",
        f"INSERT INTO t VALUES (1, REPEAT(X'00FF', {size // 2}), REPEAT(X'E9', {size}))",
    )
    (row,) = _loaded(mariadb, "t").values()
    assert row == {"id": b"1", "b": b"\\x" + b"00ff" * (size // 2), "c": "é".encode() * size}


@pytest.mark.skipif(not IS_MYSQL, reason="only MySQL adds primary keys")
def test_a_primary_key_that_the_server_has_added_is_loaded_although_it_is_not_shown(mariadb: str) -> None:
    """Regression: the log has the column, but an initial load and the description of a target did not."""
    shown = "SET GLOBAL show_gipk_in_create_table_and_information_schema"
    added = "SET sql_generate_invisible_primary_key = ON"
    execute(mariadb, added, "CREATE TABLE t (a int)", "INSERT INTO t VALUES (7)", f"{shown} = OFF")
    try:
        assert _loaded(mariadb, "t") == {b"1": {"my_row_id": b"1", "a": b"7"}}
    finally:
        execute(mariadb, f"{shown} = ON")
