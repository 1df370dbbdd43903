"""Maintenance of Iceberg tables, beside a delivery that goes on."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from test_iceberg_rows import Orders

from ggshell.connectors.lake.file_plan import WriteRules
from ggshell.connectors.lake.forms.iceberg_catalog import open_catalog
from ggshell.connectors.lake.forms.iceberg_maintenance import IcebergMaintenance
from ggshell.connectors.lake.forms.iceberg_snapshot import Snapshots
from ggshell.connectors.lake.forms.table_maintenance import Compacted

TARGET = 1 << 20
STEPS = ("write", "commit", "expire", "remove")


class Ended(BaseException):
    """The process ends here."""


@pytest.fixture
def orders(tmp_path: Path) -> Orders:
    return Orders(tmp_path)


def maintenance(orders: Orders, step: Callable[[str], None] = lambda _: None) -> IcebergMaintenance:
    """The maintenance as another process does it: with a catalog of its own."""
    return IcebergMaintenance(open_catalog(orders.cache.parent).load_table("shop.orders"), step)


def many_files(orders: Orders, count: int = 4) -> None:
    """A table of several files with deleted rows, which no write merges."""
    for number in range(count):
        orders.table.append(rows_of(range(number * 1000, number * 1000 + 1000), "first"))
        orders.expected |= dict.fromkeys(range(number * 1000, number * 1000 + 1000), "first")
    orders.replace({5: "second", 2500: "second"}, gone=[6, 1007])


def rows_of(keys: range, text: str) -> pa.Table:
    from test_iceberg_rows import rows

    return rows(dict.fromkeys(keys, text))


def test_compaction_leaves_one_file_and_no_deletes(orders: Orders) -> None:
    many_files(orders)
    before = len(orders.files())
    assert maintenance(orders).compact(TARGET) == Compacted(before, 1)
    assert orders.found() == orders.expected
    live = Snapshots(orders.table.io).read(orders.table.metadata)
    assert (len(live.data), live.deletes, live.dead) == (1, {}, {})
    assert maintenance(orders).compact(TARGET) == Compacted(0, 0)
    assert orders.table.properties["ggshell.LAKE"] == "3:100"


def test_delivery_between_reading_and_commit_of_a_compaction_loses_nothing(orders: Orders) -> None:
    orders.rules = WriteRules(large_bytes=0)
    orders.open()
    many_files(orders)
    writes = iter(range(3))

    def deliver(step: str) -> None:
        if step == "commit" and (number := next(writes, None)) is not None:
            orders.replace({number: f"meanwhile {number}", 9000 + number: "new"}, gone=[1500 + number, 5])

    assert maintenance(orders, deliver).compact(TARGET).into == 1
    assert orders.found() == orders.expected
    assert orders.expected[1] == "meanwhile 1"
    assert 1502 not in orders.expected
    orders.replace({3999: "after"}, gone=[0, 2])
    assert orders.found() == orders.expected
    maintenance(orders).compact(TARGET)
    assert orders.found() == orders.expected


def test_a_compaction_takes_no_rows_from_a_file_that_delivery_has_rewritten(orders: Orders) -> None:
    many_files(orders)

    def deliver(step: str) -> None:
        if step == "commit" and 4_000 not in orders.expected:
            orders.replace({4_000: "new"}, gone=range(2000, 2900))

    assert maintenance(orders, deliver).compact(TARGET).into == 1
    assert orders.found() == orders.expected
    orders.replace({4_001: "new", 3_500: "second"}, gone=[100])
    assert orders.found() == orders.expected


def test_a_compaction_is_given_up_if_the_table_is_replaced(orders: Orders) -> None:
    many_files(orders)

    def deliver(step: str) -> None:
        if step == "commit":
            with orders.table.refresh().transaction() as transaction:
                orders.changes.replace(transaction, rows_of(range(3), "only"), None, {})

    assert maintenance(orders, deliver).compact(TARGET) == Compacted(0, 0)
    assert orders.found() == dict.fromkeys(range(3), "only")


@pytest.mark.parametrize("ends", STEPS)
def test_a_maintenance_that_is_killed_at_any_step_harms_nothing(orders: Orders, ends: str) -> None:
    many_files(orders)

    def end(step: str) -> None:
        if step == ends:
            raise Ended

    def maintain(step: Callable[[str], None]) -> None:
        each = maintenance(orders, step)
        each.compact(TARGET)
        each.expire(0, 1)
        each.remove(each.unreferenced())

    with pytest.raises(Ended):
        maintain(end)
    assert orders.found() == orders.expected
    orders.replace({5: "third"}, gone=[7])
    maintain(lambda _: None)
    assert orders.found() == orders.expected
    assert maintenance(orders).unreferenced() == []
    assert len(orders.table.refresh().snapshots()) == 1


def test_two_maintenances_at_once_compact_once(orders: Orders) -> None:
    many_files(orders)
    other: list[Compacted] = []

    def second(step: str) -> None:
        if step == "commit" and not other:
            other.append(Compacted(-1, -1))
            other.append(maintenance(orders).compact(TARGET))

    assert maintenance(orders, second).compact(TARGET) == Compacted(0, 0)
    assert other[1].into == 1
    assert orders.found() == orders.expected


def test_a_reader_that_has_planned_continues_across_compaction_and_expiry(orders: Orders) -> None:
    many_files(orders)
    expected = dict(orders.expected)
    reader = open_catalog(orders.cache.parent).load_table("shop.orders").scan().to_arrow_batch_reader()
    first = reader.read_next_batch()
    each = maintenance(orders)
    each.compact(TARGET)
    assert each.expire(1 << 60, 1) > 0
    assert each.unreferenced() != []
    orders.replace({}, gone=range(3000))
    found = pa.Table.from_batches([first, *reader])
    assert dict(zip(found["id"].to_pylist(), found["odd name"].to_pylist(), strict=True)) == expected


def test_snapshots_expire_by_age_and_by_number(orders: Orders) -> None:
    rng = random.Random(5)
    for number in range(8):
        orders.replace({rng.randrange(100): f"{number}"})
    history = orders.table.history()
    assert maintenance(orders).expire(history[3].timestamp_ms * 1000, 100) <= 3
    assert maintenance(orders).expire(0, 2) >= 3
    assert len(orders.table.refresh().snapshots()) == 2
    assert orders.found() == orders.expected


@pytest.mark.slow
def test_a_table_has_few_files_after_a_day_of_commits(orders: Orders, pytestconfig: pytest.Config) -> None:
    """A simulated day of ten rows a second, in 4 commits an hour (``--rounds``: more), with a maintenance every hour."""
    rng = random.Random(24)
    commits = 4 * (pytestconfig.getoption("rounds") or 1)
    key = most = 0
    for _ in range(24):
        for _ in range(commits):
            fresh = range(key, key + 36_000 // commits * 4 // 10)
            old = [rng.randrange(fresh.start + 1) for _ in range(36_000 // commits * 6 // 10)]
            orders.replace(dict.fromkeys([*fresh, *old], f"{key}"))
            key = fresh.stop
            most = max(most, len(orders.files()))
        each = maintenance(orders)
        each.compact(128 << 20)
        each.expire(0, 50)
    assert len(orders.files()) <= most <= 50
    assert orders.found() == orders.expected
