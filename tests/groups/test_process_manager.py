"""Manager as a real process with real distribution paths, which need no database."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import checkpoints
import pytest
from processes import until, until_state

from ggshell.errors import ConflictError, NotFoundError, ParameterError, ProcessError, StateError
from ggshell.groups.launch import spawn
from ggshell.groups.process_request import request
from ggshell.home.checkpoint import Checkpoint, GroupKind, ReadCheckpoint, SourceType, save
from ggshell.home.home import Home
from ggshell.home.process_file import ProcessFile, ProcessState, kill, read_process_file, state_of

pytestmark = pytest.mark.slow

PATH = GroupKind.PATH
RUNNING, STOPPED, ABENDED = ProcessState.RUNNING, ProcessState.STOPPED, ProcessState.ABENDED
Ask = Callable[..., dict[str, Any]]


def begin(home: Home, parameters: str = "PORT 7809\n", groups: tuple[str, ...] = ("DP1",)) -> ProcessFile:
    """Add some paths and start Manager; returns its process file."""
    for number, group in enumerate(groups):
        checkpoints.save(home, checkpoints.path(group, "./dirdat/ea", f"./dirdat/p{number}"))
    (home.root / "dirprm" / "mgr.prm").write_text(parameters)
    return manager(home)


def manager(home: Home) -> ProcessFile:
    """Start Manager; returns its process file."""
    spawn(home, "manager").returncode = 0
    entry = read_process_file(home.manager)
    assert entry is not None
    return entry


def ask(home: Home, verb: str, **arguments: Any) -> dict[str, Any]:
    """Send a request to Manager."""
    entry = read_process_file(home.manager)
    assert entry is not None
    return request(entry.socket, verb, timeout=30, **arguments)


def path_of(group: str) -> dict[str, str]:
    return {"group": group, "type": str(PATH)}


def pid(home: Home, group: str = "DP1") -> int:
    entry = read_process_file(home.process(group, PATH))
    assert entry is not None
    return entry.pid


def wait_for_events(home: Home, *texts: str) -> None:
    for text in texts:
        until(f"ggserr.log has {text!r}", lambda text=text: text in home.event_log.read_text())  # type: ignore[misc]


def test_a_group_is_started_stopped_and_started_again(home: Home) -> None:
    entry = begin(home)
    assert ask(home, "STATUS") == {"pid": entry.pid, "port": 7809}
    first = ask(home, "START", **path_of("dp1"))["pid"]
    until_state(home, "DP1", PATH, RUNNING)
    assert pid(home) == first
    with pytest.raises(ConflictError, match="DISTPATH DP1 is already running"):
        ask(home, "START", **path_of("DP1"))
    assert ask(home, "STOP", **path_of("DP1")) == {"pid": first}
    until_state(home, "DP1", PATH, STOPPED)
    wait_for_events(home, "DISTPATH DP1 is down (gracefully).")
    with pytest.raises(StateError, match="not running"):
        ask(home, "STOP", **path_of("DP1"))
    assert ask(home, "START", **path_of("DP1"))["pid"] != first
    until_state(home, "DP1", PATH, RUNNING)


def test_invalid_requests_are_refused(home: Home) -> None:
    begin(home)
    with pytest.raises(NotFoundError, match="DISTPATH NONE does not exist"):
        ask(home, "START", **path_of("none"))
    for arguments in ({"group": "DP1"}, {"group": "DP1", "type": "CIRCUS"}):
        with pytest.raises(ProcessError, match="does not name a valid group"):
            ask(home, "START", **arguments)
    with pytest.raises(ProcessError, match="does not support the request DANCE"):
        ask(home, "DANCE")
    home.checkpoint("DP1", PATH).write_bytes(b"damaged")
    with pytest.raises(ProcessError, match=r"DP1\.cpd is damaged"):
        ask(home, "START", **path_of("DP1"))


def test_a_second_manager_is_refused(home: Home) -> None:
    entry = begin(home)
    with pytest.raises(ProcessError, match="Manager is locked by another process"):
        spawn(home, "manager")
    assert state_of(home.manager) == (RUNNING, entry)
    assert ask(home, "STATUS")["pid"] == entry.pid


def test_manager_stops_and_leaves_the_groups_running(home: Home) -> None:
    begin(home)
    ask(home, "START", **path_of("DP1"))
    ask(home, "STOP")
    until("Manager has ended", lambda: not home.manager.exists())
    assert state_of(home.process("DP1", PATH))[0] is RUNNING
    wait_for_events(home, "OGG-00983", "OGG-00938")


def test_autostart_starts_the_groups_that_it_names(home: Home) -> None:
    begin(home, "AUTOSTART DISTPATH DP*\n", ("DP1", "DP2", "OTHER"))
    for group in ("DP1", "DP2"):
        until_state(home, group, PATH, RUNNING)
    children = {child["group"]: child["state"] for child in ask(home, "CHILDSTATUS")["children"]}
    assert children == {"DP1": "RUNNING", "DP2": "RUNNING", "OTHER": "STOPPED"}


def test_autostart_skips_initial_loads(home: Home) -> None:
    for group in ("LOAD1", "EXT1"):
        source = SourceType.TABLE if group == "LOAD1" else SourceType.LOG
        kept = Checkpoint(group, GroupKind.EXTRACT, ReadCheckpoint(source))
        save(home.checkpoint(group, GroupKind.EXTRACT), kept)
    begin(home, "AUTOSTART ER *\nAUTOSTART EXTRACT load1\n")
    wait_for_events(home, "EXTRACT EXT1 starting.")  # it has no parameter file and abends
    ask(home, "STATUS")  # Manager has checked its groups once
    assert "EXTRACT LOAD1" not in home.event_log.read_text()


def test_a_new_manager_adopts_the_groups_of_a_killed_one(home: Home) -> None:
    entry = begin(home, "AUTOSTART DISTPATH *\nAUTORESTART DISTPATH *, WAITSECONDS 0\n")
    until_state(home, "DP1", PATH, RUNNING)
    group = pid(home)
    os.kill(entry.pid, signal.SIGKILL)
    until("Manager is reported as abended", lambda: state_of(home.manager)[0] is ABENDED)
    assert manager(home).pid != entry.pid
    assert (state_of(home.process("DP1", PATH))[0], pid(home)) == (RUNNING, group)
    os.kill(group, signal.SIGKILL)  # an adopted process is watched, too
    until("the path is started again", lambda: state_of(home.process("DP1", PATH))[0] is RUNNING and pid(home) != group)


def test_autorestart_restarts_a_group_and_logs_it(home: Home) -> None:
    begin(home, "AUTOSTART DISTPATH *\nAUTORESTART DISTPATH *, RETRIES 3, WAITSECONDS 0\n")
    until_state(home, "DP1", PATH, RUNNING)
    for _ in range(2):
        victim = pid(home)
        os.kill(victim, signal.SIGKILL)
        until("the path is started again", lambda: pid(home) != victim)  # noqa: B023 - called at once
        until_state(home, "DP1", PATH, RUNNING)
    wait_for_events(home, "DISTPATH DP1 is down (abended). It will be restarted in 0 seconds.", "OGG-00965")


def test_without_a_rule_an_abend_is_only_logged(home: Home) -> None:
    begin(home, "AUTORESTART ER *, WAITSECONDS 0\n")  # ER includes Extracts and Replicats
    ask(home, "START", **path_of("DP1"))
    os.kill(pid(home), signal.SIGKILL)
    wait_for_events(home, "DISTPATH DP1 is down (abended).\n")
    assert state_of(home.process("DP1", PATH))[0] is ABENDED


def test_a_group_killed_by_command_is_not_restarted(home: Home) -> None:
    begin(home, "AUTORESTART DISTPATH *, WAITSECONDS 0\n", ("DP1", "DP2"))
    for group in ("DP1", "DP2"):
        ask(home, "START", **path_of(group))
    victim = pid(home)
    assert ask(home, "KILL", **path_of("DP1")) == {"pid": victim}
    kill(home.process("DP2", PATH), "DISTPATH DP2")  # the same without Manager
    wait_for_events(home, "DISTPATH DP1 is down (killed).", "DISTPATH DP2 is down (killed).")
    assert state_of(home.process("DP1", PATH))[0] is ABENDED
    assert "OGG-00965" not in home.event_log.read_text()


def test_a_group_that_manager_did_not_start_is_watched(home: Home) -> None:
    begin(home)
    child = spawn(home, "path", "dp1")
    until_state(home, "DP1", PATH, RUNNING)
    child.send_signal(signal.SIGTERM)
    assert child.wait(10) == 0
    assert state_of(home.process("DP1", PATH))[0] is STOPPED


def test_refresh_reads_the_parameters_again(home: Home) -> None:
    begin(home)
    path = home.root / "dirprm" / "mgr.prm"
    path.write_text("PORT 7810\n")
    assert ask(home, "REFRESH") == {"port": 7810}
    path.write_text("PORT 7811\nNONSENSE\n")
    with pytest.raises(ParameterError, match="NONSENSE"):
        ask(home, "REFRESH")
    assert ask(home, "STATUS")["port"] == 7810


def test_manager_needs_no_parameter_file(home: Home) -> None:
    assert manager(home).state is RUNNING
    assert "no parameter file" in home.report("MGR").read_text()


def test_an_error_in_the_parameter_file_is_reported_with_its_line(home: Home) -> None:
    (home.root / "dirprm" / "mgr.prm").write_text("PORT 7809\nNONSENSE 3\n")
    with pytest.raises(ProcessError, match=r"mgr\.prm:2:"):
        spawn(home, "manager")
    assert not home.manager.exists()
    wait_for_events(home, "OGG-01668")


def test_old_trail_files_are_purged_and_needed_files_are_kept(home: Home) -> None:
    files = [home.root / "dirdat" / f"ra{number:09d}" for number in range(5)]
    for file in files:
        file.write_bytes(b"x")
    checkpoints.save(home, checkpoints.replicat("REP1", "./dirdat/ra", seqno=3))
    begin(home, "PURGEOLDEXTRACTS ./dirdat/ra, USECHECKPOINTS, MINKEEPFILES 1\n", ())
    assert [Path(path).name for path in ask(home, "PURGE")["removed"]] == [file.name for file in files[:3]]
    assert [file.exists() for file in files] == [False, False, False, True, True]
    wait_for_events(home, "OGG-00957")


def test_lag_is_reported(home: Home) -> None:
    checkpoint = checkpoints.extract("EXT1")
    checkpoints.save(home, checkpoint._replace(record_time=1_000_000, updated=1_000_000))
    (home.root / "dirprm" / "mgr.prm").write_text("LAGREPORTMINUTES 1\nLAGCRITICALMINUTES 5\n")
    process = home.process("EXT1", GroupKind.EXTRACT)
    process.write_text('{"pid":1,"ticks":1,"state":"ABENDED","socket":"","started":1}')
    manager(home)
    wait_for_events(home, "WARNING OGG-00976  ", "Lag of EXTRACT EXT1 is ")


def test_python_modules_in_the_home_are_not_imported(home: Home) -> None:
    (home.root / "json.py").write_text("raise SystemExit('this is the wrong json')")
    assert manager(home).state is RUNNING


def test_groups_of_a_wildcard_are_started_together_and_listed_in_order(home: Home, real_starts: None) -> None:
    """With new processes: forks of the tests can end before Manager has launched the next group."""
    groups = [f"EXT{number}" for number in range(9)]
    for group in groups:  # with an invalid parameter file they abend at once
        checkpoints.save(home, checkpoints.extract(group))
        home.parameters(group).write_text(f"EXTRACT {group}\nNONSENSE\n")
    checkpoints.save(home, checkpoints.path("DP1"))
    manager(home)
    command = [sys.executable, "-m", "ggshell.cli.main", "--home", str(home.root), "-c", "START *"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    output = result.stdout + result.stderr
    assert [line for line in output.splitlines() if "starting" in line] == [
        *(f"EXTRACT {group} starting" for group in groups),
        "DISTPATH DP1 starting",
    ]
    for group in groups:
        until_state(home, group, GroupKind.EXTRACT, ABENDED)
    events = home.event_log.read_text().splitlines()
    launched = [number for number, line in enumerate(events) if "OGG-00975" in line]
    first_end = next(number for number, line in enumerate(events) if "PROCESS ABENDING" in line)
    assert sum(number < first_end for number in launched) >= 4
    assert len(launched) == len(groups) + 1
