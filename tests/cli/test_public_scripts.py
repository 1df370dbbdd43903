"""Forms from published scripts that GoldenGate accepts and ggshell once refused."""

from __future__ import annotations

import pytest
from cli.shell import Shell, log_extract, pump, replicat

from ggshell.home import checkpoint as checkpoints
from ggshell.home.checkpoint import Checkpoint, GroupKind, GroupOptions, ReplicatKind
from ggshell.types import TrailPosition


def load(shell: Shell, name: str, kind: GroupKind = GroupKind.REPLICAT) -> Checkpoint:
    return checkpoints.load(shell.home.checkpoint(name, kind))


def test_integrated_creates_a_parallel_replicat_and_reports_it(shell: Shell) -> None:
    answer = shell.batch("ADD REPLICAT rep1, INTEGRATED, EXTTRAIL ./dirdat/ea, CHECKPOINTTABLE gg.c")
    assert (
        "INTEGRATED: apply inside the database is not supported; the group is added as a parallel Replicat."
        in answer.out
    )
    assert answer.out.endswith("REPLICAT (Parallel) added.\n")
    assert load(shell, "REP1").options.replicat_kind is ReplicatKind.PARALLEL


def test_maxthreads_is_accepted_anywhere_among_the_options(shell: Shell) -> None:
    shell.batch("ADD REPLICAT rep1, COORDINATED, EXTTRAIL ./dirdat/ea, CHECKPOINTTABLE gg.c, MAXTHREADS 8")
    assert load(shell, "REP1").options.maxthreads == 8


@pytest.mark.parametrize("name", ["ext", "repl", "ext-1"])
def test_a_group_name_can_be_an_abbreviation_or_have_a_hyphen(shell: Shell, name: str) -> None:
    assert shell.batch(f"ADD EXTRACT {name}, EXTTRAILSOURCE ./dirdat/ea").code == 0
    assert shell.batch(f"ADD RMTTRAIL ./dirdat/ra, EXTRACT {name}").code == 0
    for statement in (f"INFO EXTRACT {name}", f"INFO {name}", f"INFO {name}, DETAIL", f"STATUS {name}"):
        answer = shell.batch(statement)
        assert (answer.code, name.upper() in answer.out) == (0, True), statement
    assert shell.batch(f"ALTER {name}, EXTSEQNO 5, EXTRBA 10, THREAD 1").code == 0
    assert load(shell, name, GroupKind.EXTRACT).read.current == TrailPosition(5, 10)
    assert f"{name.upper()} is not running" in shell.batch(f"STOP {name}").err
    assert shell.batch(f"DELETE EXTRACT {name}").code == 0


def test_an_abbreviation_before_a_name_is_the_kind(shell: Shell) -> None:
    shell.save(log_extract("EXT1"))
    assert "EXT1" in shell.batch("INFO EXT ext1").out
    assert "EXT1" in shell.batch("info ext *").out


@pytest.mark.parametrize("option", ["ATCSN 0/15D6A28", "SKIPTRANSACTION"])
def test_start_without_the_kind_accepts_a_position(shell: Shell, option: str) -> None:
    shell.save(replicat("REP1", options=GroupOptions(checkpoint_table="gg.c")))
    answer = shell.batch(f"START rep1, {option}, DRYRUN")
    assert (answer.code, answer.err) == (0, "")


def test_a_password_can_be_the_word_password(shell: Shell) -> None:
    added = shell.batch("ADD CREDENTIALSTORE; ALTER CREDENTIALSTORE ADD USER u@h:1/d PASSWORD password ALIAS north")
    assert (added.code, added.err) == (0, "")
    assert "north" in shell.batch("INFO CREDENTIALSTORE").out


@pytest.mark.slow
def test_a_report_is_shown_by_its_file_name(shell: Shell) -> None:
    shell.home.ensure()
    (shell.home.root / "dirrpt" / "x.rpt").write_text("the report\n")
    assert "the report" in shell.batch("VIEW REPORT ./dirrpt/x.rpt").out
    assert shell.batch("SH echo hello").out == "hello\n"


def test_a_thread_other_than_the_first_is_refused(shell: Shell) -> None:
    shell.save(pump("PMP1"))
    answer = shell.batch("ALTER pmp1, EXTSEQNO 5, EXTRBA 10, THREAD 2")
    assert (answer.code, "THREAD: 2 is not in the range 1 to 1" in answer.err) == (3, True)
