"""The two servers: ports are kept, passwords are required, and nothing remains after removal."""

from __future__ import annotations

import json
import os
from pathlib import Path

import psycopg
import pytest

from ggshell.connectors.postgres.session import connection_info
from ggshell.demo.postgres_server import PostgresServer
from ggshell.demo.servers import ADMIN_PASSWORD, DemoServers, exists, open_servers
from ggshell.errors import StoreError


def test_ports_and_folders_are_chosen_once(tmp_path: Path) -> None:
    assert not exists(tmp_path)
    first, second = open_servers(tmp_path), open_servers(tmp_path)
    assert first == second
    assert first.north.port != first.south.port
    first.remove()
    assert not exists(tmp_path)


def test_a_long_home_path_has_short_socket_paths(tmp_path: Path) -> None:
    home = tmp_path / ("deep" * 20) / ("deeper" * 10)
    home.mkdir(parents=True)
    servers = open_servers(home)
    assert all(len(str(server.sockets / ".s.PGSQL.65535")) < 107 for _, server in servers.both())
    servers.remove()


def test_a_damaged_demo_file_is_reported_with_the_remedy(tmp_path: Path) -> None:
    open_servers(tmp_path).remove()
    note = tmp_path / "demo" / "demo.json"
    note.write_text(json.dumps({"north": "x"}))
    with pytest.raises(StoreError, match=r"demo\.json cannot be read.*demo up"):
        open_servers(tmp_path)


def test_the_replication_role_needs_its_password(demo: DemoServers) -> None:
    with psycopg.connect(connection_info(demo.login("north"), ADMIN_PASSWORD)) as connection:
        assert connection.execute(
            "SELECT rolreplication, rolsuper FROM pg_roles WHERE rolname = current_user"
        ).fetchone() == (
            True,
            False,
        )
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(connection_info(demo.login("north"), "wrong"))


def test_starting_again_changes_nothing(demo: DemoServers) -> None:
    before = {name: server.pid() for name, server in demo.both()}
    demo.start()
    assert {name: server.pid() for name, server in demo.both()} == before
    assert demo.running() == {"north": True, "south": True}


def test_the_file_of_a_killed_server_names_no_running_one(tmp_path: Path) -> None:
    """The number of its process is now that of another one."""
    server = PostgresServer(tmp_path / "data", tmp_path / "sockets", 1, tmp_path)
    server.data.mkdir()
    (server.data / "postmaster.pid").write_text(f"{os.getpid()}\n")
    assert server.pid() is None
