"""A shell, and an Extract from MariaDB, each on a home of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cli.shell import Shell
from mariadb_home import MariadbHome
from mariadb_servers import execute


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    return Shell(tmp_path / "home", capsys, monkeypatch)


@pytest.fixture
def capture(tmp_path: Path, mariadb: str) -> Iterator[MariadbHome]:
    """An Extract of a new database on the session's server."""
    found = MariadbHome(tmp_path, mariadb)
    yield found
    found.close()


@pytest.fixture
def small_packets(mariadb: str) -> Iterator[int]:
    """The size of the longest result of the server's functions, which is low for this test."""
    ((usual,),) = execute(mariadb, "SELECT @@GLOBAL.max_allowed_packet")
    size = 1 << 15
    execute(mariadb, f"SET GLOBAL max_allowed_packet = {size}")
    yield size
    execute(mariadb, f"SET GLOBAL max_allowed_packet = {usual}")
