"""Real processes: Manager and a pump, started, queried, stopped and killed."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from cli.shell import Shell
from processes import until, until_state

from ggshell.cli import supervision
from ggshell.home.checkpoint import GroupKind
from ggshell.home.process_file import ProcessState, state_of

pytestmark = pytest.mark.slow

PARAMETERS = "EXTRACT pmp1\nPASSTHRU\nRMTTRAIL ./dirdat/ra\nTABLE shop.*;\n"


@pytest.fixture
def ready(shell: Shell) -> Iterator[Shell]:
    """A home with a pump that can run (its source trail is empty)."""
    shell.batch("ADD EXTRACT pmp1, EXTTRAILSOURCE ./dirdat/ea", "ADD RMTTRAIL ./dirdat/ra, EXTRACT pmp1")
    shell.home.parameters("pmp1").write_text(PARAMETERS)
    yield shell
    shell.run("--continue-on-error", "-c", "KILL EXTRACT *; STOP MGR !")
    assert supervision.manager(shell.home) is None


def state(shell: Shell) -> ProcessState:
    return state_of(shell.home.process("PMP1", GroupKind.EXTRACT))[0]


def test_a_group_is_started_queried_stopped_and_killed(ready: Shell) -> None:
    assert ready.batch("START MANAGER").out == "Manager started.\n"
    assert ready.batch("START MGR").out == "Manager is already running.\n"
    assert re.search(r"Manager is running \(IP port TCP:\S+\.\d+, Process ID \d+\)\.", ready.batch("INFO MANAGER").out)
    assert ready.batch("START EXTRACT pmp1").out == "\nSending START request to MANAGER ...\nEXTRACT PMP1 starting\n"
    assert state(ready) is ProcessState.RUNNING
    assert "EXTRACT PMP1 is already running.\n" in ready.batch("START EXTRACT pmp1").out
    assert "Nothing to do" in ready.batch("START EXTRACT *").out
    out = ready.batch("STATS pmp1", "LAG EXTRACT pmp1", "SEND pmp1, STATUS", "SEND EXTRACT pmp1 REPORT").out
    assert "Sending STATS request to EXTRACT PMP1 ...\n\nNo active extraction maps.\n" in out
    assert "Sending GETLAG request to EXTRACT PMP1 ...\nNo records yet processed.\n" in out
    assert re.search(r"EXTRACT PMP1 \(PID \d+\)\n  Current status: ", out)
    assert "Sending REPORT request to EXTRACT PMP1 ...\nRequest processed.\n" in out
    every = ready.batch(
        "SEND ER *, REPORT", "SEND ER *, GETLAG", "SEND * STATUS", "LAG EXTRACT", "STATUS ER *, ALLPROCESSES"
    )
    assert every.code == 0
    assert every.out.count("REPORT request to EXTRACT PMP1") == 1
    assert every.out.count("Sending GETLAG request to EXTRACT PMP1 ...") == 2
    assert "EXTRACT PMP1 (PID" in every.out
    for statement in ("DELETE EXTRACT pmp1", "ADD RMTTRAIL ./dirdat/rb, EXTRACT pmp1", "DELETE RMTTRAIL ./dirdat/ra"):
        refused = ready.batch(statement)
        assert (refused.code, "is running" in refused.err) == (1, True)
    assert "No active extraction maps." in ready.batch("STATS ER pmp1, TOTAL, REPORTRATE MIN").out
    asked = ready.batch("SEND MANAGER CHILDSTATUS", "SEND MGR GETPORTINFO DETAIL", "SEND MANAGER GETPURGEOLDEXTRACTS")
    assert "Child Process Status - 1 Entries" in asked.out
    assert re.search(r"^0      PMP1      \d+ ", asked.out, re.MULTILINE)
    assert "Manager port 7809" in asked.out
    assert "PurgeOldExtracts Rules" in asked.out
    ready.home.parameters("mgr").write_text("PORT 7810\n")
    assert ready.batch("REFRESH MGR").out == "\nSending REFRESH request to MANAGER ...\nRequest processed.\n"
    told = ready.batch("SEND MANAGER GETPARAMINFO", "SEND MGR GETPARAMINFO PORT").out
    assert f"Sending GETPARAMINFO request to MANAGER ...\n\n{ready.home.parameters('mgr')}\n" in told
    assert told.count("port                    : 7810") == 2
    assert "Manager port 7810" in ready.batch("SEND MGR GETPORTINFO").out
    refused = ready.batch("STOP MANAGER")
    assert (refused.code, "put ! after the command" in refused.err) == (1, True)
    assert ready.batch("STOP ER pmp1").out == "\nSending STOP request to EXTRACT PMP1 ...\nRequest processed.\n"
    assert state(ready) is ProcessState.STOPPED
    assert ready.batch("STOP MANAGER").code == 0
    assert ready.batch("STATUS MANAGER").out == "\nManager is DOWN!\n"


def test_kill_is_not_an_abend_and_auto_manager_starts_manager(ready: Shell) -> None:
    answer = ready.run("--auto-manager", "-c", "START ER *")
    assert answer.code == 0, answer.err
    assert supervision.manager(ready.home) is not None
    assert re.search(r"Killed process \(\d+\) for EXTRACT PMP1", ready.batch("KILL EXTRACT pmp1").out)
    assert "EXTRACT PMP1: STOPPED" in ready.batch("STATUS pmp1").out


def is_reading(shell: Shell) -> bool:
    """Whether the group has begun its work: before, its status is Starting."""
    answer = shell.batch("SEND EXTRACT pmp1, STATUS")
    return answer.code == 0 and "Starting" not in answer.out


def test_a_group_without_a_parameter_file_is_not_started(ready: Shell) -> None:
    """Regression: START said "starting" with exit code 0, and the group abended."""
    path = ready.home.parameters("pmp1")
    text = path.read_text()
    path.unlink()
    ready.batch("START MANAGER")
    for statement in ("START EXTRACT pmp1", "START *", "RESTART EXTRACT pmp1 ATCSN 5"):
        refused = ready.batch(statement)
        assert refused.code == 1
        assert f"ERROR: parameter file {path} does not exist" in refused.err
        assert "Hint: create it with EDIT PARAMS pmp1" in refused.err
        assert "starting" not in refused.out
        assert state(ready) is ProcessState.STOPPED
    path.write_text(text)
    ready.batch("START EXTRACT pmp1")
    until_state(ready.home, "PMP1", GroupKind.EXTRACT, ProcessState.RUNNING)
    until("it has read its parameter file", lambda: is_reading(ready))
    path.unlink()
    assert ready.batch("RESTART EXTRACT pmp1").code == 1
    assert state(ready) is ProcessState.RUNNING


def test_a_group_with_invalid_parameters_abends_with_the_reason_in_its_report(ready: Shell) -> None:
    ready.home.parameters("pmp1").write_text("EXTRACT pmp1\nNONSENSE\n")
    ready.batch("START MANAGER", "START EXTRACT pmp1")
    _, entry = state_of(ready.home.process("PMP1", GroupKind.EXTRACT))
    assert entry is not None
    assert supervision.wait_for_end(entry, 20)
    assert "EXTRACT PMP1: ABENDED" in ready.batch("STATUS pmp1").out
    assert "its status is ABENDED; VIEW REPORT PMP1 shows the reason" in ready.batch("SEND pmp1 STATUS").err
    assert "unknown parameter NONSENSE" in ready.batch("VIEW REPORT pmp1").out
