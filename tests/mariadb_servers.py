"""MariaDB servers of the tests: one for a session, and a new database on it for each test."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from short_folders import short_folder

from ggshell.connectors.mysql.session import connect
from ggshell.demo.mariadb_server import REPLICATION_SETTINGS, MariadbServer, find_binaries
from ggshell.errors import NotFoundError

FAST = {
    "innodb-flush-log-at-trx-commit": "0",
    "sync-binlog": "0",
    "innodb-doublewrite": "0",
    "loose-innodb-use-native-aio": "0",
}
"""Without these syncs a crash of the machine would lose data; a crash of the server loses at most a second."""
DURABLE = {**FAST, "innodb-flush-log-at-trx-commit": "2"}
"""A crash of the server loses nothing."""

_NUMBERS = itertools.count(1)


def binaries_or_skip() -> Path:
    """The folder of the programs; without a server the test is skipped with the reason."""
    try:
        return find_binaries()
    except NotFoundError as error:
        pytest.skip(str(error))


@contextmanager
def private_server(port: int, settings: Mapping[str, str] | None = None) -> Iterator[MariadbServer]:
    """A server of its own for one test, which may stop, kill and start it."""
    folder = short_folder("ggm-")
    folder.chmod(0o755)
    server = MariadbServer(folder / "data", folder / "s", port, binaries_or_skip())
    try:
        server.initialize()
        server.start({**REPLICATION_SETTINGS, **DURABLE, **(settings or {})})
        yield server
    finally:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)


def execute(login: str, *statements: str) -> list[tuple[Any, ...]]:
    """Execute statements on a connection of its own; return the rows of the last one."""
    rows: list[tuple[Any, ...]] = []
    with closing(connect(login)) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
            rows = list(cursor.fetchall())
    return rows


def new_schema(server: MariadbServer) -> Iterator[str]:
    """The login of a new, empty database; it is dropped afterwards."""
    name = f"t{next(_NUMBERS)}"
    execute(server.login(), f"CREATE DATABASE {name}")
    yield server.login(name)
    execute(server.login(), f"DROP DATABASE IF EXISTS {name}")


def schema_of(login: str) -> str:
    """The database that a login names."""
    return login.rpartition("/")[2]
