"""INFO ALL: every process with its state and lag, from files alone.  Loads nothing heavy: its start-up time is a contract."""

from __future__ import annotations

from ggshell.errors import GgsError
from ggshell.process.state import state_of
from ggshell.shell.groups import group_lag, view
from ggshell.shell.lag import since
from ggshell.shell.registry import command
from ggshell.shell.results import InfoAll, ProcessLine
from ggshell.shell.session import Session
from ggshell.store.checkpoint import GroupType, SourceType
from ggshell.store.home import GroupEntry

_ORDER = (GroupType.EXTRACT, GroupType.PATH, GroupType.REPLICAT)


@command("INFO ALL", False, True)
@command("INFO ALL TASKS", True, False)
@command("INFO ALL ALLPROCESSES", True, True)
def info_all(session: Session, tasks: bool, others: bool) -> InfoAll:
    """Manager, then Extracts, paths and Replicats; a damaged checkpoint file is named and hides no other group."""
    manager, _ = state_of(session.home.manager)
    lines = [ProcessLine("MANAGER", manager if manager == "RUNNING" else "STOPPED")]
    errors: list[GgsError] = []
    for entry in sorted(session.home.groups(), key=lambda entry: _ORDER.index(entry.type)):
        if entry.checkpoint is None:
            state, _ = state_of(session.home.process(entry.group, entry.type))
            lines.append(ProcessLine(entry.type, state, entry.group, known=False))
            errors += [entry.error] if entry.error else []
        elif tasks if entry.checkpoint.read.source is SourceType.TABLE else others:
            lines.append(_line(session, entry))
    return InfoAll(tuple(lines), tuple(errors))


def _line(session: Session, entry: GroupEntry) -> ProcessLine:
    now = session.clock.now()
    found = view(session.home, entry)
    age = since(found.checkpoint, now)
    return ProcessLine(found.type, found.state, found.group, group_lag(session.home, found, now), age)
