"""Opening a slot: no connection stays open if a later step fails."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ggshell.clock import FakeClock
from ggshell.connectors.postgres import log, session, wire
from ggshell.connectors.postgres.log import CapturedRows, PostgresLog, SlotStart
from ggshell.errors import ConnectionLostError


class Connection:
    """A connection that only says whether it is open."""

    info = SimpleNamespace(server_version=180_000)

    def __init__(self) -> None:
        self.closed = False

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize("step", ["connect", "history", "start"])
def test_connections_are_closed_if_a_step_fails(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: the first connection stayed open if the one for replication failed."""
    control, replication = Connection(), Connection()

    def result_of(name: str, value: Any) -> Any:
        if name == step:
            raise ConnectionLostError("the database is not responding")
        return value

    monkeypatch.setattr(log, "_checked", lambda *_: (control, SimpleNamespace(confirmed=0)))
    monkeypatch.setattr(session, "connect", lambda *_, **__: result_of("connect", replication))
    monkeypatch.setattr(log, "require_same_history", lambda *_: result_of("history", None))
    monkeypatch.setattr(wire, "start", lambda *_: result_of("start", (None, None)))
    with pytest.raises(ConnectionLostError):
        PostgresLog.open("", SlotStart("s", 0), CapturedRows(lambda _: True), FakeClock())
    assert control.closed
    assert replication.closed is (step != "connect")
