"""TRUNCATE of a partition: only the messages that ggshell's trigger wrote are captured."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from slot_reading import capturing, collect, prepare

from ggshell.connectors.postgres import partition_truncates, session, trandata
from ggshell.connectors.postgres.truncate_watch import TruncateWatch
from ggshell.errors import DatabaseError
from ggshell.home.events import Severity
from ggshell.types import TableName

CALL = """pg_logical_emit_message(true, 'ggshell.truncate', jsonb_build_object('owner', 's', 'name', 'low',
 'relation', 's.low'::regclass::oid::bigint, 'root', jsonb_build_array('s', 'ev'), 'columns', '[]'::jsonb)::text)"""
FORGED = f"SELECT {CALL}"
OLD = f"""
CREATE OR REPLACE FUNCTION ggshell.note_truncate () RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $body$
BEGIN PERFORM {CALL}; RETURN NULL; END $body$"""


@pytest.fixture
def source(north: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with psycopg.connect(north, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA s; CREATE TABLE s.ev (id int PRIMARY KEY) PARTITION BY RANGE (id)")
        connection.execute("CREATE TABLE s.low PARTITION OF s.ev FOR VALUES FROM (0) TO (10)")
        yield connection


def _end(connection: psycopg.Connection[tuple[object, ...]]) -> int:
    ((end,),) = connection.execute("SELECT pg_current_wal_insert_lsn() - '0/0'").fetchall()
    return int(str(end))


def _captured(
    dsn: str, source: psycopg.Connection[tuple[object, ...]], start: int, folder: Path
) -> tuple[int, list[str]]:
    """How many rows are captured, and the codes that are reported."""
    codes: list[str] = []

    def tell(severity: Severity, code: str, text: str) -> None:
        codes.append(code)

    with capturing(dsn, start, folder, truncates=TruncateWatch(tell)) as capture:
        return len(collect(capture, _end(source))), codes


def test_only_the_messages_of_the_trigger_are_captured(
    north: str, source: psycopg.Connection[tuple[object, ...]], tmp_path: Path
) -> None:
    start = prepare(north, "s.ev")
    source.execute("CREATE ROLE clerk; GRANT TRUNCATE ON s.low TO clerk; GRANT USAGE ON SCHEMA s TO clerk")
    try:
        source.execute("SET ROLE clerk; TRUNCATE s.low; RESET ROLE")
        source.execute("SET ROLE clerk")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            source.execute("SELECT secret FROM ggshell.truncate_secret")
        source.execute(f"RESET ROLE; {FORGED}")
        source.execute(FORGED.replace("::text)", "::text || 'x')").replace("true, ", "true, ", 1))
        assert _captured(north, source, start, tmp_path) == (1, ["GGS-00590", "GGS-00590"])
    finally:
        source.execute("RESET ROLE; DROP OWNED BY clerk; DROP ROLE clerk")


def test_a_copied_message_is_not_captured_in_another_transaction(
    north: str, source: psycopg.Connection[tuple[object, ...]], tmp_path: Path
) -> None:
    start = prepare(north, "s.ev")
    source.execute("SELECT pg_create_logical_replication_slot('peek', 'pgoutput')")
    source.execute("TRUNCATE s.low")
    found = source.execute(
        "SELECT data FROM pg_logical_slot_get_binary_changes('peek', NULL, NULL, 'proto_version', '1',"
        " 'publication_names', 'ggshell', 'messages', 'true')"
    ).fetchall()
    source.execute("SELECT pg_drop_replication_slot('peek')")
    (message,) = [bytes(data) for (data,) in found if b"ggshell.truncate\0" in bytes(data)]  # type: ignore[call-overload]
    copied = message.partition(b"ggshell.truncate\0")[2][4:].decode()
    source.execute("SELECT pg_logical_emit_message(true, 'ggshell.truncate', %s::text)", [copied])
    assert _captured(north, source, start, tmp_path) == (1, ["GGS-00590"])


def test_messages_without_a_seal_are_captured_until_the_function_is_replaced(
    north: str, source: psycopg.Connection[tuple[object, ...]], tmp_path: Path
) -> None:
    start = prepare(north, "s.ev")
    source.execute("COMMENT ON FUNCTION ggshell.note_truncate () IS NULL; DROP TABLE ggshell.truncate_secret")
    source.execute(OLD)
    source.execute("TRUNCATE s.low")
    assert _captured(north, source, start, tmp_path) == (1, ["GGS-00589"])
    with session.connect(north) as connection:
        trandata.add(connection, TableName("s", "ev"))
        assert partition_truncates.sealed_from(connection) > start
    source.execute("TRUNCATE s.low")
    source.execute(FORGED)
    assert _captured(north, source, start, tmp_path) == (2, ["GGS-00590"])


def test_a_user_who_may_not_read_the_secret_is_refused_at_the_first_message_only(
    north: str, source: psycopg.Connection[tuple[object, ...]], tmp_path: Path
) -> None:
    start = prepare(north, "s.ev")
    source.execute("CREATE ROLE late LOGIN REPLICATION; GRANT USAGE ON SCHEMA s TO late")
    try:
        dsn = f"{north} user=late"
        source.execute("INSERT INTO s.ev VALUES (1)")
        assert _captured(dsn, source, start, tmp_path) == (1, [])
        source.execute(FORGED)
        assert _captured(dsn, source, start, tmp_path) == (1, ["GGS-00590"])
        source.execute("TRUNCATE s.low")
        with pytest.raises(DatabaseError, match=r"cannot read ggshell\.truncate_secret") as refused:
            _captured(dsn, source, start, tmp_path)
        assert "GRANT SELECT ON ggshell.truncate_secret" in refused.value.hint
        with session.connect(north) as connection:
            for statement in partition_truncates.INSTALL:  # as ADD SCHEMATRANDATA does
                session.execute(connection, statement)
        assert _captured(dsn, source, start, tmp_path) == (2, ["GGS-00590"])
    finally:
        source.execute("DROP OWNED BY late; DROP ROLE late")


@pytest.mark.parametrize("truncated", ["s.low", "s.high", "s.ev", "s.moved"])
def test_a_truncate_in_a_session_without_triggers_is_captured(
    north: str, source: psycopg.Connection[tuple[object, ...]], tmp_path: Path, truncated: str
) -> None:
    """Such as that of a Replicat with SUPPRESSTRIGGERS, whose changes an Extract with GETREPLICATES captures."""
    start = prepare(north, "s.ev")
    source.execute("CREATE TABLE s.high PARTITION OF s.ev FOR VALUES FROM (10) TO (20)")
    source.execute("CREATE TABLE s.moved (id int PRIMARY KEY)")
    source.execute("ALTER TABLE s.ev ATTACH PARTITION s.moved FOR VALUES FROM (20) TO (30)")
    source.execute(f"SET session_replication_role = replica; TRUNCATE {truncated}; RESET session_replication_role")
    assert _captured(north, source, start, tmp_path) == (1, [])


def test_triggers_of_an_earlier_release_are_reported_and_changed(
    north: str, source: psycopg.Connection[tuple[object, ...]], tmp_path: Path
) -> None:
    start = prepare(north, "s.ev")
    source.execute("ALTER TABLE s.low ENABLE TRIGGER ggshell_truncate")
    with session.connect(north) as connection:
        assert trandata.info(connection, TableName("s", "ev")).unnoted == (TableName("s", "low"),)
        assert trandata.add(connection, TableName("s", "ev")).unnoted == ()
    source.execute("SET session_replication_role = replica; TRUNCATE s.low; RESET session_replication_role")
    assert _captured(north, source, start, tmp_path) == (1, [])
