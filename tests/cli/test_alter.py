"""ALTER EXTRACT and ALTER REPLICAT: what they write, and that the next run uses it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cli.shell import Shell, log_extract, pump, replicat
from pipelines import Pipeline
from short_folders import short_folder

from ggshell.clock import SystemClock, local_text
from ggshell.home import checkpoint as checkpoints
from ggshell.home.checkpoint import Checkpoint, GroupKind, GroupOptions, WriteCheckpoint
from ggshell.types import LogPosition, TrailPosition

BACK = "ALTER REPLICAT rep1, EXTSEQNO 0, EXTRBA 0"


@pytest.fixture
def pipeline(north: str, south: str) -> Iterator[Pipeline]:
    made = Pipeline(short_folder("ggs-"), north, south)
    made.add()
    yield made
    made.close()


def checkpoint_of(shell: Shell, name: str, kind: GroupKind = GroupKind.EXTRACT) -> Checkpoint:
    return checkpoints.load(shell.home.checkpoint(name, kind))


def test_a_pump_continues_at_the_given_position(with_groups: Shell) -> None:
    answer = with_groups.batch("ALTER EXTRACT pmp1, EXTSEQNO 3, EXTRBA 77")
    assert answer.out == "EXTRACT PMP1 continues at Seqno 3, RBA 77.\nEXTRACT altered.\n"
    read = checkpoint_of(with_groups, "PMP1").read
    assert (read.startup, read.recovery, read.current) == (TrailPosition(3, 77),) * 3
    assert with_groups.batch("alter pmp1 extrba 99").code == 0
    assert checkpoint_of(with_groups, "PMP1").read.current == TrailPosition(3, 99)


def test_extseqno_and_extrba_of_a_log_are_the_halves_of_an_lsn(with_groups: Shell) -> None:
    assert with_groups.batch("ALTER EXTRACT ext1, EXTSEQNO 1, EXTRBA 16").code == 0
    found = checkpoint_of(with_groups, "EXT1")
    assert (found.read.current, found.begin_csn) == (LogPosition(1, 16, 1 << 32 | 16), "00000001/00000010")
    assert with_groups.batch("ALTER EXTRACT ext1, LSN 2/20, DESC 'moved'").code == 0
    found = checkpoint_of(with_groups, "EXT1")
    assert (found.read.current.csn, found.description) == (2 << 32 | 32, "moved")  # type: ignore[union-attr]


def test_a_new_description_does_not_change_the_position(with_groups: Shell) -> None:
    before = checkpoint_of(with_groups, "PMP1")
    assert with_groups.batch("ALTER EXTRACT pmp1, DESC other").out == "EXTRACT altered.\n"
    assert checkpoint_of(with_groups, "PMP1") == before._replace(description="other")


def test_dryrun_changes_nothing_with_or_without_a_position(with_groups: Shell) -> None:
    """Regression: DESC with DRYRUN saved the description."""
    before = checkpoint_of(with_groups, "REP1", GroupKind.REPLICAT)
    refused = with_groups.batch("ALTER REPLICAT rep1, DESC other, DRYRUN")
    assert (refused.code, "DRYRUN shows what another position would skip" in refused.err) == (1, True)
    assert checkpoint_of(with_groups, "REP1", GroupKind.REPLICAT) == before


def test_a_wildcard_reports_which_groups_were_altered_and_which_were_not(with_groups: Shell) -> None:
    """Regression: the error of the second group hid that the first one had been altered."""
    shown = with_groups.session("ALTER EXTRACT *, EXTSEQNO 1, EXTRBA 16, DESC moved\ny\n")
    assert "EXTRACT EXT1 altered.\n" in shown
    assert "EXTRACT PMP1 altered.\n" in shown
    shown = with_groups.session("ALTER EXTRACT *, LSN 2/20\ny\n")
    assert "EXTRACT EXT1 altered.\n" in shown
    assert "PMP1 reads a trail" in shown
    assert checkpoint_of(with_groups, "EXT1").read.current.csn == 2 << 32 | 32  # type: ignore[union-attr]


def test_the_hint_of_a_wildcard_without_a_terminal_can_be_followed(with_groups: Shell) -> None:
    refused = with_groups.batch("ALTER EXTRACT *, DESC moved")
    assert (refused.code, "alter one group in each statement" in refused.err) == (1, True)


@pytest.mark.parametrize("statement", ["ALTER EXTRACT ext1, EXTSEQNO 3, THREAD 2", "ALTER ext1, EXTSEQNO 3, THREAD 2"])
def test_another_thread_than_the_first_is_refused_by_name(with_groups: Shell, statement: str) -> None:
    refused = with_groups.batch(statement)
    assert (refused.code, "THREAD" in refused.err) == (3, True)


def test_begin_with_a_time_is_accepted_only_before_the_first_run(shell: Shell) -> None:
    shell.save(log_extract("EXT1"))
    shell.save(log_extract("EXT2", started=1))
    assert shell.batch("ALTER EXTRACT ext1, BEGIN 2026-01-01 00:00:00").code == 0
    assert checkpoint_of(shell, "EXT1").options.since == checkpoint_of(shell, "EXT1").begin_time > 0
    refused = shell.batch("ALTER EXTRACT ext2, BEGIN 2026-01-01 00:00:00")
    assert (refused.code, "EXT2 has already captured" in refused.err) == (1, True)


def test_altering_a_replicat_that_has_run_requires_its_database(shell: Shell) -> None:
    shell.save(replicat("REP1", started=1, options=GroupOptions(checkpoint_table="b.checks")))
    shell.save(replicat("REP2", options=GroupOptions(checkpoint_table="b.checks")))
    refused = shell.batch(BACK)
    assert (refused.code, "REPLICAT REP1 keeps its position in b.checks" in refused.err) == (1, True)
    assert shell.batch("ALTER REPLICAT rep2, EXTSEQNO 5").code == 0
    assert checkpoint_of(shell, "REP2", GroupKind.REPLICAT).read.current == TrailPosition(5, 0)


def test_alter_rmttrail_sets_the_file_size(shell: Shell) -> None:
    shell.save(pump("PMP1", write=(WriteCheckpoint("./dirdat/ra", remote=True), WriteCheckpoint("./dirdat/rb"))))
    assert shell.batch("ALTER RMTTRAIL ./dirdat/ra, EXTRACT pmp1, MEGABYTES 7").out == "RMTTRAIL altered.\n"
    assert [each.megabytes for each in checkpoint_of(shell, "PMP1").write] == [7, 500]


def test_purge_keeps_files_that_a_reader_needs_and_with_force_only_the_newest(shell: Shell) -> None:
    shell.home.ensure()
    folder = shell.home.root / "dirdat"
    for seqno in range(5):
        (folder / f"ea{seqno:09d}").write_bytes(b"x")
    refused = shell.batch("PURGE EXTTRAIL ./dirdat/ea")
    assert (refused.code, "no group reads trail" in refused.err) == (1, True)
    shell.save(replicat("REP1"))
    shell.batch("ALTER REPLICAT rep1, EXTSEQNO 2")
    assert shell.batch("PURGE EXTTRAIL ./dirdat/ea").out.count("Purged ") == 2
    assert sorted(path.name for path in folder.glob("ea*")) == ["ea000000002", "ea000000003", "ea000000004"]
    assert shell.batch("PURGE EXTTRAIL ./dirdat/ea !").code == 0
    assert [path.name for path in folder.glob("ea*")] == ["ea000000004"]


def test_a_replicat_is_moved_back_before_its_checkpoint_table_row(pipeline: Pipeline) -> None:
    pipeline.start()
    for number in (1, 2):
        pipeline.in_north(f"INSERT INTO a.items VALUES ({number})")
        pipeline.wait_for_rows(number)
    between = local_text(SystemClock().now(), "%Y-%m-%d %H:%M:%S.%f")
    pipeline.in_north("INSERT INTO a.items VALUES (3)")
    pipeline.wait_for_rows(3)
    assert "is running" in pipeline.run("DBLOGIN USERIDALIAS south", BACK, fails=True)
    pipeline.run("STOP rep1", "DBLOGIN USERIDALIAS south", BACK)
    pipeline.in_south("TRUNCATE b.items")
    pipeline.start("rep1")
    pipeline.wait_for_rows(3)
    wrong = pipeline.run("STOP rep1", "DBLOGIN USERIDALIAS north", BACK, fails=True)
    assert "checkpoint table b.checks does not exist" in wrong
    pipeline.run("DBLOGIN USERIDALIAS south", f"ALTER REPLICAT rep1, BEGIN {between}")
    pipeline.in_south("TRUNCATE b.items")
    pipeline.start("rep1")
    pipeline.wait_for_rows(1)
    assert pipeline.in_south("SELECT id FROM b.items") == [(3,)]


def test_begin_now_skips_transactions_committed_before_it(pipeline: Pipeline) -> None:
    pipeline.start()
    pipeline.in_north("INSERT INTO a.items VALUES (1)")
    pipeline.wait_for_rows(1)
    pipeline.run("STOP ext1")
    pipeline.in_north("INSERT INTO a.items VALUES (2)")
    pipeline.run("DBLOGIN USERIDALIAS north", "ALTER EXTRACT ext1, BEGIN NOW")
    pipeline.in_north("INSERT INTO a.items VALUES (3)")
    pipeline.start("ext1")
    pipeline.wait_for_rows(2)
    assert pipeline.in_south("SELECT id FROM b.items ORDER BY 1") == [(1,), (3,)]
