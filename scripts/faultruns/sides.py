"""The databases at the ends of a chain: PostgreSQL or MariaDB, each with the same three tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any, Protocol

import psycopg
import pymysql

from faultruns.proxy import Address
from ggshell.connectors.mysql.session import connect
from ggshell.demo import load
from ggshell.demo.mariadb_server import REPLICATION_SETTINGS, MariadbServer, find_binaries
from ggshell.demo.servers import ADMIN, ADMIN_PASSWORD, DemoServers, free_ports
from ggshell.errors import NotFoundError

GONE = (psycopg.OperationalError, pymysql.err.OperationalError, pymysql.err.InterfaceError, ConnectionError)
"""What a client gets when its server goes away."""
COUNTERS = 50
_MOMENT = {"postgres": "timestamptz", "mariadb": "timestamp(6) NULL"}
_TABLES = (
    "CREATE TABLE {schema}.ledger (line bigint, at {moment}, note text)",
    "CREATE TABLE {schema}.counters (id int PRIMARY KEY, n bigint NOT NULL)",
    "CREATE TABLE {schema}.bulk (line bigint PRIMARY KEY, note text)",
    f"INSERT INTO {{schema}}.counters VALUES {', '.join(f'({number}, 0)' for number in range(1, COUNTERS + 1))}",
)
_SURVIVES = {"innodb-flush-log-at-trx-commit": "2", "sync-binlog": "0", "loose-innodb-use-native-aio": "0"}
"""A killed server has lost nothing that it committed; the machine does not crash here."""


class Session(Protocol):
    """A connection in which statements are executed; both databases know ``%s`` as the mark of a value."""

    def execute(self, text: str, values: Sequence[Any] = ()) -> Sequence[tuple[Any, ...]]: ...

    def commit(self) -> None: ...

    def rollback(self) -> None: ...


class Side(Protocol):
    """One database. ``schema``: where its tables are; ``checks``: the name of the checkpoint table, if it is a target."""

    schema: str
    checks: str

    def start(self) -> None: ...

    def stop(self, how: str) -> None:
        """Stop the server: ``fast``, or ``immediate`` as in a crash."""

    def prepare(self) -> None:
        """Create the tables."""

    def session(self) -> AbstractContextManager[Session]: ...

    def login(self, through: Address | None = None) -> tuple[str, str]:
        """The user with the address, and the password, for the credential store; ``through``: the address of a proxy."""

    def proxied(self) -> tuple[Address, Address]:
        """Where a proxy listens, and where the server does."""

    def remove(self) -> None: ...


class PostgresSession:
    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self.commit, self.rollback = connection.commit, connection.rollback

    def execute(self, text: str, values: Sequence[Any] = ()) -> Sequence[tuple[Any, ...]]:
        cursor = self._connection.execute(text, list(values) or None)  # type: ignore[call-overload]
        return cursor.fetchall() if cursor.description else []


class PostgresSide:
    """``north`` or ``south`` of the demo servers."""

    def __init__(self, servers: DemoServers, name: str, schema: str) -> None:
        self.schema, self.checks = schema, "ggadmin.ggs_checkpoint"
        self._servers, self._name = servers, name
        self._server = dict(servers.both())[name]

    def start(self) -> None:
        self._servers.start()

    def stop(self, how: str) -> None:
        self._server.stop(how)

    def prepare(self) -> None:
        load.prepare_database(self._servers, self._name, ())
        with psycopg.connect(self._servers.dsn(self._name), autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {self.schema} AUTHORIZATION {ADMIN}; SET ROLE {ADMIN}")
            for text in _TABLES:
                connection.execute(text.format(schema=self.schema, moment=_MOMENT["postgres"]))

    @contextmanager
    def session(self) -> Iterator[Session]:
        with psycopg.connect(self._servers.dsn(self._name)) as connection:
            yield PostgresSession(connection)

    def login(self, through: Address | None = None) -> tuple[str, str]:
        folder = through.parent if isinstance(through, Path) else self._server.sockets
        return f"{ADMIN}@{folder}:{self._server.port}/{self._name}", ADMIN_PASSWORD

    def proxied(self) -> tuple[Address, Address]:
        folder = self._server.sockets.with_name(f"{self._name}-proxy")
        folder.mkdir()
        socket_name = f".s.PGSQL.{self._server.port}"
        return folder / socket_name, self._server.sockets / socket_name

    def remove(self) -> None:
        """The demo servers are removed together."""


class _MariadbSession:
    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.commit, self.rollback = connection.commit, connection.rollback

    def execute(self, text: str, values: Sequence[Any] = ()) -> Sequence[tuple[Any, ...]]:
        with self._connection.cursor() as cursor:
            cursor.execute(text, tuple(values) or None)
            return tuple(cursor.fetchall())


def missing_server() -> str:
    """Why this machine has no MariaDB server; empty if it has one."""
    try:
        find_binaries()
    except NotFoundError as error:
        return str(error)
    return ""


class MariadbSide:
    """A MariaDB server of its own."""

    def __init__(self, home: Path, schema: str) -> None:
        self.schema, self.checks = schema, f"{schema}.ggs_checkpoint"
        self._server = MariadbServer(home / "mariadb", home / "s", free_ports(1)[0], find_binaries())
        self._server.initialize()

    def start(self) -> None:
        self._server.start({**REPLICATION_SETTINGS, **_SURVIVES})

    def stop(self, how: str) -> None:
        if how == "fast":
            self._server.stop()
        else:
            self._server.kill()

    def prepare(self) -> None:
        with closing(connect(self._server.login())) as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {self.schema}")
            for text in _TABLES:
                cursor.execute(text.format(schema=self.schema, moment=_MOMENT["mariadb"]))
            connection.commit()

    @contextmanager
    def session(self) -> Iterator[Session]:
        with closing(connect(self._server.login(self.schema))) as connection:
            connection.autocommit(False)
            yield _MariadbSession(connection)

    def login(self, through: Address | None = None) -> tuple[str, str]:
        port = through[1] if isinstance(through, tuple) else self._server.port
        return f"mysql://root@127.0.0.1:{port}/{self.schema}", ""

    def proxied(self) -> tuple[Address, Address]:
        return ("127.0.0.1", free_ports(1)[0]), ("127.0.0.1", self._server.port)

    def remove(self) -> None:
        self._server.kill()
