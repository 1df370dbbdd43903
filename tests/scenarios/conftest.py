"""One running replication for all cases of a module; after a failed case, the next one gets a new replication."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import psycopg
import pytest
from scenarios.case import Case
from scenarios.running import KINDS, Replication, Running
from servers import new_database

from ggshell.demo.postgres_server import PostgresServer


@pytest.fixture(scope="module")
def replication(
    tmp_path_factory: pytest.TempPathFactory, north_server: PostgresServer, south_server: PostgresServer
) -> Iterator[Replication]:
    """The replication on which the cases of a module run."""
    with ExitStack() as stack:
        made: list[Running] = []

        def running_for(cases: Sequence[Case], first: Case) -> Running:
            if made and made[-1].usable:
                return made[-1]
            cases = cases[cases.index(first) :]
            stack.close()
            source, *targets = (stack.enter_context(_database(server)) for server in _servers())
            running = Running(tmp_path_factory.mktemp("home"), source, targets)
            stack.callback(running.close)
            running.begin(cases)
            made.append(running)
            return running

        def _servers() -> list[PostgresServer]:
            return [north_server, *(south_server for _ in KINDS)]

        yield running_for


@contextmanager
def _database(server: PostgresServer) -> Iterator[str]:
    """A database that streams even small transactions."""
    with contextmanager(new_database)(server) as dsn:
        with psycopg.connect(dsn, autocommit=True) as connection:
            name = connection.info.dbname
            connection.execute(f"ALTER DATABASE {name} SET logical_decoding_work_mem = '64kB'")
        yield dsn
