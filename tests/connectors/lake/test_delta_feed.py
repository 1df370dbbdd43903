"""The change data feed of Delta tables: replayed from the first version, it gives the table after each batch."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from batches import Row
from deliveries import BEGIN, Deliveries
from lakes import Lake, image, read_table

from ggshell.clock import FakeClock
from ggshell.connectors.lake.forms.delta_maintenance import DeltaMaintenance
from ggshell.connectors.lake.forms.delta_state import FEED_SETTING, DeltaState
from ggshell.connectors.lake.target import TableForm
from ggshell.parameters.lake_tables import Deletes, LakeLayouts, PartitionField, TableLayout, Transform
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.image import encode_image, join_key_update
from ggshell.record.operation import IoType
from ggshell.types import TableName, TrailPosition

PARTS = TableDefinition(
    TableName("hr", "parts"),
    (
        Column("id", "integer", 23, False, 1),
        Column("code", "text", 25, False, 2),
        Column("n", "smallint", 21, True, 3),
        Column("made", "date", 1082, True, 4),
    ),
    (0,),
)
TYPES = ("integer", "bigint", "numeric(30,4)", "text")
PARTITIONS = (PartitionField("n"), PartitionField("made", Transform.MONTH), PartitionField("id", Transform.BUCKET, 2))
LAYOUTS = {
    "rows": TableLayout(feed=True),
    "soft deletes": TableLayout(feed=True, deletes=Deletes.MARKED, cluster=("code",)),
    "history": TableLayout(feed=True, deletes=Deletes.CLOSED),
    "partitions": TableLayout(PARTITIONS, feed=True, deletes=Deletes.MARKED),
}
GONE = ("delete", "update_preimage")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A lake that only Delta's own library reads."""
    return Lake(tmp_path, TableForm.DELTA)


class Parts:
    """The source table and its lake: each step is a batch, or maintenance of the lake."""

    def __init__(self, lake: Lake, layout: TableLayout, seed: int) -> None:
        self._deliveries, self._lake, self._layout = Deliveries(lake), lake, layout
        self._deliveries.layouts = LakeLayouts((("hr.*", layout),))
        self._end, self._number = BEGIN, 0
        self._random = random.Random(seed)
        self._defined, self._types = PARTS, list(TYPES)
        self._rows: dict[int, tuple[str | None, ...]] = {}
        self._next = 0

    @property
    def location(self) -> str:
        return f"{self._lake.target.location}/current/{PARTS.name}"

    def batch(self, *rows: Row) -> None:
        end = self._lake.write(list(rows))
        self._deliveries.batch(self._number, self._end, end)
        self._end, self._number = TrailPosition(*end), self._number + 1

    def step(self) -> str:
        """A random step; returns its name."""
        steps: list[Callable[[], None]] = [self.change, self.change, self.change, self.merge]
        steps += [self.retype, self.fill, self.rekey, self.truncate, self.compact]
        chosen = self._random.choice(steps)
        chosen()
        return chosen.__name__

    # Steps

    def load(self, count: int = 150) -> None:
        self.batch(*(self._inserted() for _ in range(count)))

    def change(self) -> None:
        """Change a few rows, so that files are marked and not rewritten."""
        self.batch(*self._changes())

    def merge(self) -> None:
        """Change many rows, so that files are rewritten."""
        self.batch(*(row for _ in range(12) for row in self._changes()))

    def retype(self) -> None:
        if self._types:
            columns = list(self._defined.columns)
            columns[2] = columns[2]._replace(type_name=self._types.pop(0), type_id=0)
            self._defined = self._defined._replace(columns=tuple(columns))
        self.batch(*self._changes())

    def fill(self) -> None:
        """Add a column with a default."""
        number = len(self._defined.columns) + 1
        column = Column(f"c{number}", "integer", 23, True, number, missing=str(number))
        self._defined = self._defined._replace(columns=(*self._defined.columns, column))
        self._rows = {key: (*values, str(number)) for key, values in self._rows.items()}
        self.batch(*self._changes())

    def rekey(self) -> None:
        self._defined = self._defined._replace(key=(1 - self._defined.key[0],))
        self.batch(*self._changes())

    def truncate(self) -> None:
        self._rows.clear()
        self.batch(Row(self._defined, IoType.PURGE_DATA, b""), *(self._inserted() for _ in range(100)))

    def compact(self) -> None:
        DeltaMaintenance(self.location, self._layout, FakeClock()).compact(128 << 20)

    # Rows

    def _changes(self) -> list[Row]:
        found = [self._inserted(), self._inserted()]
        for number in self._random.sample(sorted(self._rows), min(3, len(self._rows))):
            found.append(self._random.choice([self._updated, self._deleted, self._moved])(number))
        return found

    def _inserted(self) -> Row:
        self._next += 1
        self._rows[self._next] = self._values(self._next)
        return Row(self._defined, IoType.INSERT, image(*self._rows[self._next]))

    def _values(self, number: int) -> tuple[str | None, ...]:
        more = [str(self._random.randrange(9)) for _ in self._defined.columns[4:]]
        own = (self._random.choice([None, "1", "2"]), self._random.choice(["2026-10-31", "2026-11-01"]))
        return (str(number), f"code {number}", *own, *more)

    def _updated(self, number: int) -> Row:
        self._rows[number] = self._values(number)
        return Row(self._defined, IoType.FIELD_COMP, image(*self._rows[number]))

    def _deleted(self, number: int) -> Row:
        return Row(self._defined, IoType.DELETE, image(*self._rows.pop(number)))

    def _moved(self, number: int) -> Row:
        self._next += 1
        before = self._rows.pop(number)
        self._rows[self._next] = (str(self._next), f"code {self._next}", *before[2:])
        images = (
            encode_image([(place, (row[place] or "").encode()) for place in (0, 1)])
            for row in (before, self._rows[self._next])
        )
        return Row(self._defined, IoType.KEY_FIELD_COMP, join_key_update(*images))

    # What readers find

    def rows(self) -> Counter[tuple[Any, ...]]:
        found = read_table(self._lake.target, PARTS.name)
        assert found is not None
        return Counter(_tuples(found.to_pylist()))

    def feed(self) -> list[dict[str, Any]]:
        from deltalake import DeltaTable

        found: list[dict[str, Any]] = pa.table(DeltaTable(self.location).load_cdf(starting_version=0)).to_pylist()
        return found

    def replayed(self) -> Counter[tuple[Any, ...]]:
        """The rows after all changes of the feed. Each row that goes must be there before."""
        rows, feed = Counter[tuple[Any, ...]](), self.feed()
        for version in sorted({row["_commit_version"] for row in feed}):
            mine = [row for row in feed if row["_commit_version"] == version]
            rows.subtract(_tuples([row for row in mine if row["_change_type"] in GONE]))
            assert not -rows, version
            rows.update(_tuples([row for row in mine if row["_change_type"] not in GONE]))
        return +rows


def _tuples(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    about = ("_change_type", "_commit_version", "_commit_timestamp")
    return [tuple(value for name, value in sorted(row.items()) if name not in about) for row in rows]


@pytest.mark.parametrize("layout", list(LAYOUTS))
@pytest.mark.parametrize("seed", range(3))
def test_the_replayed_feed_is_the_table_after_each_batch(lake: Lake, layout: str, seed: int) -> None:
    parts = Parts(lake, LAYOUTS[layout], seed)
    parts.load()
    steps = list[str]()
    for _ in range(10):
        steps.append(parts.step())
        assert parts.replayed() == parts.rows(), steps


def test_a_retyped_table_with_deletion_vectors_has_each_row_once_in_the_feed(lake: Lake) -> None:
    parts = Parts(lake, LAYOUTS["soft deletes"], 0)
    parts.load(1000)
    parts.change()
    assert any(file.deleted for file in DeltaState(parts.location).refresh().files.values())
    before = sum(parts.rows().values())
    parts.retype()
    kinds = Counter(row["_change_type"] for row in parts.feed() if row["_commit_version"] == 2)
    assert kinds["update_preimage"] + kinds["delete"] == before
    assert kinds["update_postimage"] + kinds["insert"] == sum(parts.rows().values())
    assert parts.replayed() == parts.rows()


def test_a_commit_that_changes_rows_and_does_not_list_them_is_refused(lake: Lake) -> None:
    parts = Parts(lake, LAYOUTS["rows"], 0)
    parts.load(1)
    state = DeltaState(parts.location).refresh()
    assert state.configuration[FEED_SETTING] == "true"
    (file,) = state.files.values()
    with pytest.raises(ValueError, match="does not list them in the change data feed"):
        state.commit([file.removed(0)], "WRITE", 0)
    assert state.commit([file.removed(0, changes=False)], "OPTIMIZE", 0)
