"""A demo with data, started once for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from ggshell.demo import load
from ggshell.demo.servers import DemoServers, open_servers


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoServers]:
    servers = open_servers(Path(tmp_path_factory.mktemp("demo-home")))
    servers.start()
    load.prepare_database(servers, "north", (load.SCHEMA,))
    load.prepare_database(servers, "south", (load.SCHEMA, load.MIRROR))
    with psycopg.connect(servers.dsn("north"), autocommit=True) as connection:
        load.load_rows(connection)
    yield servers
    servers.remove()
