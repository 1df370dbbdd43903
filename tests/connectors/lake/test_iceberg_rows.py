"""Rows of an Iceberg table are replaced by key in one snapshot each, and large files are not rewritten."""

from __future__ import annotations

import random
from collections.abc import Collection
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table

from ggshell.connectors.lake.file_plan import WriteRules
from ggshell.connectors.lake.forms.iceberg_catalog import open_catalog
from ggshell.connectors.lake.forms.iceberg_rows import RowChanges
from ggshell.connectors.lake.forms.iceberg_snapshot import Snapshots
from ggshell.parameters.lake_tables import TableLayout

SCHEMA = pa.schema([("_key", pa.string()), ("id", pa.int64()), ("odd name", pa.string()), ("half", pa.int32())])
TARGET = 64 << 20


def rows(values: dict[int, str]) -> pa.Table:
    return pa.table(
        [[str(key) for key in values], list(values), list(values.values()), [key % 2 for key in values]], schema=SCHEMA
    )


class Orders:
    """A table, the rows that it should have, and the process that changes it."""

    def __init__(self, folder: Path, schema: pa.Schema = SCHEMA) -> None:
        catalog = open_catalog(folder)
        catalog.create_namespace("shop")
        self.table: Table = catalog.create_table("shop.orders", schema)
        self.expected: dict[int, str] = {}
        self.cache = folder / "cache"
        self.rules = WriteRules()
        self.open()

    def open(self) -> None:
        self.changes = RowChanges(self.table.io, self.cache, TableLayout(target_bytes=TARGET), self.rules)

    def replace(self, values: dict[int, str], gone: Collection[int] = ()) -> None:
        keys = pa.array([str(key) for key in (*values, *gone)], pa.string())
        with self.table.refresh().transaction() as transaction:
            self.changes.replace(transaction, rows(values), keys, {"ggshell.batch": "1"})
            transaction.set_properties({"ggshell.LAKE": "3:100"})
        self.expected |= values
        for key in gone:
            self.expected.pop(key, None)

    def found(self) -> dict[int, str]:
        read = self.table.refresh().scan().to_arrow()
        assert read.num_rows == len(set(read["id"].to_pylist()))
        return dict(zip(read["id"].to_pylist(), read["odd name"].to_pylist(), strict=True))

    def files(self) -> set[str]:
        return set(Snapshots(self.table.io).read(self.table.metadata).data)


@pytest.fixture
def orders(tmp_path: Path) -> Orders:
    return Orders(tmp_path)


def test_a_change_of_one_row_is_one_snapshot_that_rewrites_no_large_file(orders: Orders) -> None:
    orders.replace(dict.fromkeys(range(3000), "first"))
    (large,) = orders.files()
    orders.replace({7: "second"}, gone=[8, 9_999])
    assert len(orders.table.history()) == 2
    assert large in orders.files()
    assert orders.found() == orders.expected
    snapshot = orders.table.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    said = snapshot.summary.additional_properties
    assert (said["total-position-deletes"], said["ggshell.batch"], said["total-records"]) == ("2", "1", "3001")
    assert orders.table.properties["ggshell.LAKE"] == "3:100"


def test_the_rows_of_keys_are_read_as_they_are_now(orders: Orders) -> None:
    orders.replace(dict.fromkeys(range(1000), "first"))
    orders.replace({5: "second"}, gone=[6])
    orders.open()
    found = orders.changes.rows(orders.table, pa.array(["5", "6", "7", "none"]))
    assert sorted(zip(found["id"].to_pylist(), found["odd name"].to_pylist(), strict=True)) == [
        (5, "second"),
        (7, "first"),
    ]


def test_many_random_writes_give_the_rows_of_the_writes_and_few_files(orders: Orders) -> None:
    rng = random.Random(11)
    orders.replace(dict.fromkeys(range(20000), "start"))
    for number in range(40):
        keys = rng.sample(range(21_000), 400)
        if number % 10 == 9:
            orders.open()
        orders.replace(dict.fromkeys(keys[40:], f"{number}"), gone=keys[:40])
    assert orders.found() == orders.expected
    live = Snapshots(orders.table.io).read(orders.table.metadata)
    assert len(live.data) < 12
    assert len(live.deletes) <= 2
    assert len(live.manifests) <= 3
    assert {path for marked in live.marked.values() for path in marked} & live.data.keys() == set(live.dead)
    orders.changes.rows(orders.table, pa.array(["1"]))
    assert len(list(orders.cache.iterdir())) == len(live.data)


def test_a_file_with_too_many_deleted_rows_is_rewritten_without_them(orders: Orders) -> None:
    orders.replace(dict.fromkeys(range(1000), "first"))
    (before,) = orders.files()
    orders.replace({}, gone=range(300))
    assert before not in orders.files()
    live = Snapshots(orders.table.io).read(orders.table.metadata)
    assert (live.deletes, sum(file.record_count for file in live.data.values())) == ({}, 700)
    assert orders.found() == orders.expected


def test_a_column_added_later_and_a_widened_one_are_seen_in_rows_that_move(orders: Orders) -> None:
    from pyiceberg.types import LongType, StringType

    orders.replace(dict.fromkeys(range(1000), "first"))
    with orders.table.update_schema() as update:
        update.update_column("half", LongType())
        update.add_column("note", StringType())
        update.rename_column("odd name", "name")
    orders.open()
    with orders.table.transaction() as transaction:
        fresh = pa.table({"_key": ["3"], "id": pa.array([3]), "name": ["x"], "half": pa.array([1]), "note": ["seen"]})
        orders.changes.replace(transaction, fresh, pa.array([str(key) for key in range(500)]), {})
    found = orders.table.refresh().scan().to_arrow().sort_by("id")
    assert found["id"].to_pylist() == [3, *range(500, 1000)]
    assert found["note"].to_pylist()[:2] == ["seen", None]
    assert found["name"].to_pylist()[:2] == ["x", "first"]


def test_rows_of_a_partitioned_table_move_between_partitions(orders: Orders) -> None:
    with orders.table.update_spec() as update:
        update.add_identity("half")
    orders.open()
    orders.replace(dict.fromkeys(range(2000), "first"))
    assert len(orders.files()) == 2
    with orders.table.transaction() as transaction:
        moved = rows({4: "moved"}).set_column(3, "half", pa.array([1], pa.int32()))
        orders.changes.replace(transaction, moved, pa.array(["4", "5"]), {})
    found = orders.table.refresh().scan("half = 1").to_arrow()
    assert 4 in found["id"].to_pylist()
    assert 5 not in found["id"].to_pylist()
    assert orders.table.scan().to_arrow().num_rows == 1999


def test_copies_of_a_table_s_metadata_share_its_snapshots(orders: Orders) -> None:
    """PyIceberg makes several in each commit."""
    for number in range(3):
        orders.replace({number: "x"})
    metadata = orders.table.refresh().metadata
    copied = metadata.model_copy(deep=True)
    assert copied == metadata
    for entries in ("snapshots", "snapshot_log", "metadata_log"):
        before, after = getattr(metadata, entries), getattr(copied, entries)
        assert len(before) > 1
        assert after is not before
        assert list(map(id, after)) == list(map(id, before))


def test_a_write_planned_for_an_older_snapshot_is_refused(orders: Orders) -> None:
    orders.replace(dict.fromkeys(range(100), "first"))
    other = open_catalog(orders.cache.parent).load_table("shop.orders")
    with pytest.raises(CommitFailedException), orders.table.transaction() as transaction:
        orders.changes.replace(transaction, rows({1: "lost"}), pa.array(["1"]), {})
        other.append(rows({500: "other"}))
    orders.expected[500] = "other"
    assert orders.found() == orders.expected
    orders.replace({1: "again"})
    assert orders.found() == orders.expected
