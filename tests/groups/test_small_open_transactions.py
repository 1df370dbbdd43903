"""A small open transaction is shown and causes a warning, although the server has sent nothing of it yet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from pipelines import Pipeline
from processes import until

from ggshell.clock import FakeClock
from ggshell.connectors.source import Unread
from ggshell.groups.open_transactions import OpenTransactions
from ggshell.parameters.transaction_rules import LongTransactions
from ggshell.pipeline.capture.cache import TransactionCache


@pytest.fixture
def pipeline(tmp_path: Path, north: str, south: str) -> Iterator[Pipeline]:
    pipeline = Pipeline(tmp_path / "home", north, south)
    yield pipeline
    pipeline.close()


def test_showtrans_shows_an_open_transaction_that_has_written_one_row(pipeline: Pipeline) -> None:
    pipeline.add()
    pipeline.start("ext1")
    with psycopg.connect(pipeline.north) as small, psycopg.connect(pipeline.north, autocommit=True) as other:
        small.execute("INSERT INTO a.items VALUES (1, 'one', 1)")
        (xid,) = small.execute("SELECT pg_current_xact_id()::text").fetchone() or ("",)
        other.execute("BEGIN")
        other.execute("INSERT INTO a.items VALUES (2, 'two', 2)")
        other.execute("PREPARE TRANSACTION 'later'")
        try:
            until("Extract follows the log", lambda: xid in pipeline.run("SEND EXTRACT ext1, SHOWTRANS"))
            shown = pipeline.run("SEND EXTRACT ext1, SHOWTRANS")
            assert f"nothing sent yet (pid {small.info.backend_pid}, user postgres)" in shown
            assert "nothing sent yet (prepared, user postgres)" in shown
            assert xid in pipeline.run(f"SEND EXTRACT ext1, SHOWTRANS {xid} TABULAR")
            assert "prepared" not in pipeline.run("SEND EXTRACT ext1, SHOWTRANS COUNT 1")
            small.commit()
        finally:
            other.execute("COMMIT PREPARED 'later'")
    assert "No transactions found." in pipeline.run("SEND EXTRACT ext1, SHOWTRANS")


def test_a_long_open_transaction_that_was_not_sent_yet_causes_a_warning(tmp_path: Path) -> None:
    messages: list[str] = []
    clock = FakeClock()
    young, old = (Unread(xid, clock.now() - age * 1_000_000, xid, "app") for xid, age in ((7, 3590), (8, 3610)))
    context = SimpleNamespace(
        clock=clock,
        group="EXT1",
        verb=lambda *_: None,
        runner=SimpleNamespace(every=lambda *_: None),
        report=SimpleNamespace(event=lambda *line: messages.append(line[2])),
    )
    source = SimpleNamespace(bounded=None, transaction_id=str, unread=lambda known: [old, young])
    parameters = SimpleNamespace(long=LongTransactions())
    capture = SimpleNamespace(cache=TransactionCache(1 << 20, tmp_path))
    watched: Any = OpenTransactions(context, parameters, source, None, lambda: capture, lambda: None)  # type: ignore[arg-type,return-value]
    watched.warn()
    assert [line.partition(", open since")[0] for line in messages] == [
        "Long Running Transaction: XID 8, Items 0, Extract EXT1, pid 8, user app"
    ]
