"""Transactions with a replication origin are excluded, either by the server or by Extract."""

from __future__ import annotations

from pathlib import Path

import pytest
from connectors.postgres.slot_reading import capturing, collect, end_of, prepare, values

from ggshell.connectors.postgres import log, session

MARK = "SELECT pg_replication_origin_create('t_{0}'), pg_replication_origin_session_setup('t_{0}')"
UNMARK = "SELECT pg_replication_origin_session_reset(), pg_replication_origin_drop('t_{0}')"


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
