"""Counters by table and period."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from typing import Any

import pytest

from ggshell.clock import FakeClock, from_datetime, to_datetime
from ggshell.groups.statistics import KINDS, Section, Statistics, ddl_counts
from ggshell.record.ddl_rules import DdlScope
from ggshell.record.operation import IoType
from ggshell.types import TableName

ITEMS, COPY = TableName("shop", "items"), TableName("copy", "items")
NOON = 1_700_049_600_000_000  # 2023-11-15 12:00:00 UTC


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    os.environ.pop("TZ", None)
    time.tzset()


def counts(statistics: Statistics, section: str) -> dict[str, int]:
    (table,) = statistics.snapshot()["tables"]
    found: dict[str, int] = {kind: count for kind, count in table["counts"][section].items() if count}
    return found


def test_every_kind_of_operation_has_its_counter() -> None:
    statistics = Statistics(FakeClock(NOON))
    for kind, count in ((IoType.INSERT, 1), (IoType.FIELD_COMP, 2), (IoType.KEY_FIELD_COMP, 3), (IoType.DELETE, 4)):
        statistics.add(ITEMS, COPY, kind, count)
    statistics.add(ITEMS, COPY, IoType.PURGE_DATA, 5)
    statistics.upsert(ITEMS, COPY, 6)
    statistics.discard(ITEMS, COPY, IoType.INSERT, 7)
    statistics.ignore(ITEMS, COPY, IoType.DELETE, 8)
    wanted = {"inserts": 1, "updates": 5, "deletes": 4, "truncates": 5, "upserts": 6, "discards": 7, "ignores": 8}
    assert counts(statistics, "total") == wanted
    assert set(wanted) == set(KINDS)
    assert statistics.operations == sum(wanted.values())


def test_ddl_statements_are_counted_by_scope_and_not_as_rows() -> None:
    statistics = Statistics(FakeClock(NOON))
    assert statistics.snapshot()["ddl"] == {}
    statistics.set_selection(ITEMS.__eq__)
    for name, number in ((ITEMS, 3), (COPY, 2), (TableName("", "shop"), 1), (TableName("", ""), 1)):
        statistics.add(name, name, IoType.DDL, number)
    statistics.take_back(ITEMS, ITEMS, IoType.DDL, 1)
    statistics.ddl(DdlScope.MAPPED, excluded=True)
    statistics.ddl_retried()
    statistics.discard(ITEMS, ITEMS, IoType.DDL)
    statistics.ignore(ITEMS, ITEMS, IoType.DDL)
    found = statistics.snapshot()
    wanted = {"mapped": 4, "unmapped": 2, "other": 2, "excluded": 1}
    assert found["ddl"] == {**wanted, "errors": 3, "retried": 1, "discarded": 1, "ignored": 1}
    assert (found["tables"], statistics.operations) == ([], 0)
    assert ddl_counts(found["ddl"], replicat=False) == [
        ("Operations", 9),
        ("Mapped operations", 4),
        ("Unmapped operations", 2),
        ("Other operations", 2),
        ("Excluded operations", 1),
    ]


def test_a_snapshot_is_an_independent_copy_of_plain_data() -> None:
    statistics = Statistics(FakeClock(NOON))
    statistics.add(ITEMS, COPY, IoType.INSERT, 1)
    first: dict[str, Any] = statistics.snapshot()
    assert json.loads(json.dumps(first)) == first
    assert (first["tables"][0]["source"], first["tables"][0]["target"]) == ("shop.items", "copy.items")
    statistics.add(ITEMS, COPY, IoType.INSERT, 1)
    assert first["tables"][0]["counts"]["total"]["inserts"] == 1


def test_hourly_and_daily_sections_begin_at_their_boundaries() -> None:
    clock = FakeClock(NOON - 30 * 60_000_000)
    statistics = Statistics(clock)
    assert statistics.snapshot()["sections"] == dict.fromkeys(map(str, Section), clock.now())
    statistics.add(ITEMS, ITEMS, IoType.INSERT, 1)
    clock.advance(3600)  # 12:30
    statistics.add(ITEMS, ITEMS, IoType.INSERT, 10)
    assert statistics.snapshot()["sections"]["hourly"] == NOON
    assert statistics.snapshot()["sections"]["daily"] == NOON - 30 * 60_000_000
    assert [counts(statistics, section)["inserts"] for section in Section] == [11, 11, 10, 11]
    clock.advance(12 * 3600)  # the next day, 00:30
    midnight = from_datetime(to_datetime(clock.now()).replace(minute=0))
    assert statistics.snapshot()["sections"]["daily"] == midnight
    assert counts(statistics, "daily") == counts(statistics, "hourly") == {}
    assert counts(statistics, "total") == counts(statistics, "latest") == {"inserts": 11}


def test_reset_restarts_only_the_latest_section() -> None:
    clock = FakeClock(NOON)
    statistics = Statistics(clock)
    statistics.add(ITEMS, ITEMS, IoType.INSERT, 3)
    clock.advance(5)
    statistics.reset()
    assert counts(statistics, "latest") == {}
    assert counts(statistics, "total") == {"inserts": 3}
    assert statistics.snapshot()["sections"]["latest"] == NOON + 5_000_000


def test_a_clock_set_back_loses_nothing() -> None:
    clock = FakeClock(NOON)
    statistics = Statistics(clock)
    statistics.add(ITEMS, ITEMS, IoType.INSERT, 3)
    clock.advance(-7200)
    statistics.add(ITEMS, ITEMS, IoType.INSERT, 3)
    assert counts(statistics, "hourly") == {"inserts": 6}
