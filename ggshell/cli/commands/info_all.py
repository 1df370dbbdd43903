"""INFO ALL: shows every process with its state and lag, from files only. It imports little, to start up quickly."""

from __future__ import annotations

from ggshell.cli.groups import clock_notes, group_lag, lag_note, shown_state, view, wait_notes
from ggshell.cli.registry import command
from ggshell.cli.results import Note
from ggshell.cli.results.info_all import InfoAll, ProcessLine
from ggshell.cli.session import Session
from ggshell.errors import GgsError
from ggshell.home.checkpoint import GroupKind
from ggshell.home.home import GroupEntry
from ggshell.home.process_file import state_of
from ggshell.monitoring.group_lag import since

_ORDER = (GroupKind.EXTRACT, GroupKind.PATH, GroupKind.RECVPATH, GroupKind.REPLICAT)


@command("INFO ALL", False, True)
@command("INFO ALL TASKS", True, False)
@command("INFO ALL ALLPROCESSES", True, True)
def info_all(session: Session, tasks: bool, others: bool) -> InfoAll:
    """Show Manager, then Extracts, paths and Replicats.

    A damaged checkpoint file is reported and hides no other group.
    """
    manager, _ = state_of(session.home.manager)
    lines = [ProcessLine("MANAGER", manager if manager == "RUNNING" else "STOPPED")]
    errors: list[GgsError] = []
    notes: list[Note] = []
    for entry in sorted(session.home.groups(), key=lambda entry: _ORDER.index(entry.type)):
        if entry.checkpoint is None:
            state, _ = shown_state(session.home, entry)
            lines.append(ProcessLine(entry.type, state, entry.group, known=False))
            errors += [entry.error] if entry.error else []
        elif tasks if entry.checkpoint.is_task else others:
            line, more = _line(session, entry)
            lines.append(line)
            notes += more
    return InfoAll(tuple(lines), tuple(errors), tuple(notes))


def _line(session: Session, entry: GroupEntry) -> tuple[ProcessLine, tuple[Note, ...]]:
    now = session.clock.now()
    found = view(session.home, entry)
    lag, age = group_lag(session.home, found, now), since(found.checkpoint, now, found.ahead)
    line = ProcessLine(found.type, found.state, found.group, lag.value, age, lag_known=lag.error is None)
    return line, wait_notes(found) + ((lag_note(found, lag.error),) if lag.error else ()) + clock_notes(found)
