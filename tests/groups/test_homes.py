"""A home that is copied, moved, or on a full disk while its processes run."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from faults import recovery_kit
from pipelines import EXT1, REP1, Pipeline
from processes import until

from ggshell.cli.supervision import wait_for_end
from ggshell.demo.processes import end_processes
from ggshell.errors import StateError
from ggshell.home import checkpoint as checkpoints
from ggshell.home.home import Home
from ggshell.home.identity import (
    Original,
    copied_groups,
    make_own,
    note_wallet,
    original_of,
    record_location,
    require_own,
    take_over,
)
from ggshell.home.process_file import ProcessFile, ProcessState, read_process_file, start_ticks, state_of
from ggshell.pipeline.apply.checkpoint_table import group_key

MANAGER = ("Manager", "MGR.pcm")


@pytest.fixture
def pipeline(tmp_path: Path, north: str, south: str) -> Iterator[Pipeline]:
    """A home with a running Extract and Manager."""
    pipeline = Pipeline(tmp_path / "home", north, south)
    pipeline.add()
    pipeline.start("ext1")
    yield pipeline
    pipeline.close()


def processes(home: Home) -> list[ProcessFile]:
    found = [read_process_file(path) for path in (home.process(*EXT1), home.manager)]
    return [each for each in found if each is not None]


def test_a_copy_of_a_home_does_not_touch_the_processes_of_the_original(pipeline: Pipeline, tmp_path: Path) -> None:
    copy = copy_of(pipeline, tmp_path / "copy")
    running = processes(pipeline.home)
    output = copy.run("INFO ALL")
    assert "MANAGER     STOPPED" in output or "MANAGER     ABENDED" in output
    assert "ABENDED     EXT1" in output
    for statement in ("STOP MGR !", "STOP EXTRACT ext1", "KILL EXTRACT ext1", "SEND EXTRACT ext1, FORCESTOP"):
        assert "not running" in copy.run(statement, fails=True)
    assert processes(pipeline.home) == running
    assert all(start_ticks(each.pid) == each.ticks for each in running)
    assert "This home is a copy of" in copy.home.event_log.read_text()
    assert "This home is a copy of" not in pipeline.home.event_log.read_text()
    assert "RUNNING     EXT1" in pipeline.run("INFO ALL")


def copy_like_cp(source: str, target: str) -> str:
    """Copy as ``cp -a`` does: a socket becomes another socket, at which no process listens."""
    if os.path.isfile(source):  # noqa: PTH113 - shutil gives strings
        return shutil.copy2(source, target)
    os.mknod(target, Path(source).stat().st_mode)
    return target


def test_processes_stop_with_a_message_when_their_running_home_is_moved(pipeline: Pipeline, tmp_path: Path) -> None:
    running = processes(pipeline.home)
    old, new = pipeline.home, Home(tmp_path / "moved")
    old.root.rename(new.root)
    try:
        for each in running:
            assert wait_for_end(each, 30)
        log = new.event_log.read_text()
        assert log.count(f"the home directory {old.root} was moved to {new.root} while this process was running") == 2
        assert "Capture for PostgreSQL, ext1.prm" in log
        assert state_of(new.process(*EXT1))[0] is ProcessState.ABENDED
        assert not list((new.root / "dirpcs").glob("*.sock"))
        assert not list(old.root.rglob("*"))
        pipeline.home = new
        pipeline.run("START ext1")
        assert "This home was moved" in new.event_log.read_text()
        assert pipeline.is_running(EXT1)
    finally:
        end_processes(new.root)


def test_a_process_that_reuses_a_pid_is_not_killed(pipeline: Pipeline) -> None:
    entry = read_process_file(pipeline.home.process(*EXT1))
    assert entry is not None
    os.kill(entry.pid, signal.SIGKILL)
    until("the process has ended", lambda: start_ticks(entry.pid) is None)
    path = pipeline.home.process(*EXT1)
    path.write_text(path.read_text().replace(f'"pid": {entry.pid}', f'"pid": {os.getpid()}'))
    assert "not running" in pipeline.run("KILL EXTRACT ext1", fails=True)


def test_processes_can_be_stopped_while_ggserr_log_is_not_writable(pipeline: Pipeline) -> None:
    log = pipeline.home.event_log
    log.rename(log.with_name("before"))
    log.symlink_to("/dev/full")
    output = pipeline.run("STOP EXTRACT ext1")
    assert "not logged in ggserr.log: cannot write" in output
    assert state_of(pipeline.home.process(*EXT1))[0] is ProcessState.STOPPED
    pipeline.run("START EXTRACT ext1")
    pipeline.run("KILL EXTRACT ext1")
    assert not pipeline.is_running(EXT1)
    pipeline.run("STOP MGR !")
    assert state_of(pipeline.home.manager)[0] is ProcessState.STOPPED


def rows_of(pipeline: Pipeline) -> list[tuple[object, ...]]:
    return pipeline.in_south("SELECT group_name, group_key FROM b.checks ORDER BY 1")


def copy_of(pipeline: Pipeline, root: Path) -> Pipeline:
    copy = Pipeline.__new__(Pipeline)
    copy.home, copy.north, copy.south = Home(root), pipeline.north, pipeline.south
    shutil.copytree(pipeline.home.root, copy.home.root, copy_function=copy_like_cp)
    return copy


def replicate_rows(pipeline: Pipeline, last: int) -> None:
    """Insert rows up to a number and wait until they are replicated."""
    pipeline.in_north(f"INSERT INTO a.items SELECT n, 'item ' || n, n FROM generate_series({last - 9}, {last}) n")
    pipeline.wait_for_rows(last)
    pipeline.assert_same_rows()


LOGIN = "DBLOGIN USERIDALIAS south"


def test_deletes_in_a_copy_do_not_affect_the_original(pipeline: Pipeline, tmp_path: Path) -> None:
    pipeline.start("rep1")
    replicate_rows(pipeline, 10)
    copy = copy_of(pipeline, tmp_path / "copy")
    rows = rows_of(pipeline)
    refused = (
        "DELETE CHECKPOINTTABLE b.checks !",
        "CLEANUP CHECKPOINTTABLE b.checks",
        "CLEANUP CHECKPOINTTABLE b.checks, REPLICAT rep1",
        "DELETE TRANDATA a.items",
        "DELETE HEARTBEATTABLE gg.beats !",
        "ALTER REPLICAT rep1, EXTSEQNO 0, EXTRBA 0",
        "START *",
        "START EXTRACT ext1",
        "UNREGISTER EXTRACT ext1",
    )
    for statement in refused:
        output = copy.run(LOGIN, statement, fails=True)
        assert "is not allowed: this home is a copy of" in output, statement
        assert "TAKEOVER HOME" in output
        assert str(pipeline.home.root) in output
    output = copy.run(LOGIN, "DELETE REPLICAT rep1", "DBLOGIN USERIDALIAS north", "DELETE EXTRACT ext1")
    assert output.count(f"belong to {pipeline.home.root}") + output.count(f"belongs to {pipeline.home.root}") == 2
    assert not copy.home.groups()
    assert "is not allowed" in copy.run("DBLOGIN USERIDALIAS north", "UNREGISTER EXTRACT ext1", fails=True)
    adds = ("ADD EXTRACT ext1, TRANLOG, BEGIN NOW", "ADD REPLICAT rep1, EXTTRAIL ./dirdat/ea, CHECKPOINTTABLE b.checks")
    for statement in adds:
        output = copy.run("DBLOGIN USERIDALIAS north", statement, fails=True)
        assert "cannot be added: this home is a copy" in output, statement
    assert not copy.home.groups()
    assert "is not allowed" in copy.run("DBLOGIN USERIDALIAS north", "UNREGISTER EXTRACT ext1", fails=True)
    copy.run("DBLOGIN USERIDALIAS north", "ADD EXTRACT ext2, TRANLOG, BEGIN NOW")
    assert "cannot own the same groups" in copy.run("TAKEOVER HOME", fails=True)
    assert rows_of(pipeline) == rows
    assert pipeline.in_north("SELECT count(*) FROM pg_replication_slots WHERE slot_name = 'ggs_ext1'") == [(1,)]
    pipeline.run("STOP *")
    pipeline.start()
    replicate_rows(pipeline, 20)


def test_the_process_of_a_copied_group_refuses_to_start_without_the_shell(pipeline: Pipeline, tmp_path: Path) -> None:
    copy = copy_of(pipeline, tmp_path / "copy")
    arguments = [sys.executable, "-m", "ggshell.groups", "extract", "--home", str(copy.home.root), "--group", "ext1"]
    ended = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == 1
    assert "GGS-00809" in ended.stderr
    assert "This home is a copy of" in copy.home.event_log.read_text()


def test_a_stopped_home_resumes_exactly_after_it_is_moved(pipeline: Pipeline, tmp_path: Path) -> None:
    pipeline.start("rep1")
    replicate_rows(pipeline, 10)
    pipeline.run("STOP *", "STOP MGR !")
    keys = rows_of(pipeline)
    pipeline.home.root.rename(tmp_path / "moved")
    pipeline.home = Home(tmp_path / "moved")
    pipeline.start()
    replicate_rows(pipeline, 20)
    assert rows_of(pipeline) == keys
    pipeline.run("STOP REPLICAT rep1", LOGIN, "DELETE REPLICAT rep1")
    assert not rows_of(pipeline)


def test_a_home_that_is_moved_after_a_kill_finds_the_rows_of_its_threads(
    tmp_path: Path, north: str, south: str
) -> None:
    """Each thread of a coordinated Replicat has a row with its own key."""
    pipeline = recovery_kit.open_pipeline("coordinated", tmp_path / "home", north, south)
    try:
        recovery_kit.write_lines(pipeline, 1, 20)
        recovery_kit.wait_and_compare(pipeline)
        recovery_kit.kill(pipeline, REP1)
        keys = rows_of(pipeline)
        assert len(keys) > 2
        pipeline.run("STOP EXTRACT ext1", "STOP MGR !")
        pipeline.home.root.rename(tmp_path / "moved")
        pipeline.home = Home(tmp_path / "moved")
        pipeline.start()
        recovery_kit.write_lines(pipeline, 21, 40)
        recovery_kit.wait_and_compare(pipeline)
        assert rows_of(pipeline) == keys
    finally:
        pipeline.close()


def test_a_copy_takes_over_when_its_original_is_removed(pipeline: Pipeline, tmp_path: Path) -> None:
    pipeline.start("rep1")
    replicate_rows(pipeline, 10)
    pipeline.run("STOP *", "STOP MGR !")
    copy = copy_of(pipeline, tmp_path / "copy")
    assert "is not allowed" in copy.run("START *", fails=True)
    shutil.rmtree(pipeline.home.root)
    output = copy.run("TAKEOVER HOME")
    assert "has taken over the groups" in output
    assert "GGS-00811  A moved original, or another copy that has taken over" in output
    assert "nothing to take over" in copy.run("TAKEOVER HOME", fails=True)
    pipeline.home = copy.home
    keys = rows_of(pipeline)
    pipeline.start()
    replicate_rows(pipeline, 20)
    assert rows_of(pipeline) == keys


def test_groups_of_a_copy_of_a_copy_belong_to_the_first_home(tmp_path: Path) -> None:
    """Regression: the first copy replaced the original; without that copy, TAKEOVER HOME took groups of the original."""

    def settled(name: str, source: str = "", group: str = "") -> Path:
        root = tmp_path / name
        if source:
            shutil.copytree(tmp_path / source, root)
        (root / "dirdb/groups").mkdir(parents=True, exist_ok=True)
        if group:
            (root / f"dirdb/groups/{group}.cpe").touch()
        record_location(root)
        return root

    first, between, last = settled("a", group="EXT1"), settled("b", "a"), tmp_path / "c"
    (between / "dirdb/groups/EXT2.cpe").touch()
    settled("c", "b")
    owners = [original_of(last, [group]) for group in ("ext1", "ext2")]
    assert [owner and owner.root for owner in owners] == [str(first), str(between)]
    shutil.rmtree(between)
    with pytest.raises(StateError, match=f"is still in {first}:"):
        take_over(last)
    make_own(last, "ext2")
    assert copied_groups(last) == ("EXT1",)
    with pytest.raises(StateError, match="EXT1 cannot be added"):
        make_own(last, "ext1")
    shutil.rmtree(first)
    assert take_over(last).root == str(first)
    assert not copied_groups(last)


def settled_copies(tmp_path: Path, *names: str) -> list[Path]:
    """An original with one group in a folder of its own, and copies of it in another."""
    (tmp_path / "old/home/dirdb/groups").mkdir(parents=True)
    (tmp_path / "old/home/dirdb/groups/EXT1.cpe").touch()
    roots = [tmp_path / "old/home", *(tmp_path / "copies" / name for name in names)]
    for root in roots:
        if root != roots[0]:
            shutil.copytree(roots[0], root)
        record_location(root)
    return roots


def test_only_one_of_two_copies_of_a_home_takes_over(tmp_path: Path) -> None:
    """Regression: two copies of one home could both run TAKEOVER HOME, and each started the same groups."""
    original, first, second = settled_copies(tmp_path, "first", "second")
    shutil.rmtree(original)
    assert take_over(first).root == str(original)
    with pytest.raises(StateError, match=f"{first}, another copy of {original}, has taken over its groups"):
        take_over(second)
    with pytest.raises(StateError, match="is not allowed"):
        require_own(second, ["ext1"], "START")
    shutil.rmtree(first)
    assert take_over(second).root == str(original)
    assert not copied_groups(second)


@pytest.mark.parametrize("beside", ["old", "copies"])
def test_an_original_that_was_moved_nearby_is_found(tmp_path: Path, beside: str) -> None:
    """Regression: a moved original was treated as removed."""
    original, copy = settled_copies(tmp_path, "copy")
    moved = original.rename(tmp_path / beside / "moved")
    for settles in (False, True):
        if settles:
            record_location(moved)
        with pytest.raises(StateError, match=f"was moved from {original} to {moved}, or"):
            take_over(copy)
    assert copied_groups(copy) == ("EXT1",)


def test_a_copy_recorded_by_an_earlier_release_keeps_its_original(tmp_path: Path) -> None:
    original = {"root": "/gone", "id": "0011223344556677", "row_keys": "/gone"}
    fields = {"id": "7766554433221100", "root": str(tmp_path), "wallet": "", "original": original, "copied": ["EXT1"]}
    (tmp_path / "dirdb").mkdir()
    (tmp_path / "dirdb/home.json").write_text(json.dumps(fields))
    note_wallet(tmp_path, "w")
    assert original_of(tmp_path, ["ext1"]) == Original("/gone", "0011223344556677", "/gone", ("EXT1",))


def test_a_home_of_an_earlier_release_keeps_its_keys_when_it_is_moved(pipeline: Pipeline, tmp_path: Path) -> None:
    """Its identity and its groups have no keys: they are derived from its former folder."""
    earlier = {"id": "0011223344556677", "root": str(pipeline.home.root), "wallet": ""}
    (pipeline.home.root / "dirdb/home.json").write_text(json.dumps(earlier))
    path = pipeline.home.checkpoint(*REP1)
    found = checkpoints.load(path)
    checkpoints.save(path, found._replace(options=found.options._replace(row_keys="")))
    pipeline.start("rep1")
    replicate_rows(pipeline, 10)
    assert rows_of(pipeline) == [("REP1", group_key("REP1", str(pipeline.home.root)))]
    pipeline.run("STOP *", "STOP MGR !")
    pipeline.home.root.rename(tmp_path / "moved")
    pipeline.home = Home(tmp_path / "moved")
    pipeline.start()
    replicate_rows(pipeline, 20)
    assert len(rows_of(pipeline)) == 1


def test_deleting_a_replicat_keeps_the_row_of_the_same_name_from_another_home(pipeline: Pipeline) -> None:
    pipeline.start("rep1")
    replicate_rows(pipeline, 10)
    pipeline.in_south(
        "INSERT INTO b.checks (group_name, group_key, rba, create_ts, last_update_ts, current_dir)"
        " VALUES ('REP1', 1, 0, now(), now(), '/elsewhere')"
    )
    pipeline.run("STOP REPLICAT rep1", LOGIN, "DELETE REPLICAT rep1")
    assert rows_of(pipeline) == [("REP1", 1)]
