"""Manager."""

from __future__ import annotations

import socket

from ggshell.errors import StateError
from ggshell.params import load_manager
from ggshell.process import control
from ggshell.process.state import ProcessState, state_of
from ggshell.shell.commands.lifecycle import await_end
from ggshell.shell.registry import command
from ggshell.shell.results import Result, message
from ggshell.shell.session import Session


@command("START MANAGER", "START MGR")
def start_manager(session: Session) -> Result:
    state, _ = state_of(session.home.manager)
    if state is ProcessState.RUNNING:
        raise StateError("Manager is already running.")
    from ggshell.process.launch import spawn

    load_manager(session.home.parameters("mgr"))
    session.home.ensure()
    spawn(session.home, "manager")
    return message("Manager started.")


@command("STOP MANAGER", "STOP MGR")
def stop_manager(session: Session, *, force: bool = False) -> Result:
    state, entry = state_of(session.home.manager)
    if state is not ProcessState.RUNNING or entry is None:
        raise StateError("Manager is already stopped.")
    control.request(entry.socket, "STOP")
    await_end(entry, 30)
    return message("Sending STOP request to MANAGER ...\nRequest processed.\nManager stopped.")


@command("STATUS MANAGER", "STATUS MGR", "INFO MANAGER", "INFO MGR")
def status_manager(session: Session) -> Result:
    state, entry = state_of(session.home.manager)
    if state is not ProcessState.RUNNING or entry is None:
        return Result("Manager is DOWN!", ("program", "status", "port", "pid"), (("MANAGER", "STOPPED", None, None),))
    port = control.request(entry.socket, "STATUS")["port"]
    host = socket.gethostname().split(".")[0]
    text = f"Manager is running (IP port TCP:{host}.{port}, Process ID {entry.pid})."
    return Result(text, ("program", "status", "port", "pid"), (("MANAGER", "RUNNING", port, entry.pid),))
