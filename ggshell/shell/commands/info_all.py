"""INFO ALL: every process with its state and lag, from files alone.  Loads nothing heavy: its start-up time is a contract."""

from __future__ import annotations

from ggshell.errors import GgsError
from ggshell.process.state import state_of
from ggshell.shell.groups import group_lag, lag_note, shown_state, view
from ggshell.shell.lag import since
from ggshell.shell.registry import command
from ggshell.shell.results import InfoAll, Note, ProcessLine
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
    notes: list[Note] = []
    for entry in sorted(session.home.groups(), key=lambda entry: _ORDER.index(entry.type)):
        if entry.checkpoint is None:
            state, _ = shown_state(session.home, entry)
            lines.append(ProcessLine(entry.type, state, entry.group, known=False))
            errors += [entry.error] if entry.error else []
        elif tasks if entry.checkpoint.read.source is SourceType.TABLE else others:
            line, note = _line(session, entry)
            lines.append(line)
            notes += [note] if note else []
    return InfoAll(tuple(lines), tuple(errors), tuple(notes))


def _line(session: Session, entry: GroupEntry) -> tuple[ProcessLine, Note | None]:
    now = session.clock.now()
    found = view(session.home, entry)
    lag, age = group_lag(session.home, found, now), since(found.checkpoint, now)
    line = ProcessLine(found.type, found.state, found.group, lag.value, age, lag_known=lag.error is None)
    return line, lag_note(found, lag.error) if lag.error else None
