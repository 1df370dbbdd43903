"""The servers of the tests have data folders of their own, although initdb has made one only."""

from __future__ import annotations

import shutil

import psycopg
import pytest
from short_folders import short_folder

from ggshell.demo.postgres_server import PostgresServer, find_binaries

pytestmark = pytest.mark.pg


def facts(server: PostgresServer) -> tuple[str, ...]:
    with psycopg.connect(server.dsn()) as connection:
        query = "SELECT system_identifier, current_setting('data_directory') FROM pg_control_system()"
        return tuple(map(str, connection.execute(query).fetchone() or ()))


def test_a_copy_is_another_system_with_sound_files(
    north_server: PostgresServer, south_server: PostgresServer, port: int
) -> None:
    folder = short_folder("ggs-")
    folder.chmod(0o755)
    third = PostgresServer(data=folder / "data", sockets=folder / "s", port=port, binaries=find_binaries())
    third.initialize()
    third.start()
    try:
        known = [facts(server) for server in (north_server, south_server, third)]
        assert len({system for system, _ in known}) == 3
        third.stop("immediate")
        third.start()  # its log is read with the new identifier
        assert facts(third) == known[2]
    finally:
        third.stop("immediate")
        shutil.rmtree(folder)
