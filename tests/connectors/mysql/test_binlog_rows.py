"""The rows of the binary log: equal to what the server selects, and to what mariadb-binlog prints of the same log."""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from all_types import KINDS, Kind, create_table, expressions, random_row
from log_files import Row, rows_of, run_of
from mariadb_servers import IS_MYSQL, execute, log_status, schema_of

from ggshell.connectors.mysql import encode
from ggshell.connectors.mysql.session import connect
from ggshell.demo.mariadb_server import MariadbServer, find_program
from ggshell.record.image_rules import DEFAULT_IMAGES, ImageRules, Unified

ROWS = 40


def next_log(login: str, server: MariadbServer) -> Path:
    """Begin a new file of the log, and return its path."""
    execute(login, "FLUSH BINARY LOGS")
    name, _ = log_status(login)
    return server.data / str(name)


@pytest.fixture
def changed(mariadb: str, mariadb_server: MariadbServer, request: pytest.FixtureRequest) -> Iterator[tuple[str, Path]]:
    """A login and a file of the log with inserts, updates and deletes of a table with all types."""
    file, chance = next_log(mariadb, mariadb_server), random.Random(7)
    with closing(connect(mariadb)) as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = 'ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO'")
        cursor.execute(create_table("every"))
        places = ", ".join(["%s"] * (len(KINDS) + 1))
        for number in range(request.config.getoption("--rounds") * 100 or ROWS):
            cursor.execute(f"INSERT INTO every VALUES ({places})", [number, *random_row(chance)])
        for number in range(0, ROWS, 3):
            chosen = chance.sample(range(len(KINDS)), 5)
            assigned = ", ".join(f"k{column} = %s" for column in chosen)
            values = [KINDS[column].value(chance) for column in chosen]
            cursor.execute(f"UPDATE every SET {assigned} WHERE id = %s", [*values, number])
        cursor.execute("DELETE FROM every WHERE id % 7 = 0")
    yield mariadb, file


def _last(rows: list[Row]) -> dict[int, dict[str, bytes | None]]:
    """The rows of the table after all changes."""
    found: dict[int, dict[str, bytes | None]] = {}
    for row in rows:
        number = int(row.values["id"] or b"")
        if row.operation == "DELETE":
            assert found.pop(number) == row.values
        elif row.operation == "UPDATE0":
            assert found[number] == row.values
        else:
            found[number] = row.values
    return found


def test_every_value_is_the_text_that_the_server_selects(changed: tuple[str, Path]) -> None:
    login, file = changed
    logged = _last([row for row in rows_of(file) if row.table.name == "every"])
    selected = execute(login, f"SELECT id, {expressions()} FROM every")
    assert len(selected) == len(logged) > ROWS // 2
    for number, *values in selected:
        for column, value in enumerate(values):
            text = value if value is None or isinstance(value, bytes) else str(value).encode()
            assert logged[number][f"k{column}"] == text, (number, KINDS[column].type)


RULES = [
    DEFAULT_IMAGES,
    ImageRules(whole_updates=True, whole_deletes=True),
    ImageRules(supplemental=True, befores=True),
    ImageRules(unified=Unified.COMPACT),
    ImageRules(unified=Unified.FULL),
]


@pytest.mark.parametrize("images", RULES)
def test_rows_encoded_one_by_one_are_those_of_a_column_at_a_time(
    changed: tuple[str, Path], images: ImageRules, monkeypatch: pytest.MonkeyPatch
) -> None:
    login, file = changed
    execute(
        login, "SET SESSION binlog_row_image = MINIMAL", "UPDATE every SET id = id + 1000, k0 = NULL WHERE id % 5 = 1"
    )

    def encoded(few: int) -> list[tuple[int, bytes, bool]]:
        monkeypatch.setattr(encode, "FEW_ROWS", few)
        batch = encode.encode_runs([run_of(file, images)])
        assert batch is not None
        befores = [False] * len(batch) if batch.befores is None else batch.befores.tolist()
        return [(int(batch.io_type[row]), bytes(batch.data(row)), befores[row]) for row in range(len(batch))]

    assert encoded(1 << 30) == encoded(0)


_LINE = re.compile(rb"###   @(\d+)=(.*?) /\* \w")


_LETTERS = {8: b"\\b", 9: b"\\t", 10: b"\\n", 12: b"\\f", 13: b"\\r", 39: b"\\'", 92: b"\\\\"} if IS_MYSQL else {}
"""The bytes that mysqlbinlog prints with a backslash."""


def _escaped(value: bytes) -> bytes:
    """A string as mariadb-binlog or mysqlbinlog prints it."""
    return b"".join(_LETTERS.get(byte) or (b"\\x%02x" % byte if byte < 0x20 else bytes([byte])) for byte in value)


def _same(kind: Kind, ours: bytes | None, printed: bytes) -> bool:
    if ours is None or printed == b"NULL":
        return ours is None and printed == b"NULL"
    expected = kind.log(ours.decode())
    if printed.startswith(b"b'"):
        digits = printed[2:-1].decode()
        return digits == expected or int(digits, 2) == expected
    if printed.startswith(b"'"):
        return printed[1:-1] == (_escaped(expected) if isinstance(expected, bytes) else str(expected).encode())
    text = printed.strip().decode()
    if isinstance(expected, float):
        return float(text) == pytest.approx(expected, rel=1e-6 if kind.type == "float" else 0, abs=0)
    signed, _, unsigned = text.partition(" (")
    return str(expected) in (signed, unsigned.rstrip(")"))


def test_every_row_image_is_the_one_that_mariadb_binlog_prints(
    changed: tuple[str, Path], mariadb_server: MariadbServer
) -> None:
    login, file = changed
    program = find_program("mysqlbinlog" if IS_MYSQL else "mariadb-binlog", mariadb_server.binaries)
    command = [program, "--no-defaults", "-vv", "--base64-output=decode-rows", "-d", schema_of(login), file]
    printed = subprocess.run(command, capture_output=True, check=True).stdout
    images = re.split(rb"### (?:SET|WHERE)\n", printed)[1:]
    ours = [row for row in rows_of(file) if row.table.name == "every"]
    assert len(images) == len(ours)
    for image, row in zip(images, ours, strict=True):
        values = {int(number): text for number, text in _LINE.findall(image)}
        assert len(values) == len(KINDS) + 1
        for column, kind in enumerate(KINDS):
            if IS_MYSQL and kind.type == "json":
                continue  # mysqlbinlog prints documents without the quotes of texts
            mine = row.values[f"k{column}"]
            assert _same(kind, mine, values[column + 2]), (kind.type, mine, values[column + 2])
