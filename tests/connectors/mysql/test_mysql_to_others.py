"""From MariaDB to PostgreSQL and to DuckDB, through the shell and real processes, with an initial load before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest
from mariadb_home import MariadbHome
from mariadb_servers import execute
from processes import until

from ggshell.home import checkpoint as checkpoints
from ggshell.home.checkpoint import GroupKind
from ggshell.home.credential import CredentialStore

SOURCE = """CREATE TABLE orders (id INT PRIMARY KEY, customer VARCHAR(40), status ENUM('new', 'paid', 'sént'),
    amount DECIMAL(12,2), ratio DOUBLE, created DATETIME(6), changed TIMESTAMP(3) NULL, day DATE, flag BIT(1), data BLOB,
    big BIGINT UNSIGNED, document JSON) CHARACTER SET utf8mb4"""
TARGET = """CREATE TABLE shop.orders (id int PRIMARY KEY, customer text, status text, amount numeric(12,2),
    ratio double precision, created timestamp(6), changed timestamptz(3), day date, flag bit(1), data bytea,
    big numeric(20), document jsonb)"""
FILE = """CREATE TABLE shop.orders (id int PRIMARY KEY, customer text, status text, amount decimal(12,2), ratio double,
    created timestamp, changed timestamptz, day date, flag text, data blob, big ubigint, document text)"""
CHANGES = (
    "INSERT INTO orders VALUES (3, 'Zoë', 'sént', -0.05, 1e-7, '2024-02-29 23:59:59.999999', '2024-03-31 01:30:00.123',"
    " '9999-12-31', b'1', X'00FF5C', 18446744073709551615, '{\"a\": [1, null]}')",
    "UPDATE orders SET amount = amount * 2, customer = NULL WHERE id = 1",
    "UPDATE orders SET id = 20 WHERE id = 2",
    "INSERT INTO orders (id) VALUES (4), (5)",
    "DELETE FROM orders WHERE id = 5",
)
FIRST = (
    "INSERT INTO orders VALUES (1, 'Ann', 'new', 10.50, 0.1, '2024-01-01 00:00:00', '2024-01-01 00:00:00', '2024-01-01',"
    " b'0', X'', 0, '[]'), (2, '日本', 'paid', 99999999.99, -2.5e30, '1000-01-01 00:00:00', NULL, NULL, NULL, NULL, 7, '1')"
)
EXPECTED = [
    (1, None, "new", "21.00"),
    (3, "Zoë", "sént", "-0.05"),
    (4, None, None, None),
    (20, "日本", "paid", "99999999.99"),
]


@pytest.fixture
def home(tmp_path: Path, mariadb: str) -> Iterator[MariadbHome]:
    found = MariadbHome(tmp_path, mariadb)
    found.execute(SOURCE, FIRST)
    found.home.parameters("load1").write_text(
        f"EXTRACT load1\nSOURCEDB {mariadb}\nSOURCEISTABLE\nEXTFILE ./dirdat/la\nTABLE {found.schema}.*;\n"
    )
    yield found
    found.close()


def _replicate(home: MariadbHome, target: str, prefix: str) -> None:
    """Capture, load, and apply both; ``target``: the line with the login of the target."""
    for name in ("rep1", "repl"):
        home.home.parameters(name).write_text(
            f"REPLICAT {name}\n{target}\nMAP {home.schema}.*, TARGET shop.*;\n"
            + ("END RUNTIME\n" if name == "repl" else "")
        )
    home.add()
    home.run("ADD EXTRACT load1, SOURCEISTABLE", "START EXTRACT ext1", "START EXTRACT load1")
    report = home.home.report("LOAD1")
    until("the load is complete", lambda: report.exists() and "is complete" in report.read_text())
    csn = report.read_text().partition("AFTERCSN ")[2].split()[0]
    home.run(
        prefix,
        "ADD CHECKPOINTTABLE shop.checks",
        "ADD REPLICAT repl, EXTTRAIL ./dirdat/la, CHECKPOINTTABLE shop.checks",
        "ADD REPLICAT rep1, EXTTRAIL ./dirdat/ea, CHECKPOINTTABLE shop.checks",
        "START REPLICAT repl",
    )
    until("the load is applied", lambda: "stopped normally" in home.home.report("REPL").read_text())
    home.run(f"START REPLICAT rep1, AFTERCSN {csn}")
    home.execute(*CHANGES)


def test_a_load_and_changes_arrive_in_postgresql(home: MariadbHome, south: str) -> None:
    def fetch(statement: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(south, autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    fetch("CREATE SCHEMA shop")
    fetch(TARGET)
    CredentialStore(home.home).add("south", south, "")
    _replicate(home, "USERIDALIAS south", "DBLOGIN USERIDALIAS south")
    rows = "SELECT id, customer, status, amount::text FROM shop.orders ORDER BY id"
    until("the changes arrive", lambda: fetch(rows) == EXPECTED)
    ((*values,),) = fetch(
        "SELECT ratio, created::text, (changed AT TIME ZONE 'UTC')::text, day::text, flag::text, data, big::text,"
        " document::text FROM shop.orders WHERE id = 3"
    )
    assert values == [
        1e-7, "2024-02-29 23:59:59.999999", "2024-03-31 01:30:00.123", "9999-12-31", "1", b"\0\xff\\",
        "18446744073709551615", '{"a": [1, null]}',
    ]  # fmt: skip
    assert execute(home.login, "SELECT COUNT(*) FROM orders") == [(4,)]


def test_a_load_and_changes_arrive_in_duckdb(home: MariadbHome, tmp_path: Path) -> None:
    file = tmp_path / "target.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.execute("CREATE SCHEMA shop")
        connection.execute(FILE)
    _replicate(home, f"TARGETDB duckdb://{file}", f"DBLOGIN SOURCEDB duckdb://{file}")
    until("the changes are applied", lambda: _applied(home))
    home.run("STOP REPLICAT rep1")
    with duckdb.connect(str(file)) as connection:
        rows = connection.execute("SELECT id, customer, status, amount::text FROM shop.orders ORDER BY id").fetchall()
        ((data, big, created),) = connection.execute(
            "SELECT data, big, created::text FROM shop.orders WHERE id = 3"
        ).fetchall()
    assert rows == EXPECTED
    assert (data, big, created) == (b"\0\xff\\", 18446744073709551615, "2024-02-29 23:59:59.999999")


def _applied(home: MariadbHome) -> bool:
    """Whether the Replicat has applied the last transaction of the trail, which has all changes."""
    if len(home.ids()) < len(CHANGES) + 1:
        return False
    path = home.home.checkpoint("REP1", GroupKind.REPLICAT)
    return path.exists() and checkpoints.load(path).latest_csn == home.last_csn()
