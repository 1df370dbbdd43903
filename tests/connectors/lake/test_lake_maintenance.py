"""MAINTAIN LAKE and the maintenance that Manager schedules, for lakes of each form."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from command_line import run_ggshell
from lakes import PEOPLE
from processes import until
from test_lake_forms import Tables, insert, update

from ggshell.clock import FakeClock
from ggshell.connectors.lake.commits import CommitLog, LakeCommit
from ggshell.connectors.lake.maintenance import maintain
from ggshell.connectors.lake.target import LakeTarget, TableForm
from ggshell.connectors.lake.unmaintained import UnmaintainedLake
from ggshell.demo.processes import end_processes
from ggshell.errors import ApplyError, ConflictError, StoreError
from ggshell.files import locked
from ggshell.groups.maintenance_jobs import MaintenanceJobs
from ggshell.home.checkpoint import GroupKind, load, save
from ggshell.home.home import Home
from ggshell.home.maintenance import HOUR, MaintenanceFiles, MaintenanceResult, MaintenanceSettings, removable
from ggshell.types import TrailPosition

FORMS = [TableForm.DELTA, TableForm.ICEBERG]
SETTINGS = MaintenanceSettings(retain=HOUR, versions=2, safe_age=HOUR)
CHANGED = [(2, "Bo"), (3, "Cy")]


class LakeHome:
    """A home with a lake that has had several batches."""

    def __init__(self, root: Path, form: TableForm) -> None:
        self.home = Home(root)
        self.home.ensure()
        self.form = form
        self.tables = Tables(form, root / "lake")
        self.clock = FakeClock(4_000_000_000_000_000)  # later than the time of every snapshot
        self.files = MaintenanceFiles(root, "LAKE")
        for number in range(1, 4):
            self.tables.merge(PEOPLE, insert(id=str(number), name="Ada", pay="1"))
        self.tables.merge(PEOPLE, update(id="2", name="Bo"))
        self.tables.merge(PEOPLE, update(id="3", name="Cy"))
        done = LakeCommit(5, TrailPosition(3, 500), tables={str(PEOPLE.name): 5})
        CommitLog(self.tables.target, "LAKE").add(done)

    def maintain(self, settings: MaintenanceSettings = SETTINGS) -> tuple[int, int, int]:
        """Maintain the lake once; returns how many files were compacted, versions expired, and files removed."""
        (table,) = maintain(self.home, "LAKE", self.tables.target, settings, self.clock).tables
        assert table.files == 1
        return table.compacted, table.expired, table.removed

    def shell(self, *statements: str) -> str:
        found = run_ggshell("--home", self.home.root, "-c", "; ".join(statements), timeout=120)
        assert found.returncode == 0, found.stdout + found.stderr
        return found.stdout

    def add(self) -> None:
        (self.home.root / "dirdat" / "ea000000000").write_bytes(b"")
        self.shell(f"ADD REPLICAT lake, SPARK, EXTTRAIL ./dirdat/ea, TARGET {self.form}:./lake")


@pytest.fixture
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LakeHome]:
    made = LakeHome(tmp_path / "home", getattr(request, "param", TableForm.ICEBERG))
    yield made
    end_processes(made.home.root)


@pytest.mark.parametrize("lake", FORMS, indirect=True)
def test_files_that_nothing_uses_are_removed_after_the_safe_age(lake: LakeHome) -> None:
    stray = next((lake.home.root / "lake").rglob("*.parquet")).with_name("stray.parquet")
    stray.write_bytes(b"of a process that was killed")
    compacted, _, removed = lake.maintain()
    assert (compacted > 1, removed) == (True, 0)
    lake.clock.advance(HOUR - 1)
    assert lake.maintain()[2] == 0
    assert stray.exists()
    lake.clock.advance(1)
    assert lake.maintain()[2] > 3
    assert not stray.exists()
    assert lake.tables.rows(PEOPLE, "id", "name") == [(1, "Ada"), *CHANGED]
    lake.tables.open()
    lake.tables.merge(PEOPLE, update(id="1", name="Di"))
    assert lake.tables.rows(PEOPLE, "id", "name") == [(1, "Di"), *CHANGED]


def foreign_table(lake: LakeHome) -> Callable[[], object]:
    """Make a table with three small files beside those of the lake; the result is a function that describes it."""
    rows, folder = pa.table({"id": pa.array([1], pa.int64())}), lake.home.root / "lake"
    if lake.form is TableForm.DELTA:
        from deltalake import DeltaTable, write_deltalake

        place = folder / "current" / "crm.accounts"
        for _ in range(3):
            write_deltalake(place, rows, mode="append")
        return lambda: (DeltaTable(place).version(), sorted(place.rglob("*")))
    from ggshell.connectors.lake.forms.iceberg_catalog import open_catalog

    catalog = open_catalog(folder)
    catalog.create_namespace("crm")
    table = catalog.create_table("crm.accounts", rows.schema)
    for _ in range(3):
        table.append(rows)
    return lambda: (catalog.load_table("crm.accounts").metadata.snapshots, sorted((folder / "crm").rglob("*")))


@pytest.mark.parametrize("lake", FORMS, indirect=True)
def test_tables_of_others_at_the_same_place_are_not_maintained(lake: LakeHome) -> None:
    described = foreign_table(lake)
    before = described()
    assert lake.maintain()[0] > 1
    lake.clock.advance(3 * HOUR)
    assert lake.maintain()[2] > 1
    assert described() == before


def test_versions_expire(lake: LakeHome) -> None:
    assert lake.maintain()[1] >= 4
    assert lake.maintain() == (0, 0, 0)


def test_a_lake_of_parquet_files_is_not_maintained(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.ensure()
    target = Tables(TableForm.ICEBERG, tmp_path / "lake").target._replace(form=TableForm.PARQUET)
    with pytest.raises(ApplyError, match="Parquet files"):
        maintain(home, "LAKE", target, SETTINGS, FakeClock())
    last = MaintenanceFiles(tmp_path, "LAKE").result()
    assert last is not None
    assert "Parquet files" in last.error


def test_a_second_maintenance_at_the_same_time_is_refused(lake: LakeHome) -> None:
    with locked(lake.files.lock, "test"), pytest.raises(ConflictError):
        lake.maintain()
    assert lake.files.result() is None


def test_damaged_maintenance_files_are_reported_or_made_again(lake: LakeHome) -> None:
    lake.maintain()
    folder = lake.home.root / "dirdb" / "maintenance"
    (folder / "LAKE.json").write_text("{")
    assert lake.files.result() is None
    (folder / "LAKE.unreferenced.json").write_text("[")
    with pytest.raises(StoreError, match=r"LAKE\.unreferenced\.json cannot be read"):
        lake.maintain()
    last = lake.files.result()
    assert last is not None
    assert last.code


def test_a_file_is_never_removed_when_it_is_first_seen() -> None:
    second = 1_000_000
    assert removable({}, ["a"], 50 * second, 0) == ([], {"a": 50 * second})
    assert removable({"a": 0, "gone": 0}, ["a", "b"], 50 * second, 50) == (["a"], {"b": 50 * second})


def test_a_lake_without_maintenance_is_reported_after_each_thousand_batches(tmp_path: Path) -> None:
    files, clock = MaintenanceFiles(tmp_path, "LAKE"), FakeClock(4_000_000_000_000_000)
    target = LakeTarget(TableForm.DELTA, "s3://bucket/lake")

    def warned(batch: int, before: int, settings: MaintenanceSettings = SETTINGS, at: LakeTarget = target) -> list[str]:
        """What a run reports after a batch and after the next one."""
        lake = UnmaintainedLake("LAKE", at, settings, files, clock, before)
        return [lake.warning(batch), lake.warning(batch + 1)]

    (text, again) = warned(1999, 998)
    assert text.startswith("2,000 batches have been written to s3://bucket/lake, and the lake is not maintained")
    assert not again
    assert [bool(each) for each in warned(998, -1)] == [False, True]
    assert warned(999, 999) == ["", ""]
    assert warned(5000, -1, SETTINGS._replace(every=HOUR)) == ["", ""]
    assert warned(5000, -1, at=target._replace(form=TableForm.PARQUET)) == ["", ""]
    files.save(MaintenanceResult(clock.now()))
    assert warned(5000, -1) == ["", ""]
    clock.advance(24 * HOUR)
    assert warned(5000, -1)[0]


def test_maintenance_on_request_and_its_settings(lake: LakeHome) -> None:
    lake.add()
    said = lake.shell("MAINTAIN LAKE lake NOW", "INFO REPLICAT lake")
    assert "hr.people" in said
    assert "completed" in said
    lake.shell("ALTER REPLICAT lake, MAINTAIN EVERY 2H, TARGETSIZE 64M, VERSIONS 50")
    assert "every 02:00:00" in lake.shell("INFO REPLICAT lake")
    lake.shell("ALTER REPLICAT lake MAINTAIN OFF")
    assert "every" not in lake.shell("INFO REPLICAT lake")
    rows = run_ggshell("--home", lake.home.root, "--format", "json", "-c", "MAINTAIN LAKE lake", timeout=120).stdout
    assert json.loads(rows)["columns"] == ["table", "compacted", "into", "expired", "removed", "files"]


@pytest.mark.parametrize("lake", list(TableForm), indirect=True)
@pytest.mark.parametrize("is_emptied", [False, True], ids=["renamed", "emptied"])
def test_the_maintenance_of_a_lake_that_is_not_there_is_refused(lake: LakeHome, *, is_emptied: bool) -> None:
    lake.add()
    place, folder = lake.home.checkpoint("LAKE", GroupKind.REPLICAT), lake.home.root / "lake"
    save(place, load(place)._replace(latest_csn="00000000/00000005"))
    folder.rename(lake.home.root / "elsewhere")
    if is_emptied:
        folder.mkdir()
    found = run_ggshell("--home", lake.home.root, "-c", "MAINTAIN LAKE lake NOW", timeout=120)
    assert "restore the folder" in found.stdout + found.stderr
    assert (list(folder.iterdir()) if is_emptied else folder.exists()) in ([], False)
    last = lake.files.result()
    assert last is not None
    assert last.code == "GGS-00734"


@pytest.mark.parametrize("form", FORMS)
def test_the_maintenance_before_the_first_batch_creates_nothing(tmp_path: Path, form: TableForm) -> None:
    home, folder = Home(tmp_path), tmp_path / "lake"
    home.ensure()
    assert maintain(home, "LAKE", LakeTarget(form, str(folder)), SETTINGS, FakeClock()).tables == ()
    assert not folder.exists()


def test_manager_maintains_a_lake_when_it_is_due_and_reports_a_failure(lake: LakeHome) -> None:
    lake.add()
    lake.shell("ALTER REPLICAT lake, MAINTAIN EVERY 1H")
    told: list[str] = []
    jobs = MaintenanceJobs(lake.home, lake.clock, lambda _, code, text: told.append(f"{code} {text}"))

    def ended(count: int) -> bool:
        jobs.check()
        return len(told) == count

    until("the maintenance ends", lambda: ended(1), 60)
    assert told[0].startswith("GGS-00738 Maintenance of REPLICAT LAKE: 1 table, ")
    jobs.check()
    (lake.home.root / "dirdb" / "maintenance" / "LAKE.unreferenced.json").write_text("[")
    lake.clock.advance(HOUR)
    until("the second maintenance ends", lambda: ended(2), 60)
    assert told[1].startswith("GGS-00739 Maintenance of REPLICAT LAKE failed: ")
    with locked(lake.files.lock, "another maintenance"):
        lake.clock.advance(HOUR)
        until("the third maintenance finds it", lambda: (jobs.check(), not jobs.busy)[1], 60)
    assert len(told) == 2
    jobs.close()
