"""Session fixtures: two real PostgreSQL servers, started once for the whole run."""

from __future__ import annotations

import itertools
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from ggshell.databases.postgres.server import PostgresServer, find_binaries

_NUMBERS = itertools.count(1)
# Java's second compiler pays off after minutes; here each of a dozen Javas lives for seconds.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rounds", type=int, default=0, help="rounds of each fault, and of the random tests of the language"
    )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _serve(folder: Path, name: str) -> PostgresServer:
    server = PostgresServer(
        data=folder / f"data-{name}", sockets=folder / f"s-{name}", port=free_port(), binaries=find_binaries()
    )
    server.initialise()
    server.start()
    return server


@pytest.fixture
def port() -> int:
    """A port that nobody uses."""
    return free_port()


@pytest.fixture(scope="session")
def server_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="ggs-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def north_server(server_folder: Path) -> Iterator[PostgresServer]:
    server = _serve(server_folder, "north")
    yield server
    server.stop("immediate")


@pytest.fixture(scope="session")
def south_server(server_folder: Path) -> Iterator[PostgresServer]:
    server = _serve(server_folder, "south")
    yield server
    server.stop("immediate")


def _database(server: PostgresServer) -> Iterator[str]:
    name = f"t{next(_NUMBERS)}"
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield server.dsn(name)
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE database = %s AND active", [name]
        )
        slots = connection.execute("SELECT slot_name FROM pg_replication_slots WHERE database = %s", [name]).fetchall()
        for (slot,) in slots:
            _drop_slot(connection, slot)
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def _drop_slot(connection: psycopg.Connection, slot: str) -> None:
    """Drop a slot as soon as its walsender has ended (the server takes a moment to notice)."""
    connection.execute("SET statement_timeout = '20s'")
    connection.execute(
        f"""DO $$ BEGIN LOOP
             IF NOT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = '{slot}' AND active) THEN EXIT; END IF;
             PERFORM pg_sleep(0.01);
           END LOOP; END $$"""
    )
    connection.execute("SELECT pg_drop_replication_slot(%s)", [slot])


@pytest.fixture
def north(north_server: PostgresServer) -> Iterator[str]:
    """The DSN of a new, empty database on the north server; its slots go with it."""
    yield from _database(north_server)


@pytest.fixture
def south(south_server: PostgresServer) -> Iterator[str]:
    """The DSN of a new, empty database on the south server."""
    yield from _database(south_server)


@pytest.fixture
def hub(south_server: PostgresServer) -> Iterator[str]:
    """The DSN of a third database, between north and south."""
    yield from _database(south_server)
