"""Slots, publication and TRANDATA on real servers: an error says what is missing and what to do."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from ggshell.connectors.postgres import session, slot, trandata
from ggshell.demo.postgres_server import REPLICATION_SETTINGS, PostgresServer, find_binaries
from ggshell.errors import CaptureError, ConflictError, DatabaseError, NotFoundError
from ggshell.types import TableName

ITEMS = TableName("public", "items")


@pytest.fixture
def private_server(server_folder: Path, port: int) -> Iterator[PostgresServer]:
    """A server of the test's own that has not been started; the test may damage its settings."""
    folder = server_folder / "own"
    server = PostgresServer(data=folder / "data", sockets=folder / "s", port=port, binaries=find_binaries())
    folder.mkdir()
    folder.chmod(0o755)
    yield server
    server.stop("immediate")
    shutil.rmtree(folder)


def connect(server: PostgresServer) -> psycopg.Connection:
    return session.connect(server.dsn())


def test_a_server_with_a_low_wal_level_is_refused_with_the_required_setting(private_server: PostgresServer) -> None:
    private_server.initialize({**REPLICATION_SETTINGS, "wal_level": "replica"})
    private_server.start()
    with connect(private_server) as connection, pytest.raises(DatabaseError, match="wal_level is replica") as caught:
        slot.register(connection, "EXT1")
    assert "ALTER SYSTEM SET wal_level = logical" in caught.value.hint


def test_an_invalidated_slot_is_never_a_silent_gap(private_server: PostgresServer) -> None:
    private_server.initialize({**REPLICATION_SETTINGS, "max_slot_wal_keep_size": "1MB", "max_wal_size": "64MB"})
    private_server.start()
    with connect(private_server) as connection:
        begin = slot.register(connection, "EXT1")
        connection.execute("CREATE TABLE items (id int PRIMARY KEY)")
        for _ in range(3):
            connection.execute("INSERT INTO items SELECT coalesce(max(id), 0) + 1 FROM items")
            connection.execute("SELECT pg_switch_wal()")
        connection.execute("CHECKPOINT")
        status = slot.slot_status(connection, "ggs_ext1")
        assert status is not None
        assert status.wal_status == "lost"
        with pytest.raises(CaptureError, match="is lost") as caught:
            slot.check_slot(connection, "ggs_ext1", begin)
    assert caught.value.code == "GGS-00502"
    assert "load the tables again" in caught.value.hint


def test_registering_twice_and_dropping_a_missing_slot_are_refused(north: str) -> None:
    with session.connect(north) as connection:
        slot.register(connection, "EXT1")
        with pytest.raises(ConflictError, match="already registered"):
            slot.register(connection, "ext1")
        assert slot.unregister(connection, "EXT1")
        with pytest.raises(NotFoundError, match="not registered"):
            slot.unregister(connection, "EXT1")


def test_the_slot_of_another_database_is_neither_used_nor_dropped(north: str, north_other: str) -> None:
    with session.connect(north_other) as owner, session.connect(north) as connection:
        database, here = owner.info.dbname, connection.info.dbname
        begin = slot.register(owner, "EXT1")
        for attempt in (
            lambda: slot.register(connection, "EXT1"),
            lambda: slot.unregister(connection, "EXT1"),
            lambda: slot.check_slot(connection, "ggs_ext1", begin),
        ):
            with pytest.raises(DatabaseError) as caught:
                attempt()
            assert caught.value.code == "GGS-00413"
            wanted = f"replication slot ggs_ext1 belongs to database {database}, not to database {here}"
            assert caught.value.message == wanted
            assert "UNREGISTER" not in caught.value.hint
        assert slot.check_slot(owner, "ggs_ext1", begin).database == database


@pytest.mark.skipif(os.getuid() != 0, reason="only root may look into another user's folder")
@pytest.mark.parametrize("user", ["postgres", "modest"])
def test_the_free_disk_space_of_a_local_server_is_known(north: str, user: str) -> None:
    with session.connect(north) as connection:
        connection.execute("DROP ROLE IF EXISTS modest")
        connection.execute("CREATE ROLE modest LOGIN")
    with session.connect(make_conninfo(north, user=user)) as connection:
        assert (slot.free_disk(connection) or 0) > 0


@pytest.mark.parametrize(
    ("definition", "keycols", "everything", "identity", "key"),
    [
        ("id int PRIMARY KEY, v text", (), False, "default", ("id",)),
        ("id int, v text", (), False, "full", ("id", "v")),
        ("id int PRIMARY KEY, v text NOT NULL UNIQUE", ("v",), False, "index", ("v",)),
        ("id int PRIMARY KEY, v text", ("v",), False, "full", ("id", "v")),
        ("id int PRIMARY KEY, v text", (), True, "full", ("id", "v")),
    ],
)
def test_trandata_sets_the_replica_identity_that_the_key_needs(
    north: str, definition: str, keycols: tuple[str, ...], everything: bool, identity: str, key: tuple[str, ...]
) -> None:
    with session.connect(north) as connection:
        connection.execute(f"CREATE TABLE items ({definition})")
        found = trandata.add(connection, ITEMS, keycols, all_columns=everything)
        assert (found.before, found.identity, found.key, found.published) == ("default", identity, key, True)
        trandata.require_capturable(found)
        gone = trandata.delete(connection, ITEMS)
        assert (gone.identity, gone.published) == ("default", False)


def test_a_table_whose_old_rows_are_not_logged_is_refused_with_a_hint(north: str) -> None:
    with session.connect(north) as connection:
        connection.execute("CREATE TABLE items (id int PRIMARY KEY)")
        trandata.add(connection, ITEMS)
        connection.execute("ALTER TABLE items REPLICA IDENTITY NOTHING")
        with pytest.raises(DatabaseError, match=r"public\.items .* REPLICA IDENTITY|identity is NOTHING") as caught:
            trandata.require_capturable(trandata.info(connection, ITEMS))
    assert "ADD TRANDATA public.items" in caught.value.hint


def test_tables_stay_published_without_a_slot(north: str) -> None:
    with session.connect(north) as connection:
        connection.execute("CREATE TABLE kept (id int PRIMARY KEY)")
        slot.register(connection, "EXT1")
        trandata.add(connection, TableName("public", "kept"))
        assert not slot.unregister(connection, "EXT1")
        published = connection.execute("SELECT tablename FROM pg_publication_tables").fetchall()
        assert published == [("kept",)]
