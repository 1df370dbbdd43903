"""The TARGET of a lake Replicat: valid values, and the errors for others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from object_stores import Bucket

from ggshell.cli.main import main
from ggshell.connectors.lake.commits import CommitLog, LakeCommit
from ggshell.connectors.lake.replicat import StreamMemory, stream_memory
from ggshell.connectors.lake.target import LakeTarget, TableForm, lake_target
from ggshell.errors import ConflictError, DiskError, NotFoundError, ParameterError, StateError
from ggshell.home import checkpoint
from ggshell.home.checkpoint import GroupKind
from ggshell.home.home import Home
from ggshell.types import TrailPosition


@pytest.mark.parametrize(
    ("text", "form", "folder"),
    [
        ("./lake", TableForm.PARQUET, "lake"),
        ("'delta:./lake'", TableForm.DELTA, "lake"),
        ("ICEBERG:lake/deep", TableForm.ICEBERG, "lake/deep"),
        ("parquet:lake", TableForm.PARQUET, "lake"),
        ("delta", TableForm.PARQUET, "delta"),
        ("c:lake", TableForm.PARQUET, "c:lake"),
    ],
)
def test_a_target_is_a_form_and_a_folder(tmp_path: Path, text: str, form: TableForm, folder: str) -> None:
    assert lake_target(Home(tmp_path), text) == LakeTarget(form, str(tmp_path / folder))


def test_a_file_url_is_a_folder(tmp_path: Path) -> None:
    assert lake_target(Home(tmp_path), "delta:file:///data/lake") == LakeTarget(TableForm.DELTA, "/data/lake")


@pytest.mark.parametrize(("text", "form"), [("s3://bucket/lake/", "parquet"), ("delta:s3://bucket/lake", "delta")])
def test_a_target_can_be_in_an_object_store(tmp_path: Path, text: str, form: str, bucket: Bucket) -> None:
    target = lake_target(Home(tmp_path), text)
    assert target == LakeTarget(TableForm(form), "s3://bucket/lake")
    assert target.folder is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("iceberg:", "requires a folder or a location"),
        ("nosuch://bucket/lake", "is not a folder or a location"),
        ("s3://key:zq9-secret@bucket/lake", "cannot contain credentials"),
        ("iceberg:s3://bucket/lake", "Iceberg tables in an object store require a catalog"),
    ],
)
def test_a_target_that_is_not_a_location_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ParameterError, match=message) as refused:
        lake_target(Home(tmp_path), text)
    assert "zq9" not in str(refused.value)


@pytest.mark.parametrize(("form", "package"), [(TableForm.DELTA, "deltalake"), (TableForm.ICEBERG, "pyiceberg")])
def test_a_form_whose_package_is_missing_is_refused_with_the_package_to_install(
    tmp_path: Path, form: TableForm, package: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, package, None)  # Python itself marks failed imports this way.
    with pytest.raises(NotFoundError, match=f"{package}, which is not installed"):
        lake_target(Home(tmp_path), f"{form}:lake")
    statement = f"ADD REPLICAT lake, SPARK, EXTTRAIL ./dirdat/ea, TARGET {form}:./lake"
    assert main(["--home", str(tmp_path), "-c", statement]) == 1
    said = "".join(capsys.readouterr())
    assert f"{package}, which is not installed" in said
    assert "pip install -e '.[lakes]'" in said
    assert not list((tmp_path / "dirchk").glob("*.cpr"))


def plan(folder: Path, batch: int, rba: int) -> None:
    """What Spark writes before a batch of a stream: where it ends."""
    (folder / "offsets").mkdir(parents=True, exist_ok=True)
    (folder / "offsets" / str(batch)).write_text(f'v1\n{{}}\n{{"seqno": 0, "rba": {rba}}}')


def test_without_its_checkpoint_spark_resumes_after_the_last_commit(tmp_path: Path) -> None:
    done = LakeCommit(6, TrailPosition(0, 100))
    assert stream_memory(tmp_path, None) == StreamMemory(tmp_path / "stream", 0)
    assert stream_memory(tmp_path, done) == StreamMemory(tmp_path / "stream-7", 7)
    plan(tmp_path / "stream-5", 0, 90)
    plan(tmp_path / "stream-5", 1, 163)
    assert stream_memory(tmp_path, done) == StreamMemory(tmp_path / "stream-5", 5)


@pytest.mark.parametrize(
    ("batch", "ends"),
    [(6, {5: 50, 6: 99}), (6, {5: 101, 6: 200}), (6, {4: 10, 5: 60}), (6, {}), (None, {0: 100})],
    ids=["its batch ends before", "its batch begins later", "it has no such batch", "it is empty", "the lake is empty"],
)
def test_a_checkpoint_of_another_lake_is_removed(tmp_path: Path, batch: int | None, ends: dict[int, int]) -> None:
    """With it, Spark would leave out what the other lake already has."""
    (tmp_path / "stream").mkdir()
    for number, rba in ends.items():
        plan(tmp_path / "stream", number, rba)
    done = None if batch is None else LakeCommit(batch, TrailPosition(0, 100))
    expected = StreamMemory(tmp_path / "stream", 0) if done is None else StreamMemory(tmp_path / "stream-7", 7)
    assert stream_memory(tmp_path, done) == expected
    assert not list(tmp_path.glob("stream*"))


def added(home: Path, group: str, target: str) -> int:
    return main(["--home", str(home), "-c", f"ADD REPLICAT {group}, SPARK, EXTTRAIL ./dirdat/ea, TARGET {target}"])


def test_a_folder_of_parquet_files_belongs_to_one_group(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert added(tmp_path, "one", "./lake") == 0
    assert added(tmp_path, "two", "parquet:lake") == 1
    assert "is the target of REPLICAT ONE" in capsys.readouterr().err
    assert added(tmp_path, "two", "./other") == 0
    assert added(tmp_path, "three", "delta:./many") == added(tmp_path, "four", "delta:./many") == 0


def test_a_folder_that_a_group_of_another_home_writes_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = LakeTarget(TableForm.PARQUET, str(tmp_path / "lake"))
    CommitLog(target, "one").claim()
    CommitLog(target, "one").claim()
    with pytest.raises(ConflictError, match="REPLICAT ONE"):
        CommitLog(target, "two").claim()
    assert added(tmp_path / "home", "two", str(tmp_path / "lake")) == 1
    assert "is already in use by REPLICAT ONE" in capsys.readouterr().err


def test_a_folder_that_is_not_writable_is_refused_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert added(tmp_path / "home", "lake", str(tmp_path / "file" / "lake")) == 1
    assert "is not writable" in capsys.readouterr().err
    with pytest.raises(DiskError):
        CommitLog(LakeTarget(TableForm.PARQUET, str(tmp_path / "file" / "lake")), "lake").claim()


def commit(lake: Path, batch: int) -> LakeCommit:
    CommitLog(LakeTarget(TableForm.PARQUET, str(lake)), "one").add(
        made := LakeCommit(batch, TrailPosition(0, 100 * batch), "00000000/05")
    )
    return made


def test_a_lake_that_is_moved_during_delivery_accepts_no_more_batches(tmp_path: Path) -> None:
    log, done = CommitLog(LakeTarget(TableForm.PARQUET, str(tmp_path / "lake")), "one"), commit(tmp_path / "lake", 3)
    log.require_there(done)
    (tmp_path / "lake").rename(tmp_path / "moved")
    with pytest.raises(StateError, match="no longer contains batch 3") as raised:
        log.require_there(done)
    assert raised.value.code == "GGS-00734"


@pytest.mark.slow
def test_a_lake_that_was_moved_is_not_silently_started_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert added(tmp_path, "one", "./lake") == 0
    home = Home(tmp_path)
    home.parameters("one").write_text("REPLICAT one\nMAP shop.*, TARGET shop.*;\n")
    path = home.checkpoint("ONE", GroupKind.REPLICAT)
    checkpoint.save(path, checkpoint.load(path)._replace(latest_csn="00000000/05"))
    command = [sys.executable, "-m", "ggshell.connectors.lake", "replicat", "--home", str(tmp_path), "--group", "ONE"]
    assert subprocess.run(command, check=False, timeout=60).returncode != 0
    assert "contains nothing from ONE, which has delivered up to CSN 00000000/05" in home.report("one").read_text()
    assert not (tmp_path / "lake").exists()
    assert main(["--home", str(tmp_path), "-c", "ALTER REPLICAT one, EXTSEQNO 0, EXTRBA 0"]) == 0
    assert checkpoint.load(path).latest_csn == ""


def test_groups_with_the_same_name_in_two_homes_cannot_deliver_to_a_lake_at_once(tmp_path: Path) -> None:
    target = LakeTarget(TableForm.DELTA, str(tmp_path / "lake"))
    with CommitLog(target, "one").held(), pytest.raises(ConflictError, match="REPLICAT ONE to lake"):
        CommitLog(target, "one").held().__enter__()
    with CommitLog(target, "one").held():
        pass


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ("ALTER REPLICAT one, EXTSEQNO 0, EXTRBA 0", "continues after the last batch of lake"),
        ("START REPLICAT one, SKIPTRANSACTION", "whose batches determine where it continues"),
        ("START REPLICAT one, ATCSN 5, DRYRUN", "whose batches determine where it continues"),
        ("START REPLICAT one, AFTERCSN 5", "whose batches determine where it continues"),
    ],
)
def test_a_start_position_that_a_lake_group_does_not_support_is_refused(
    tmp_path: Path, statement: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert added(tmp_path, "one", "./lake") == 0
    commit(tmp_path / "lake", 3)
    assert main(["--home", str(tmp_path), "-c", statement]) == 1
    assert text in capsys.readouterr().err


def test_adding_a_group_reports_that_its_lake_already_has_batches(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(tmp_path / "lake", 3)
    assert added(tmp_path, "one", "./lake") == 0
    assert "contains batches of ONE: the group continues after them, at" in capsys.readouterr().out


def test_a_group_of_another_trail_cannot_continue_after_the_batches_of_a_lake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As the group of an initial load has written them."""
    target = LakeTarget(TableForm.PARQUET, str(tmp_path / "lake"))
    CommitLog(target, "one").add(LakeCommit(3, TrailPosition(0, 300), "00000000/05", trail="la"))
    assert added(tmp_path, "one", "./lake") == 1
    assert "contains batches of ONE from another trail, la" in capsys.readouterr().err
    CommitLog(target, "one").add(LakeCommit(4, TrailPosition(0, 400), "00000000/06", trail="ea"))
    assert added(tmp_path, "one", "./lake") == 0
