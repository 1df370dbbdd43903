"""Commands of published scripts: INFO PARAM, DELETE ER, CLEANUP, ALTER DISTPATH, VIEW MESSAGES."""

from __future__ import annotations

import pytest
from cli.shell import Shell, log_extract, pump, replicat

from ggshell.home import checkpoint as checkpoints
from ggshell.home.checkpoint import GroupKind
from ggshell.types import TrailPosition


def test_info_param_shows_the_facts_of_a_parameter(shell: Shell) -> None:
    shell.home.ensure()
    out = shell.batch("INFO PARAM getinserts").out
    assert "param name  : getinserts\nopposite    : ignoreinserts\ndescription : " in out
    assert "component(s): EXTRACT - All\n            : REPLICAT - All\n" in out
    assert "status      : current\nmandatory   : false\ndynamic     : false\nrelations   : none\n" in out
    option = shell.batch("INFO PARAM batchsql.batchesperqueue").out
    assert option.startswith(
        "\nparam name  : batchsql.batchesperqueue\ndescription : number of statements that are gathered"
    )
    assert "status      : not supported" in shell.batch("INFO PARAM batchsql.trace").out
    assert "did you mean BATCHSQL?" in shell.batch("INFO PARAM batchsq").err
    assert "BATCHSQL has no option NOSUCH" in shell.batch("INFO PARAM batchsql.nosuch").err


def test_delete_er_removes_both_kinds(shell: Shell) -> None:
    shell.save(pump("PMP1"))
    shell.save(replicat("PMP2"))
    shell.save(log_extract("EXT1"))
    assert "!" in shell.batch("DELETE ER pmp*").err
    assert shell.batch("DELETE ER pmp* !").out == "Deleted EXTRACT PMP1.\nDeleted REPLICAT PMP2.\n"
    assert [entry.group for entry in shell.home.groups()] == ["EXT1"]


def test_the_credential_store_is_deleted(shell: Shell) -> None:
    shell.batch("ADD CREDENTIALSTORE; ALTER CREDENTIALSTORE ADD USER u@h:1/d, PASSWORD p, ALIAS north")
    assert "Credential store in ./dircrd/ deleted." in shell.batch("DELETE CREDENTIALSTORE").out
    assert list((shell.home.root / "dircrd").glob("credentials.ggs")) == []
    assert "the credential store does not exist" in shell.batch("INFO CREDENTIALSTORE").err
    assert "the credential store does not exist" in shell.batch("DELETE CREDENTIALSTORE").err


@pytest.mark.parametrize("statement", ["CLEANUP EXTRACT pmp1", "CLEANUP EXTRACT *, SAVE 5"])
def test_cleanup_keeps_the_report_of_the_last_run(shell: Shell, statement: str) -> None:
    shell.save(pump("PMP1"))
    answer = shell.batch(statement)
    assert (answer.code, "EXTRACT PMP1: nothing to delete" in answer.out) == (0, True)
    assert "REPLICAT PMP1 does not exist" in shell.batch("CLEANUP REPLICAT pmp1").err


def test_view_messages_shows_the_error_log(shell: Shell) -> None:
    shell.batch("ADD EXTRACT pmp1, EXTTRAILSOURCE ./dirdat/ea")
    assert shell.batch("VIEW MESSAGES").out == shell.batch("VIEW GGSEVT").out != ""


def test_a_stopped_path_can_be_repositioned(shell: Shell) -> None:
    shell.batch("ADD DISTPATH dp1 SOURCE ./dirdat/ea TARGET file://./dirdat/da")
    answer = shell.batch("ALTER DISTPATH dp1 BEGIN SEQNO 3 RBA 77")
    assert answer.out == "DISTPATH DP1 continues at Seqno 3, RBA 77.\nDistribution path altered.\n"
    found = checkpoints.load(shell.home.checkpoint("DP1", GroupKind.PATH))
    assert found.read.current == TrailPosition(3, 77)
    assert shell.batch("ALTER DISTPATH dp1 BEGIN NOW").code == 0


@pytest.mark.parametrize("request_", ["GETPARAMINFO", "LOGEND"])
def test_send_to_a_stopped_group_reports_that_it_is_not_running(shell: Shell, request_: str) -> None:
    shell.save(pump("PMP1"))
    assert "is not running" in shell.batch(f"SEND EXTRACT pmp1, {request_}").err


def test_a_replicat_with_extfile_reads_it_as_a_trail(shell: Shell) -> None:
    answer = shell.batch("ADD REPLICAT rload, EXTFILE ./dirdat/la, CHECKPOINTTABLE gg.c")
    assert (answer.code, answer.out) == (0, "REPLICAT added.\n")
    assert checkpoints.load(shell.home.checkpoint("RLOAD", GroupKind.REPLICAT)).read.trail == "./dirdat/la"
    assert "two characters" in shell.batch("ADD REPLICAT rload2, EXTFILE ./dirdat/initld, CHECKPOINTTABLE gg.c").err


@pytest.mark.parametrize(
    "statement",
    [
        "SEND ER *, REPORT",
        "SEND ER *, STATUS",
        "SEND ER *, GETLAG",
        "SEND EXTRACT *, LOGEND",
        "SEND REPLICAT *, HANDLECOLLISIONS",
        "STATS ER *",
    ],
)
def test_a_request_to_no_running_group_says_so(with_groups: Shell, statement: str) -> None:
    answer = with_groups.batch(statement)
    assert (answer.code, answer.out.strip()) == (0, "Nothing to do: none of the groups is running.")
