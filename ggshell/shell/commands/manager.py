"""START, STOP, INFO and STATUS MANAGER."""

from __future__ import annotations

from ggshell.errors import StateError
from ggshell.process.control import request
from ggshell.shell import supervision
from ggshell.shell.banner import short_host
from ggshell.shell.groups import view
from ggshell.shell.registry import command
from ggshell.shell.results import ManagerStatus, Message
from ggshell.shell.session import Session


@command("START MANAGER")
@command("START MGR")
def start_manager(session: Session) -> Message:
    """Start Manager unless it runs."""
    if supervision.manager(session.home) is not None:
        return Message(("Manager is already running.",))
    supervision.start_manager(session.home)
    return Message(("Manager started.",))


@command("STOP MANAGER")
@command("STOP MGR")
def stop_manager(session: Session, *, force: bool = False) -> Message:
    """Stop Manager; the groups go on.  Asks first while some run, unless forced."""
    entry = supervision.manager(session.home)
    if entry is None:
        raise StateError("Manager is not running.")
    if not force and _groups_run(session):
        session.confirm("Groups are running, and without Manager nobody watches them. Stop it")
    request(entry.socket, "STOP")
    supervision.wait_for_end(entry)
    return Message(("Sending STOP request to MANAGER ...", "Request processed.", "Manager stopped."), apart=True)


@command("INFO MANAGER")
@command("INFO MGR")
@command("STATUS MANAGER")
@command("STATUS MGR")
def info_manager(session: Session) -> ManagerStatus:
    """Whether Manager runs, and where."""
    entry = supervision.manager(session.home)
    if entry is None:
        return ManagerStatus(running=False)
    answer = request(entry.socket, "STATUS")
    return ManagerStatus(True, short_host(), int(answer.get("port", 0)), entry.pid)


def _groups_run(session: Session) -> bool:
    entries = [entry for entry in session.home.groups() if entry.checkpoint is not None]
    return any(view(session.home, entry).runs for entry in entries)
