"""Two databases of a move: an empty source of an older version, and an empty target."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import psycopg
import pytest
from servers import new_database

from ggshell.connectors.logged_in import Credentials, LoggedIn
from ggshell.connectors.registry import connector_for
from ggshell.demo.postgres_server import PostgresServer
from ggshell.move.checks.sides import Sides
from ggshell.move.request import MoveRequest

OpenSides: TypeAlias = Callable[..., Sides]


def run(dsn: str, script: str) -> None:
    """Run statements outside of a transaction."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in filter(str.strip, script.split(";\n")):
            connection.execute(statement)  # type: ignore[arg-type]


@pytest.fixture
def log_in(tmp_path: Path) -> Iterator[Callable[[str], LoggedIn]]:
    """Logs in to databases until the test ends."""
    opened: list[LoggedIn] = []

    def open_one(dsn: str) -> LoggedIn:
        opened.append(connector_for(dsn).log_in(Credentials(dsn), tmp_path))
        return opened[-1]

    yield open_one
    for login in opened:
        login.close()


@pytest.fixture
def sides(log_in: Callable[[str], LoggedIn]) -> OpenSides:
    """The sides of a move between two databases, of some schemas or of all."""

    def open_both(source: str, target: str, *schemas: str, jobs: int = 4) -> Sides:
        return Sides(log_in(source), log_in(target), MoveRequest("north", "south", schemas, jobs))

    return open_both


@pytest.fixture
def older_other(older_server: PostgresServer) -> Iterator[str]:
    """The DSN of another new, empty database on the server of an older version."""
    yield from new_database(older_server)
