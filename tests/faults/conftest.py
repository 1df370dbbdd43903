"""Live replication for the fault tests, once per module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from replication import Replication

from ggshell.demo.processes import end_processes
from ggshell.demo.servers import open_servers


@pytest.fixture(scope="module")
def replication(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replication]:
    home = Path(tmp_path_factory.mktemp("replication"))
    servers = open_servers(home)
    try:
        servers.start()
        running = Replication(servers)
        running.set_up()
        yield running
    finally:
        end_processes(home)
        servers.remove()
