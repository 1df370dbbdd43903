"""Delta tables with deletion vectors: small commits, checkpoints of the log, and compaction beside delivery."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from lakes import PEOPLE
from pyroaring import BitMap
from readers import every_reader_agrees
from test_lake_forms import Tables, insert, update

from ggshell.clock import SystemClock
from ggshell.connectors.lake.forms import delta_state
from ggshell.connectors.lake.forms.deletion_vectors import read_vector, vector_file, write_vector
from ggshell.connectors.lake.forms.delta_maintenance import DeltaMaintenance
from ggshell.connectors.lake.forms.delta_state import DeltaState
from ggshell.connectors.lake.store import LakeStore
from ggshell.connectors.lake.target import TableForm
from ggshell.errors import DiskError, StoreError
from ggshell.parameters.lake_tables import DEFAULT_LAYOUT

pytestmark = pytest.mark.slow  # DuckDB with its extension reads the tables in a process


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    made = Tables(TableForm.DELTA, tmp_path / "lake")
    made.merge(PEOPLE, *(insert(id=str(number), name=f"name {number}", pay="1") for number in range(2000)))
    return made


def place(tables: Tables) -> str:
    return f"{tables.target.location}/current/{PEOPLE.name}"


def names(tables: Tables) -> dict[int, str]:
    found = {int(number): str(name) for number, name in tables.rows(PEOPLE, "id", "name")}
    every_reader_agrees(tables.target, PEOPLE.name, ["id", "name"], list(found.items()))
    return found


def test_an_update_of_one_row_rewrites_no_large_file(tables: Tables) -> None:
    (large,) = DeltaState(place(tables)).refresh().files.values()
    tables.merge(PEOPLE, update(id="7", name="seven"))
    files = DeltaState(place(tables)).refresh().files
    assert (files[large.path].deleted, files[large.path].size) == (1, large.size)
    (new,) = (file for file in files.values() if file.path != large.path)
    assert new.rows == 1
    assert names(tables) == {number: f"name {number}" for number in range(2000)} | {7: "seven"}


def test_a_checkpoint_of_the_log_keeps_deletion_vectors(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delta_state, "CHECKPOINT_EVERY", 2)
    by_log = DeltaState(place(tables)).refresh()  # reads no checkpoint later
    for number in range(4):
        tables.merge(PEOPLE, update(id=str(number), name="x"))
    log = Path(place(tables), "_delta_log")
    assert len(list(log.glob("*.checkpoint.parquet"))) == 2
    by_log.refresh()
    for old in sorted(log.glob("*.json"))[:4]:
        old.unlink()
    after = DeltaState(place(tables)).refresh()
    assert (after.version, after.marks) == (by_log.version, by_log.marks)
    assert {each.path: each.vector for each in after.files.values()} == {
        each.path: each.vector for each in by_log.files.values()
    }
    assert any(each.vector for each in after.files.values())
    tables.open()
    tables.merge(PEOPLE, update(id="9", name="x"))
    assert [number for number, name in names(tables).items() if name == "x"] == [0, 1, 2, 3, 9]


def test_rows_that_change_during_a_compaction_are_marked_in_the_new_files(tables: Tables) -> None:
    for number in range(2000, 2004):
        tables.merge(PEOPLE, insert(id=str(number), name="new", pay="1"))
    expected = names(tables)
    interrupted = []

    def step(name: str) -> None:
        if name == "commit" and not interrupted:
            interrupted.append(name)
            tables.merge(PEOPLE, update(id="2001", name="late"), update(id="5", name="late"))

    done = DeltaMaintenance(place(tables), DEFAULT_LAYOUT, SystemClock(), step).compact(128 << 20)
    assert interrupted
    assert done.files > done.into == 1
    assert names(tables) == expected | {2001: "late", 5: "late"}


def test_a_table_has_few_files_after_a_day_of_commits(tables: Tables, pytestconfig: pytest.Config) -> None:
    """A simulated day, 4 commits an hour (``--rounds``: more) of 40 new and 60 changed rows, with a maintenance every hour."""
    rng, most = random.Random(24), 0
    expected = {number: f"name {number}" for number in range(2000)}
    for _ in range(24):
        for _ in range(4 * (pytestconfig.getoption("rounds") or 1)):
            key = len(expected)
            fresh, old = range(key, key + 40), rng.sample(range(key), 60)
            tables.merge(
                PEOPLE,
                *(insert(id=str(number), name="new", pay="1") for number in fresh),
                *(update(id=str(number), name=f"by {key}") for number in old),
            )
            expected |= dict.fromkeys(fresh, "new") | dict.fromkeys(old, f"by {key}")
            most = max(most, len(DeltaState(place(tables)).refresh().files))
        each = DeltaMaintenance(place(tables), DEFAULT_LAYOUT, SystemClock())
        each.compact(128 << 20)
        each.expire(0, 50)
    assert len(DeltaState(place(tables)).refresh().files) <= most <= 50
    assert names(tables) == expected


def test_of_two_commits_of_one_version_only_the_first_counts(tables: Tables) -> None:
    first, second = (DeltaState(place(tables)).refresh() for _ in range(2))
    assert first.commit([], "WRITE", 0)
    assert not second.commit([], "WRITE", 0)
    assert second.refresh().commit([], "WRITE", 0)


@pytest.mark.parametrize(
    "rows", [BitMap([0, 3, 70_000]), BitMap(range(0, 200_000, 3))], ids=["in the commit", "in a file"]
)
def test_a_deletion_vector_is_read_as_it_was_written(rows: BitMap, tmp_path: Path) -> None:
    store = LakeStore(str(tmp_path))
    said = write_vector(store, rows)
    assert said["cardinality"] == len(rows)
    assert read_vector(store, said) == rows
    path = vector_file(said)
    if path is None:
        return
    content = bytearray((tmp_path / path).read_bytes())
    content[40] ^= 1
    (tmp_path / path).write_bytes(content)
    with pytest.raises(StoreError, match="is damaged"):
        read_vector(store, said)


def test_a_table_whose_log_is_removed_is_not_continued(tables: Tables) -> None:
    """A further commit would be the first one that readers find, and the table would be broken."""
    state = DeltaState(place(tables)).refresh()
    LakeStore(state.location).delete_folder(delta_state.LOG)
    with pytest.raises(DiskError, match="no longer contains version 0"):
        state.commit([], "WRITE", 0)
    assert not (Path(state.location) / delta_state.LOG).exists()
