"""START, STOP and KILL of groups."""

from __future__ import annotations

import contextlib
import os
import select

from ggshell.errors import ProcessError, StateError
from ggshell.process import control
from ggshell.process.state import ProcessFile, ProcessState, alive, state_of
from ggshell.shell.commands.groups import ER, KIND_WORDS, find
from ggshell.shell.registry import command
from ggshell.shell.results import Result, joined, message
from ggshell.shell.session import Session
from ggshell.store.checkpoint import GroupType
from ggshell.store.home import GroupEntry

STOP_SECONDS = 120.0
START_SECONDS = 60.0


def manager_socket(session: Session) -> str:
    """Manager's socket; starts Manager first where the session may.  Raises ProcessError when it does not run."""
    state, entry = state_of(session.home.manager)
    if state is not ProcessState.RUNNING or entry is None:
        if not session.auto_manager:
            raise ProcessError("Manager is not running.", code="GGS-00603", hint="START MANAGER, or use --auto-manager")
        from ggshell.process.launch import spawn

        spawn(session.home, "manager")
        _, entry = state_of(session.home.manager)
    if entry is None:
        raise ProcessError("Manager ended at once", hint="look at ggserr.log")
    return entry.socket


def await_end(entry: ProcessFile, seconds: float) -> bool:
    """Wait until a process has ended; False when it has not in this time."""
    try:
        descriptor = os.pidfd_open(entry.pid)
    except ProcessLookupError:
        return True
    except (AttributeError, OSError):
        return not alive(entry)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(seconds * 1000)) or not alive(entry)
    finally:
        os.close(descriptor)


def _start(session: Session, entries: list[GroupEntry]) -> Result:
    socket = manager_socket(session)
    results = []
    for entry in entries:
        kind = KIND_WORDS[entry.type]
        state, _ = state_of(session.home.process(entry.group, entry.type))
        if state in (ProcessState.RUNNING, ProcessState.STARTING):
            if len(entries) == 1:
                raise StateError(f"{kind} {entry.group} is already running.")
            results.append(message(f"{kind} {entry.group} is already running."))
            continue
        control.request(socket, "START", timeout=START_SECONDS, group=entry.group, type=entry.type.value)
        results.append(message(f"Sending START request to MANAGER ...\n{kind} {entry.group} starting"))
    return joined(results)


def _stop(session: Session, entries: list[GroupEntry]) -> Result:
    results = []
    for entry in entries:
        kind = KIND_WORDS[entry.type]
        state, process = state_of(session.home.process(entry.group, entry.type))
        if process is None or state not in (ProcessState.RUNNING, ProcessState.STARTING):
            if len(entries) == 1:
                raise StateError(f"{kind} {entry.group} is already stopped.", hint=f"its status is {state.value}")
            results.append(message(f"{kind} {entry.group} is already stopped."))
            continue
        with contextlib.suppress(ProcessError):  # it may end before its answer is out
            control.request(process.socket, "STOP")
        if not await_end(process, STOP_SECONDS):
            raise ProcessError(f"{kind} {entry.group} has not ended yet", hint=f"KILL {kind} {entry.group}")
        results.append(message(f"Sending STOP request to {kind} {entry.group} ...\nRequest processed."))
    return joined(results)


def _kill(session: Session, entries: list[GroupEntry]) -> Result:
    from ggshell.process.manager import kill

    results = []
    for entry in entries:
        _, process = state_of(session.home.process(entry.group, entry.type))
        kill(session.home, entry.group, entry.type)
        if process is not None:
            await_end(process, STOP_SECONDS)
        results.append(
            message(f"Killed process {process.pid if process else 0} for {KIND_WORDS[entry.type]} {entry.group}.")
        )
    return joined(results)


@command("START EXTRACT")
def start_extract(session: Session, *, group_name: str) -> Result:
    return _start(session, find(session, group_name, (GroupType.EXTRACT,)))


@command("START REPLICAT")
def start_replicat(
    session: Session,
    *,
    group_name: str,
    atcsn: str | None = None,
    aftercsn: str | None = None,
    skiptransaction: bool = False,
    nofilterduptransactions: bool = False,
) -> Result:
    if atcsn or aftercsn or skiptransaction or nofilterduptransactions:
        raise StateError("this way of starting is understood, but not carried out yet", code="GGS-00005")
    return _start(session, find(session, group_name, (GroupType.REPLICAT,)))


@command("START DISTPATH")
def start_distpath(session: Session, *, path_name: str) -> Result:
    return _start(session, find(session, path_name, (GroupType.PATH,)))


@command("START ER", "START")
def start_any(session: Session, *, group_name: str) -> Result:
    return _start(session, find(session, group_name, ER if "*" in group_name else tuple(GroupType)))


@command("STOP EXTRACT")
def stop_extract(session: Session, *, group_name: str, force: bool = False) -> Result:
    return _stop(session, find(session, group_name, (GroupType.EXTRACT,)))


@command("STOP REPLICAT")
def stop_replicat(session: Session, *, group_name: str, force: bool = False) -> Result:
    return _stop(session, find(session, group_name, (GroupType.REPLICAT,)))


@command("STOP DISTPATH")
def stop_distpath(session: Session, *, path_name: str, force: bool = False) -> Result:
    return _stop(session, find(session, path_name, (GroupType.PATH,)))


@command("STOP ER", "STOP")
def stop_any(session: Session, *, group_name: str) -> Result:
    return _stop(session, find(session, group_name, ER if "*" in group_name else tuple(GroupType)))


@command("KILL EXTRACT")
def kill_extract(session: Session, *, group_name: str) -> Result:
    return _kill(session, find(session, group_name, (GroupType.EXTRACT,)))


@command("KILL REPLICAT")
def kill_replicat(session: Session, *, group_name: str) -> Result:
    return _kill(session, find(session, group_name, (GroupType.REPLICAT,)))


@command("KILL DISTPATH")
def kill_distpath(session: Session, *, path_name: str) -> Result:
    return _kill(session, find(session, path_name, (GroupType.PATH,)))


@command("KILL ER", "KILL")
def kill_any(session: Session, *, group_name: str) -> Result:
    return _kill(session, find(session, group_name, tuple(GroupType)))
