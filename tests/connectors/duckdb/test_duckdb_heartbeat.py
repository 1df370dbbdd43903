"""Heartbeats in a DuckDB target: the same columns and rows as in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from ggshell.connectors.duckdb import heartbeat
from ggshell.errors import ConflictError
from ggshell.monitoring.lag_archive import ArchiveRow
from ggshell.pipeline.heartbeat.names import HEARTBEAT_COLUMNS, HISTORY_COLUMNS, HeartbeatNames
from ggshell.pipeline.heartbeat.row import Beat

NAMES = HeartbeatNames("gg admin")
SECOND = 1_000_000
SENT = 1_790_000_000 * SECOND
Engine = duckdb.DuckDBPyConnection


@pytest.fixture
def engine() -> Iterator[Engine]:
    with duckdb.connect() as connection:
        heartbeat.create(connection, NAMES)
        yield connection


def rows(engine: Engine, table: str) -> list[dict[str, Any]]:
    found = engine.execute(f'SELECT * FROM "gg admin".{table}')
    heads = [column[0] for column in found.description or ()]
    return [dict(zip(heads, row, strict=True)) for row in found.fetchall()]


def arrived(sent: int = SENT, **values: Any) -> ArchiveRow:
    beat = Beat(
        "duck", sent, "north", "EXT1", "DP1", "REP1", sent, sent + SECOND, sent + 121 * SECOND, sent + 2 * SECOND
    )
    return ArchiveRow(beat._replace(**values), sent + 3 * SECOND)


def test_a_heartbeat_fills_the_four_objects(engine: Engine) -> None:
    heartbeat.receive(engine, NAMES, [arrived(incoming_extract_restart_csn="7", incoming_extract_restart_ts=SENT)])
    (row,), (history,), (lag,), (parts,) = (
        rows(engine, name) for name in ("gg_heartbeat", "gg_heartbeat_history", "gg_lag", "gg_lag_history")
    )
    assert tuple(row) == HEARTBEAT_COLUMNS
    assert tuple(history) == HISTORY_COLUMNS
    assert (lag["incoming_path"], lag["incoming_lag"], lag["outgoing_path"]) == (
        "==> EXT1 ==> DP1 ==> REP1 ==>",
        3.0,
        None,
    )
    assert lag["remote_extract_restart_csn"] == "7"
    steps = ("extract", "routine", "replicat_read", "replicat")
    assert [parts[f"incoming_{step}_lag"] for step in steps] == [1.0, 120.0, -119.0, 1.0]
    assert parts["incoming_lag"] == 3.0


def test_each_path_has_one_row_and_a_complete_path_replaces_a_partial_one(engine: Engine) -> None:
    known = {"outgoing_extract": "EXT2", "outgoing_replicat": "REP2"}
    for number, values in enumerate(({}, {}, known, {}, known)):
        heartbeat.receive(engine, NAMES, [arrived(SENT + number * SECOND, **values)])
        (row,) = rows(engine, "gg_heartbeat")
        assert row["outgoing_replicat"] == ("REP2" if number >= 2 else None)
        assert row["heartbeat_timestamp"] == row["incoming_heartbeat_ts"]
    assert len(rows(engine, "gg_heartbeat_history")) == 4


def test_history_is_purged_and_the_objects_are_deleted(engine: Engine) -> None:
    heartbeat.receive(engine, NAMES, [arrived(), arrived(SENT + 10 * SECOND)])
    assert heartbeat.purge(engine, NAMES, SENT + 5 * SECOND) == 1
    with pytest.raises(ConflictError):
        heartbeat.create(engine, NAMES)
    heartbeat.drop(engine, NAMES)
    assert heartbeat.create(engine, NAMES)
