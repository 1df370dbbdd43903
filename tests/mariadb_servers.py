"""MariaDB servers of the tests: one for a session, and a new database on it for each test."""

from __future__ import annotations

import itertools
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from mysql_server import MYSQL_BINARIES, MysqlServer
from short_folders import short_folder

from ggshell.connectors.mysql.log_files import log_end
from ggshell.connectors.mysql.session import connect, server_version
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

IS_MYSQL = MYSQL_BINARIES in os.environ
"""Whether the tests run with MySQL instead of MariaDB."""
UUID = "char(36)" if IS_MYSQL else "uuid"
"""The type of a column with UUIDs."""
EXACT_TEXTS = "utf8mb4_0900_bin" if IS_MYSQL else "utf8mb4_nopad_bin"
"""The collation in which each text differs from any other one."""
_NUMBERS = itertools.count(1)


def binaries_or_skip() -> Path:
    """The folder of the programs; without a server the test is skipped with the reason."""
    try:
        return find_binaries()
    except NotFoundError as error:
        pytest.skip(str(error))


def new_server(folder: Path, port: int) -> MariadbServer:
    """A server in a folder, not started yet: of MySQL if ``GGSHELL_TEST_MYSQL`` names the folder of its programs."""
    named = os.environ.get(MYSQL_BINARIES)
    if named:
        return MysqlServer(folder / "data", folder / "s", port, Path(named))
    return MariadbServer(folder / "data", folder / "s", port, binaries_or_skip())


@contextmanager
def private_server(port: int, settings: Mapping[str, str] | None = None) -> Iterator[MariadbServer]:
    """A server of its own for one test, which may stop, kill and start it."""
    folder = short_folder("ggm-")
    folder.chmod(0o755)
    server = new_server(folder, port)
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


def log_status(login: str) -> tuple[str, int]:
    """The current file of a server's binary log, and the position of its end."""
    with closing(connect(login)) as connection:
        end = log_end(connection, server_version(connection))
    return end.file, end.position


def done_gtids(login: str) -> str:
    """The GTID position of a server of MariaDB, or the set of the transactions of one of MySQL."""
    ((found,),) = execute(login, f"SELECT {'@@GLOBAL.gtid_executed' if IS_MYSQL else '@@gtid_binlog_pos'}")
    return str(found)


def last_gtid(login: str) -> str:
    """The GTID of the last transaction of a server."""
    found = done_gtids(login)
    return re.sub(r":(?:\d+-)?(\d+)$", r":\1", found) if IS_MYSQL else found


def replicate(replica: MariadbServer, source: MariadbServer) -> None:
    """Make a server the replica of another one, by GTID."""
    word = "SOURCE" if IS_MYSQL else "MASTER"
    change = (
        f"CHANGE {'REPLICATION SOURCE' if IS_MYSQL else 'MASTER'} TO {word}_HOST = '127.0.0.1', {word}_USER = 'root'"
    )
    by_gtid = "SOURCE_AUTO_POSITION = 1" if IS_MYSQL else "MASTER_USE_GTID = slave_pos"
    change = f"{change}, {word}_PORT = {source.port}, {word}_SSL = 0, {by_gtid}"
    execute(replica.login(), "FLUSH BINARY LOGS", change, "START REPLICA")


def end_replication(replica: MariadbServer) -> None:
    execute(replica.login(), "STOP REPLICA", "RESET REPLICA ALL")


def reset_log(login: str) -> None:
    """Remove all files of the binary log, and begin with the first GTID again."""
    execute(login, "RESET BINARY LOGS AND GTIDS" if IS_MYSQL else "RESET MASTER")


def numbers(first: int, last: int) -> str:
    """The numbers of a range as a table with the column ``seq``."""
    some = (
        f"JSON_TABLE(CONCAT('[0', REPEAT(',0', {last - first}), ']'), '$[*]' COLUMNS (place FOR ORDINALITY)) AS places"
    )
    return f"(SELECT place + {first - 1} AS seq FROM {some}) AS numbers"


def only_mariadb(reason: str) -> pytest.MarkDecorator:
    """The mark of a test that cannot run with MySQL."""
    return pytest.mark.skipif(IS_MYSQL, reason=f"the tests run with MySQL, and {reason}")


def new_schema(server: MariadbServer) -> Iterator[str]:
    """The login of a new, empty database; it is dropped afterwards."""
    name = f"t{next(_NUMBERS)}"
    execute(server.login(), f"CREATE DATABASE {name}")
    yield server.login(name)
    execute(server.login(), f"DROP DATABASE IF EXISTS {name}")


def schema_of(login: str) -> str:
    """The database that a login names."""
    return login.rpartition("/")[2]
