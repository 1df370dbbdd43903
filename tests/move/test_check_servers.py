"""Findings about the servers: versions, limits, settings, open transactions, collations, and logins that fail."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from move.conftest import OpenSides, run
from service_client import free_port

from ggshell.connectors.logged_in import LoggedIn
from ggshell.connectors.postgres import schema_dump
from ggshell.demo.postgres_server import PostgresServer, find_binaries
from ggshell.home.credential import CredentialStore
from ggshell.home.home import Home
from ggshell.move.check import RULES, _tried, check, check_aliases, failed
from ggshell.move.checks import limits, locales, servers, surroundings
from ggshell.move.findings import Finding, FindingSeverity
from ggshell.move.request import MoveRequest

ERROR, WARNING, INFO = FindingSeverity


def codes(findings: Iterable[Finding]) -> list[str]:
    return [each.code for each in findings]


def test_two_logins_of_one_database_are_refused(older: str, sides: OpenSides, north: str) -> None:
    assert codes(servers.versions(sides(older, older))) == ["GGS-01003"]
    assert codes(servers.versions(sides(older, north))) == []


def test_another_database_of_the_same_server_is_a_target(north: str, north_other: str, sides: OpenSides) -> None:
    assert codes(servers.versions(sides(north, north_other))) == []


def test_a_target_of_an_older_version_is_refused(older: str, north: str, sides: OpenSides) -> None:
    assert codes(servers.versions(sides(north, older))) == ["GGS-01005"]


def test_a_server_that_cannot_be_captured_is_refused(older: str, north: str, sides: OpenSides) -> None:
    both = sides(older, north)
    both.source.server = replace(both.source.server, version=120_019, release="12.19")
    (found,) = servers.versions(both)
    assert (found.code, found.subject) == ("GGS-01004", "source server")
    assert "12.19" in found.text


def test_pg_dump_must_be_as_new_as_the_source_and_not_newer_than_the_target(
    older: str, older_other: str, north: str, south: str, sides: OpenSides, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new, none = "/usr/lib/postgresql/15/bin", str(find_binaries()), "/nonexistent"
    seen = {}
    for folder in (old, new, none):
        monkeypatch.setattr(schema_dump, "_candidates", lambda folder=folder: iter([Path(folder, "pg_dump")]))
        for pair in ((older, older_other), (older, north), (north, south)):
            found = [(each.code, each.severity) for each in servers.programs(sides(*pair))]
            seen[folder, pair] = found[0][1] if found else None
    pairs = ((older, older_other), (older, north), (north, south))
    assert [seen[old, pair] for pair in pairs] == [None, None, ERROR]
    assert [seen[new, pair] for pair in pairs] == [WARNING, None, None]
    assert [seen[none, pair] for pair in pairs] == [ERROR, ERROR, ERROR]


def test_a_database_closed_by_a_switch_is_found(older: str, north: str, sides: OpenSides) -> None:
    name = older.split("dbname=")[1].split(maxsplit=1)[0]
    run(older, f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    (found,) = servers.writable(sides(older, north))
    assert (found.code, found.subject) == ("GGS-01007", "default_transaction_read_only")


def test_what_a_move_has_left_is_found(older: str, north: str, sides: OpenSides) -> None:
    run(north, "CREATE SCHEMA ggshell;\nCREATE TABLE ggshell.move_markers ()")
    run(older, "SELECT pg_create_logical_replication_slot('ggs_mvext1', 'pgoutput')")
    found = list(servers.earlier_moves(sides(older, north)))
    assert codes(found) == ["GGS-01009", "GGS-01009"]
    assert [each.subject for each in found] == ["slot ggs_mvext1", "table ggshell.move_markers"]


@pytest.fixture(scope="module")
def narrow_server(server_folder: Path) -> Iterator[PostgresServer]:
    """A server without logical decoding, slots and sessions for a move, which also gives up slots soon."""
    server = PostgresServer(server_folder / "data-narrow", server_folder / "s-narrow", free_port(), find_binaries())
    server.initialize(
        {
            "wal_level": "replica",
            "max_replication_slots": "0",
            "max_wal_senders": "0",
            "max_connections": "8",
            "max_slot_wal_keep_size": "1GB",
            "idle_replication_slot_timeout": "1h",
            "shared_buffers": "8MB",
            "fsync": "off",
        }
    )
    with (server.data / "postgresql.conf").open("a") as configuration:
        configuration.write("max_active_replication_origins = 0\n")
    server.start()
    yield server
    server.stop("immediate")


def test_limits_of_a_server_are_found(narrow_server: PostgresServer, older: str, sides: OpenSides) -> None:
    both = sides(older, narrow_server.dsn())
    assert [(each.code, each.subject) for each in limits.log_level(both)] == [("GGS-01011", "wal_level")]
    assert codes(limits.slots(both)) == ["GGS-01012", "GGS-01013", "GGS-01014"]
    assert [each.subject for each in limits.retention(both)] == [
        "max_slot_wal_keep_size",
        "idle_replication_slot_timeout",
    ]
    assert set(codes(limits.retention(both))) == {"GGS-01015"}
    assert codes(limits.sessions(both)) == ["GGS-01016"]


def test_a_server_that_is_a_standby_is_refused(narrow_server: PostgresServer, older: str, sides: OpenSides) -> None:
    narrow_server.stop("fast")
    signal = narrow_server.data / "standby.signal"
    signal.touch()
    narrow_server.start()
    try:
        (found,) = servers.writable(sides(older, narrow_server.dsn()))
        assert (found.code, found.severity) == ("GGS-01007", ERROR)
        assert "standby" in found.text
    finally:
        narrow_server.stop("immediate")
        signal.unlink()
        narrow_server.start()


def test_more_jobs_than_sessions_are_refused(older: str, north: str, sides: OpenSides) -> None:
    assert codes(limits.sessions(sides(older, north, jobs=4))) == []
    assert codes(limits.sessions(sides(older, north, jobs=95))) == ["GGS-01016", "GGS-01016"]


def test_clocks_that_differ_are_found(older: str, north: str, sides: OpenSides) -> None:
    both = sides(older, north)
    assert codes(limits.clocks(both)) == []
    both.target.server = replace(both.target.server, ahead=both.source.server.ahead - 90)
    (found,) = limits.clocks(both)
    assert found.code == "GGS-01017"
    assert "90 s slower" in found.text


def test_the_estimate_says_what_it_assumes(older: str, north: str, sides: OpenSides) -> None:
    run(older, "CREATE TABLE t AS SELECT n, repeat('x', 500) AS x FROM generate_series(1, 20000) n;\nANALYZE t")
    run(older, "CREATE TABLE u (a int)")
    (found,) = limits.size(sides(older, north, jobs=1))
    assert (found.code, found.severity) == ("GGS-01018", INFO)
    assert "2 tables with about 20,000 rows, 10 MB of rows" in found.text
    assert "1 table not counted" in found.text
    assert "25 MB of rows" in found.text


def test_a_disk_without_room_is_found(older: str, north: str, sides: OpenSides) -> None:
    both = sides(older, north)
    assert codes(limits.disk(both)) == []
    both.source.server = replace(both.source.server, size=1 << 50)
    assert codes(limits.disk(both)) == ["GGS-01019"]


def test_transactions_that_delay_a_slot_are_found(older: str, north: str, sides: OpenSides) -> None:
    name = f"move-{uuid.uuid4()}"
    run(older, "CREATE TABLE t (a int)")
    both = sides(older, north)
    with psycopg.connect(older) as writer:
        writer.execute("INSERT INTO t VALUES (1)")
        assert codes(surroundings.open_work(both)) == []  # it is young
        work = [each for each in both.source.facts.open_work() if not each.prepared]
        assert len(work) == 1
        both.source.facts.open_work = lambda: [each._replace(age=3600.0) for each in work]  # type: ignore[method-assign]
        (found,) = surroundings.open_work(both)
        assert (found.code, found.severity) == ("GGS-01065", WARNING)
        assert f"pid {writer.info.backend_pid} of postgres" in found.text
        writer.execute(f"PREPARE TRANSACTION '{name}'")
    both = sides(older, north)
    try:
        (found,) = surroundings.open_work(both)
        assert (found.code, found.subject, found.severity) == ("GGS-01064", name, WARNING)
    finally:
        run(older, f"ROLLBACK PREPARED '{name}'")


def test_encodings_that_differ_are_found(older_server: PostgresServer, north: str, sides: OpenSides) -> None:
    found = {}
    for encoding in ("LATIN1", "SQL_ASCII"):
        name = f"encoding_{encoding.lower()}"
        run(older_server.dsn(), f"CREATE DATABASE {name} ENCODING {encoding} TEMPLATE template0 LOCALE 'C'")
        try:
            for pair in ((older_server.dsn(name), north), (north, older_server.dsn(name))):
                both = sides(*pair)
                found[encoding, pair[0] != north] = [(each.code, each.severity) for each in locales.encoding(both)]
                assert codes(locales.default_collation(both)) == []
        finally:
            run(older_server.dsn(), f"DROP DATABASE {name} WITH (FORCE)")
    assert found["LATIN1", True] == [("GGS-01067", WARNING)]
    assert found["LATIN1", False] == [("GGS-01067", ERROR)]
    assert found["SQL_ASCII", True] == found["SQL_ASCII", False] == [("GGS-01067", ERROR)]


def test_default_collations_that_differ_are_found(older_server: PostgresServer, north: str, sides: OpenSides) -> None:
    script = "CREATE DATABASE german TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'de' LOCALE 'C'"
    run(older_server.dsn(), script)
    try:
        (found,) = locales.default_collation(sides(older_server.dsn("german"), north))
    finally:
        run(older_server.dsn(), "DROP DATABASE german WITH (FORCE)")
    assert (found.code, found.severity) == ("GGS-01068", WARNING)
    assert "icu de" in found.text


def test_another_version_of_a_collation_library_is_found(older: str, older_other: str, sides: OpenSides) -> None:
    run(older, 'CREATE TABLE t (a text COLLATE "de-x-icu")')
    both = sides(older, older_other)
    assert codes(locales.collations(both)) == []
    there = both.target.facts.system_collations(["de-x-icu"])
    assert there[0].actual
    both.target.facts.system_collations = lambda names: [there[0]._replace(actual="1")]  # type: ignore[method-assign]
    (found,) = locales.collations(both)
    assert (found.code, found.subject) == ("GGS-01069", "de-x-icu")
    both.source.locale = both.source.locale._replace(actual="2.36")
    both.target.locale = both.target.locale._replace(actual="2.41")
    (found,) = locales.default_collation(both)
    assert (found.code, found.subject) == ("GGS-01069", "default")


def test_a_library_that_changed_under_the_indexes_of_the_source_is_found(
    older: str, older_other: str, sides: OpenSides
) -> None:
    run(older, 'CREATE TABLE t (a text COLLATE "de-x-icu")')
    assert codes(locales.changed_library(sides(older, older_other))) == []
    run(older, "UPDATE pg_collation SET collversion = '1' WHERE collname = 'de-x-icu'")
    (found,) = locales.changed_library(sides(older, older_other))
    assert (found.code, found.subject) == ("GGS-01071", "de-x-icu")


def test_a_fact_that_the_server_refuses_does_not_end_the_check(older: str, north: str, sides: OpenSides) -> None:
    run(older, "REVOKE SELECT ON pg_publication FROM PUBLIC")
    run(older, "CREATE ROLE reader_of_facts LOGIN")
    try:
        reader = older.replace("user=postgres", "user=reader_of_facts")
        both = sides(reader, north)
        (found,) = _tried(surroundings.publications, both)
        assert (found.code, found.subject) == ("GGS-01002", "publications")
        assert codes(_tried(surroundings.subscriptions, both)) == []
    finally:
        run(older, "DROP ROLE reader_of_facts")


def test_a_login_that_fails_is_a_finding(tmp_path: Path, older: str) -> None:
    home = Home(tmp_path)
    home.create_subdirectories()
    store = CredentialStore(home)
    store.create()
    store.add("north", older, "")
    store.add("south", older.replace("dbname=", "dbname=not_"), "")
    findings = check_aliases(home, MoveRequest("north", "south"))
    assert [(each.code, each.subject) for each in findings] == [("GGS-01001", "south")]
    findings = check_aliases(home, MoveRequest("nobody", "north"))
    assert [(each.code, each.subject) for each in findings] == [("GGS-01001", "nobody")]
    findings = check_aliases(home, MoveRequest("north", "north"))
    assert codes(findings) == ["GGS-01003"]
    assert failed(findings)


def test_errors_come_first(older: str, north: str, log_in: Callable[[str], LoggedIn]) -> None:
    run(older, "CREATE TABLE t (a int);\nSELECT lo_create(0)")
    findings = check(log_in(older), log_in(north), MoveRequest("north", "south"))
    assert [code for code in codes(findings) if code != "GGS-01072"] == ["GGS-01044", "GGS-01047", "GGS-01018"]
    assert [each.severity for each in findings] == sorted(
        (each.severity for each in findings), key=[ERROR, WARNING, INFO].index
    )
    assert failed(findings)
    assert not failed(findings[1:])


def test_the_number_of_queries_does_not_depend_on_the_number_of_tables(
    older: str, north: str, sides: OpenSides, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[int] = []
    execute = psycopg.Connection.execute

    def counting(*arguments: Any, **options: Any) -> Any:
        counted[-1] += 1
        return execute(*arguments, **options)

    for first, last in ((1, 1), (2, 60)):
        run(
            older,
            ";\n".join(f'CREATE TABLE t{n} (id serial, a text COLLATE "de-x-icu")' for n in range(first, last + 1)),
        )
        counted.append(0)
        with monkeypatch.context() as patch:
            patch.setattr(psycopg.Connection, "execute", counting)
            both = sides(older, north)
            assert "GGS-01047" in [each.code for rule in RULES for each in rule(both)]
    assert counted[0] == counted[1]
