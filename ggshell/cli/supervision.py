"""Starts, stops and kills processes, through Manager's socket or the process's own socket."""

from __future__ import annotations

import contextlib
import os
import select
from collections.abc import Sequence

from ggshell.cli.groups import View
from ggshell.cli.session import Session
from ggshell.errors import GgsError, ProcessError, StateError
from ggshell.groups.process_request import request
from ggshell.home import process_file
from ggshell.home.home import Home
from ggshell.home.process_file import ProcessFile, ProcessState, alive, end_descriptor, state_of

START_SECONDS = 60.0
MOST_ASKED = 64
"""The maximum number of concurrent requests of a statement; Manager starts fewer processes at once."""
END_SECONDS = 120.0


def manager(home: Home) -> ProcessFile | None:
    """The process file of the running Manager; None if it is not running."""
    state, entry = state_of(home.manager)
    return entry if state is ProcessState.RUNNING else None


def start_manager(home: Home) -> None:
    """Start Manager and wait until it is running. Raises ProcessError."""
    from ggshell.groups.launch import spawn

    home.ensure()
    child = spawn(home, "manager")
    child.returncode = 0  # Manager outlives this process: do not wait for it


def wake_heartbeat_jobs(session: Session) -> None:
    """Ask a running Manager to check for heartbeat jobs now; otherwise it does so within half a minute."""
    entry = manager(session.home)
    if entry is not None:
        with contextlib.suppress(ProcessError):
            request(entry.socket, "HEARTBEATS")


def require_manager(session: Session) -> ProcessFile:
    """Return the running Manager, after starting it if ``--auto-manager`` was given. Raises StateError."""
    entry = manager(session.home)
    if entry is None and session.options.auto_manager:
        start_manager(session.home)
        entry = manager(session.home)
    if entry is None:
        raise StateError(
            "Manager is not running; it is required to start processes.",
            code="GGS-00205",
            hint="START MANAGER, or run ggshell with --auto-manager",
        )
    return entry


def require_parameters(session: Session, found: View) -> None:
    """Raise StoreError if a group has no parameter file: its process would only abend."""
    path = session.home.parameters(found.group)
    if found.checkpoint.has_parameters and not path.exists():
        from ggshell.parameters.lines import missing

        raise missing(path)


def start(session: Session, found: View) -> None:
    """Start a group through Manager.

    Raises StateError without Manager, StoreError without a parameter file, ProcessError if the process ends immediately.
    """
    require_parameters(session, found)
    entry = require_manager(session)
    request(entry.socket, "START", timeout=START_SECONDS, type=str(found.type), group=found.group)


def start_all(session: Session, found: Sequence[View]) -> list[GgsError | None]:
    """Start groups together through Manager. Raises StateError without Manager.

    Returns, in the order of the groups, None or the error that prevented the start.
    """
    from concurrent.futures import ThreadPoolExecutor

    entry = require_manager(session)
    seconds = START_SECONDS * (1 + len(found) // 4)

    def ask(each: View) -> GgsError | None:
        try:
            require_parameters(session, each)
            request(entry.socket, "START", timeout=seconds, type=str(each.type), group=each.group)
        except GgsError as error:
            return error
        return None

    with ThreadPoolExecutor(max(1, min(len(found), MOST_ASKED))) as pool:
        return list(pool.map(ask, found))


def process_of(found: View) -> ProcessFile:
    """Return the running process of a group. Raises StateError with its state if it is not running."""
    if not found.runs or found.process is None:
        raise process_file.not_running(found.name, found.state)
    return found.process


def stop(found: View, *, forced: bool = False) -> bool:
    """Ask a group to stop, wait, and return whether its process has ended within the time limit."""
    entry = process_of(found)
    request(entry.socket, "FORCESTOP" if forced else "STOP")
    return wait_for_end(entry)


def kill(home: Home, found: View) -> int:
    """End a group's process immediately, so that Manager does not treat it as abended, and return its PID."""
    entry = process_file.kill(home.process(found.group, found.type), found.name)
    if not wait_for_end(entry):
        raise ProcessError(f"{found.name} could not be stopped: process {entry.pid} is stuck in the kernel")
    return entry.pid


def wait_for_end(entry: ProcessFile, timeout: float = END_SECONDS) -> bool:
    """Wait until a process has ended; returns False if it has not within the time limit."""
    descriptor = end_descriptor(entry)
    if descriptor is None:
        return not alive(entry) or _wait_for_closed_socket(entry.socket, timeout)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(timeout * 1000))
    finally:
        os.close(descriptor)


def _wait_for_closed_socket(path: str, timeout: float) -> bool:
    """Do the same on systems without process descriptors: a process that ends closes its connections."""
    import socket

    from ggshell import sockets

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        try:
            sockets.connect(client, path)
        except OSError:
            return True
        poll = select.poll()
        poll.register(client, select.POLLIN)
        return bool(poll.poll(timeout * 1000))
