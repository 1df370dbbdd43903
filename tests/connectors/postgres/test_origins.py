"""A Replicat's sessions have replication origins, and Extract or the server excludes transactions that have one."""

from __future__ import annotations

from pathlib import Path

import pytest
from connectors.postgres.slot_reading import capturing, collect, end_of, prepare, values
from pipeline.apply.hand_made import CHECKPOINTS, Replicats
from processes import until
from servers import all_origins_in_use

from ggshell.connectors.postgres import log, session
from ggshell.connectors.postgres.origins import Origin, drop_origins, take_origin
from ggshell.connectors.postgres.target import PostgresTarget
from ggshell.types import TrailPosition

MARK = "SELECT pg_replication_origin_create('t_{0}'), pg_replication_origin_session_setup('t_{0}')"
UNMARK = "SELECT pg_replication_origin_session_reset(), pg_replication_origin_drop('t_{0}')"
EXISTING = "SELECT roname FROM pg_replication_origin WHERE roname = ANY(%s) ORDER BY 1"


@pytest.mark.parametrize("since", [log.ORIGINS_SINCE, 1 << 30], ids=["server", "older server"])
@pytest.mark.parametrize("rows", [1, 20_000], ids=["small", "large"])
def test_the_changes_of_a_replicat_are_excluded(
    monkeypatch: pytest.MonkeyPatch, north: str, tmp_path: Path, since: int, rows: int
) -> None:
    """A server of version 14 or later behaves like one without the option ``origin`` if the option is not used."""
    monkeypatch.setattr(log, "ORIGINS_SINCE", since)
    with session.connect(north) as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
        start = prepare(north, "public.t")
        connection.execute("SET logical_decoding_work_mem = '64kB'")
        connection.execute("INSERT INTO t VALUES (1, 'own')")
        connection.execute(MARK.format(rows))
        connection.execute("INSERT INTO t SELECT n, repeat('replicated', 10) FROM generate_series(2, %s) n", [rows + 1])
        connection.execute("UPDATE t SET v = 'replicated' WHERE id = 1")
        connection.execute(UNMARK.format(rows))
        connection.execute("DELETE FROM t WHERE id = 2")
    with capturing(north, start, tmp_path) as capture:
        found = [values(row) for row in collect(capture, end_of(north))]
    assert found == [[(0, b"1"), (1, b"own")], [(0, b"2")]]


def test_the_session_marks_its_changes_with_the_origin_of_the_group(replicats: Replicats) -> None:
    replicats.start()
    assert replicats.target is not None
    assert replicats.target.origin == Origin("ggs_rep1")
    other = PostgresTarget(replicats.dsn, "rep1", "/elsewhere", CHECKPOINTS, TrailPosition(0, 0))
    assert other.origin == Origin(f"ggs_rep1_{other.key:x}")
    both = ["ggs_rep1", other.origin.name]
    with session.connect(replicats.dsn) as connection:

        def left() -> list[str]:
            drop_origins(connection, "rep1", other.key)
            return [name for (name,) in connection.execute(EXISTING, [both])]

        assert left() == both, "origins in use were dropped"
        other.close()
        # The server takes a moment to notice that a session has ended.
        until("the origin of the session that has ended is dropped", lambda: left() == ["ggs_rep1"])
        replicats.close()
        until("both origins are dropped", lambda: left() == [])


def test_the_origins_of_appliers_are_dropped_with_those_of_their_group(north: str) -> None:
    names = [f"ggs_{name}" for name in ("own1", "own1_0", "own1_12", "own1_12_a", "own10", "own11_1", "own1_12_b")]
    with session.connect(north) as connection:
        for name in names:
            connection.execute("SELECT pg_replication_origin_create(%s)", [name])
        drop_origins(connection, "OWN1", 10)
        left = [name for (name,) in connection.execute(EXISTING, [names])]
        connection.execute("SELECT pg_replication_origin_drop(name) FROM unnest(%s::text[]) name", [left])
    assert left == ["ggs_own10", "ggs_own11_1", "ggs_own1_12_b"]


def test_a_user_without_the_privilege_has_no_origin(north: str) -> None:
    with session.connect(north) as connection:
        connection.execute("SET ROLE pg_monitor")
        found = take_origin(connection, "own1", 7)
        drop_origins(connection, "own1", 7)
    assert found == Origin("", "its user cannot execute the functions of replication origins")


def test_a_session_has_no_origin_while_all_are_in_use(north: str) -> None:
    with session.connect(north) as connection:
        drop_origins(connection, "own1", 7)
        with all_origins_in_use(connection):
            assert take_origin(connection, "own1", 7) == Origin("", "all replication origins of the server are in use")
        assert take_origin(connection, "own1", 7) == Origin("ggs_own1")
        connection.execute("SELECT pg_replication_origin_session_reset()")
        drop_origins(connection, "own1", 7)
        assert connection.execute(EXISTING, [["ggs_own1"]]).fetchall() == []
