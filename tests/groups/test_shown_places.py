"""Answers and warnings show a log position by the labels of its source, whatever the database."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ggshell.cli.results.requests import ProcessStatus, ProcessStatuses, Transactions
from ggshell.clock import FakeClock
from ggshell.connectors.mysql.source import MysqlSource
from ggshell.connectors.oracle_redo.source import RedoSource
from ggshell.connectors.postgres.source import PostgresSource
from ggshell.connectors.source import SourceDatabase
from ggshell.groups.open_transactions import OpenTransactions
from ggshell.home.typed_fields import plain
from ggshell.parameters.transaction_rules import LongTransactions
from ggshell.pipeline.capture.cache import TransactionCache

PLACE = 12 << 32 | 345
PLACES = {
    PostgresSource: ("LSN C/159", {"lsn": "C/159"}, "C/159"),
    MysqlSource: (
        "LogNum 12, LogPos 345, CSN 000012:000000000000345",
        {"seqno": 12, "rba": 345, "csn": "000012:000000000000345"},
        "000012:000000000000345",
    ),
    RedoSource: (
        f"Redo Thread 1, SCN {PLACE}, Redo Seq 0, Redo RBA 0",
        {"thread": 1, "scn": str(PLACE), "seqno": 0, "rba": 0},
        str(PLACE),
    ),
}
KINDS = pytest.mark.parametrize("kind", PLACES, ids=lambda kind: kind.__name__)


def _source(kind: type[SourceDatabase]) -> Any:
    """A source whose log is not open."""
    source = kind.__new__(kind)
    source._log = None  # type: ignore[attr-defined]
    source._control = None  # type: ignore[attr-defined]
    return source


def _watched(source: Any, folder: Path, messages: list[str]) -> tuple[OpenTransactions, TransactionCache]:
    context: Any = SimpleNamespace(
        clock=FakeClock(),
        group="EXT1",
        verb=lambda *_: None,
        runner=SimpleNamespace(every=lambda *_: None),
        report=SimpleNamespace(event=lambda *line: messages.append(line[2])),
    )
    capture: Any = SimpleNamespace(cache=TransactionCache(1 << 20, folder), past_written=True)
    parameters: Any = SimpleNamespace(long=LongTransactions())
    recovery: Any = SimpleNamespace(control=None)
    opened = OpenTransactions(context, parameters, source, recovery, lambda: capture, lambda: None)
    capture.cache.begin(1 << 32 | 7, PLACE, context.clock.now() - 4_000_000_000)
    return opened, capture.cache


@KINDS
def test_a_long_transaction_is_named_by_the_labels_of_its_source(kind: type[SourceDatabase], tmp_path: Path) -> None:
    messages: list[str] = []
    _watched(_source(kind), tmp_path, messages)[0].warn()
    [message] = messages
    assert f"Items 0, Extract EXT1, {PLACES[kind][0]}, open since " in message


@KINDS
def test_showtrans_shows_the_labels_and_columns_of_the_source(kind: type[SourceDatabase], tmp_path: Path) -> None:
    _, values, _ = PLACES[kind]
    answer = _watched(_source(kind), tmp_path, [])[0].show({})
    result = Transactions("EXT1", tuple(answer["transactions"]), restart=answer["restart"])
    assert dict(zip(result.columns, result.rows[0], strict=True)).items() >= values.items()
    assert "None" not in result.layout
    assert all(f"{part.label}:" in result.layout for part in _source(kind).shown(PLACE).parts)
    assert "LSN" not in result.layout or "lsn" in values


@KINDS
def test_status_shows_the_labels_of_the_source_and_a_column_with_the_csn(kind: type[SourceDatabase]) -> None:
    place = _source(kind).read_position(PLACE)
    answer = {"pid": 7, "status": "At EOF", "read": {"place": plain(place), "timestamp": 0}}
    result = ProcessStatuses((ProcessStatus("EXTRACT", "EXT1", answer),))
    row = dict(zip(result.columns, result.rows[0], strict=True))
    assert row["csn"] == PLACES[kind][2]
    assert "Snapshot" not in result.layout
    assert all(f"    {part.label}: {part.shown}\n" in result.layout for part in place.parts)


def test_a_transaction_whose_undo_slot_is_used_again_has_ended() -> None:
    ended, later, other = 3 << 48 | 5 << 32 | 7, 3 << 48 | 5 << 32 | 9, 3 << 48 | 6 << 32 | 1
    assert _source(RedoSource).orphans((ended, later, other)) == {ended: "its undo slot is reused by 3.5.9"}
    assert _source(MysqlSource).orphans((ended, later, other)) == {}
