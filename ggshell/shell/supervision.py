"""Starting, stopping and killing processes: through Manager's socket, or straight to the process."""

from __future__ import annotations

import contextlib
import os
import select
import socket

from ggshell.errors import ProcessError, StateError
from ggshell.process.control import request
from ggshell.process.state import ProcessFile, ProcessState, alive, state_of
from ggshell.shell.groups import View
from ggshell.shell.session import Session
from ggshell.store.home import Home

START_SECONDS = 60.0
END_SECONDS = 120.0


def manager(home: Home) -> ProcessFile | None:
    """The running Manager, None when there is none."""
    state, entry = state_of(home.manager)
    return entry if state is ProcessState.RUNNING else None


def start_manager(home: Home) -> None:
    """Start Manager and wait until it runs.  Raises ProcessError."""
    from ggshell.process.launch import spawn

    home.ensure()
    child = spawn(home, "manager")
    child.returncode = 0  # it lives on by itself: nobody waits for it here


def look_at_heartbeats(session: Session) -> None:
    """Have a running Manager look for heartbeat jobs now; without an answer it does so by itself within half a minute."""
    entry = manager(session.home)
    if entry is not None:
        with contextlib.suppress(ProcessError):
            request(entry.socket, "HEARTBEATS")


def require_manager(session: Session) -> ProcessFile:
    """The running Manager, started now when ``--auto-manager`` says so.  Raises StateError."""
    entry = manager(session.home)
    if entry is None and session.options.auto_manager:
        start_manager(session.home)
        entry = manager(session.home)
    if entry is None:
        raise StateError(
            "Manager is not running, and it is Manager that starts processes.",
            code="GGS-00205",
            hint="START MANAGER, or run ggshell with --auto-manager",
        )
    return entry


def start(session: Session, found: View) -> None:
    """Have Manager start a group.  Raises StateError without Manager, ProcessError when the process ends at once."""
    entry = require_manager(session)
    request(entry.socket, "START", timeout=START_SECONDS, type=str(found.type), group=found.group)


def process_of(found: View) -> ProcessFile:
    """The running process of a group.  Raises StateError naming its state."""
    if not found.runs or found.process is None:
        raise StateError(f"{found.name} is not running.", hint=f"its status is {found.state}")
    return found.process


def stop(found: View, *, forced: bool = False) -> bool:
    """Ask a group to end and wait until it has; whether it has, within the time."""
    entry = process_of(found)
    request(entry.socket, "FORCESTOP" if forced else "STOP")
    return wait_for_end(entry)


def kill(home: Home, found: View) -> int:
    """End a group's process at once, in a way that Manager does not take for an abend; its pid."""
    from ggshell.process import state

    entry = state.kill(home.process(found.group, found.type), found.name)
    if not wait_for_end(entry):
        raise ProcessError(f"{found.name} does not end: process {entry.pid} hangs in the system")
    return entry.pid


def wait_for_end(entry: ProcessFile, timeout: float = END_SECONDS) -> bool:
    """Wait until a process has ended; False when it has not within the time."""
    if not alive(entry):
        return True
    if not hasattr(os, "pidfd_open"):
        return _wait_for_closed_socket(entry.socket, timeout)
    try:
        descriptor = os.pidfd_open(entry.pid)
    except ProcessLookupError:
        return True
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(timeout * 1000))
    finally:
        os.close(descriptor)


def _wait_for_closed_socket(path: str, timeout: float) -> bool:
    """The same where the system has no process descriptors: a process that ends closes its connections."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        try:
            client.connect(path)
        except OSError:
            return True
        poll = select.poll()
        poll.register(client, select.POLLIN)
        return bool(poll.poll(timeout * 1000))
