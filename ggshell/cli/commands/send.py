"""SEND, and LAG, which asks running processes and computes the lag of the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ggshell.cli import supervision
from ggshell.cli.groups import (
    ANY,
    ER,
    EXTRACT,
    PATH,
    RECVPATH,
    REPLICAT,
    Kinds,
    View,
    clock_notes,
    group_lag,
    is_wildcard,
    lag_note,
    one,
    select,
)
from ggshell.cli.registry import command
from ggshell.cli.results import NONE_RUNS, Message, Note
from ggshell.cli.results.requests import GroupLag, Lags, ProcessStatus, ProcessStatuses
from ggshell.cli.session import Session
from ggshell.cli.start_position import beyond_note
from ggshell.errors import GgsError, UsageError
from ggshell.groups.load_state import LoadState
from ggshell.groups.process_request import request
from ggshell.home.slot_facts import SlotFacts

_ASK_SECONDS = 10.0
_T = TypeVar("_T")


@command("LAG EXTRACT", EXTRACT)
@command("LAG REPLICAT", REPLICAT)
@command("LAG ER", ER)
@command("LAG", ANY)
def lag(session: Session, kinds: Kinds, *, group_name: str = "*") -> Lags:
    """Show the lag of groups.

    Running groups report it. For the others it is computed from files and grows while records wait.
    """
    found, errors = select(session, kinds, group_name)
    groups: list[GroupLag] = []
    notes: list[Note] = []
    for each in found:
        try:
            notes += beyond_note(session, each)
            if each.runs:
                groups.append(_asked_lag(each))
                notes += clock_notes(each)
                continue
            answer, note = _stopped_lag(session, each)
            groups.append(answer)
            notes += [note] if note else []
        except GgsError as error:
            if not is_wildcard(group_name):
                raise
            errors.append(error)
    return Lags(tuple(groups), tuple(errors), tuple(notes))


def _asked_lag(found: View) -> GroupLag:
    answer = request(supervision.process_of(found).socket, "GETLAG", timeout=_ASK_SECONDS)
    value = answer.get("lag_seconds")
    microseconds = None if value is None else max(0, round(value * 1e6))
    waits = tuple(answer.get("obstacles") or ())
    return GroupLag(found.type, found.group, microseconds, bool(answer.get("at_eof")), waits=waits)


def _stopped_lag(session: Session, found: View) -> tuple[GroupLag, Note | None]:
    lag = group_lag(session.home, found, session.clock.now())
    known = lag.error is None
    answer = GroupLag(
        found.type, found.group, lag.value, at_end=lag.value == 0, asked=False, status=found.state, known=known
    )
    return answer, lag_note(found, lag.error) if lag.error else None


def _ask_each(
    session: Session, kinds: Kinds, pattern: str, ask: Callable[[View], _T]
) -> tuple[tuple[_T, ...], tuple[GgsError, ...]]:
    """Ask one group, or every running group of a wildcard.

    With a wildcard, a group that does not answer does not stop the others.
    """
    if not is_wildcard(pattern):
        return (ask(one(session, kinds, pattern)),), ()
    found, errors = select(session, kinds, pattern)
    answers: list[_T] = []
    for each in found:
        if each.runs:
            try:
                answers.append(ask(each))
            except GgsError as error:
                error.where = error.where or each.name
                errors.append(error)
    return tuple(answers), tuple(errors)


def _message(lines: list[str], errors: tuple[GgsError, ...]) -> Message:
    """The answers of the processes; a sentence if a wildcard matches none that runs."""
    return Message(tuple(lines) or (() if errors else (NONE_RUNS,)), errors, apart=True)


@command("SEND EXTRACT GETLAG", EXTRACT)
@command("SEND REPLICAT GETLAG", REPLICAT)
@command("SEND ER GETLAG", ER)
@command("SEND GETLAG", ANY)
def getlag(session: Session, kinds: Kinds, *, group_name: str) -> Lags:
    """Show the lag that running groups report."""
    return Lags(*_ask_each(session, kinds, group_name, _asked_lag))


@command("LAG DISTPATH", PATH)
@command("LAG RECVPATH", RECVPATH)
def lag_path(session: Session, kinds: Kinds, *, path_name: str = "*") -> Lags:
    """Show the lag of paths."""
    return lag(session, kinds, group_name=path_name)


@command("SEND DISTPATH GETLAG", PATH)
@command("SEND RECVPATH GETLAG", RECVPATH)
def getlag_path(session: Session, kinds: Kinds, *, path_name: str) -> Lags:
    """Show the lag that running paths report."""
    return getlag(session, kinds, group_name=path_name)


@command("SEND EXTRACT LOGEND", EXTRACT)
@command("SEND REPLICAT LOGEND", REPLICAT)
@command("SEND LOGEND", ER)
def logend(session: Session, kinds: Kinds, *, group_name: str) -> Message:
    """Show whether the processes have read all available data."""
    answers, errors = _ask_each(session, kinds, group_name, _asked_lag)
    lines = [
        line
        for each in answers
        for line in (f"Sending LOGEND request to {each.type} {each.group} ...", "YES" if each.at_end else "NO")
    ]
    return _message(lines, errors)


@command("SEND EXTRACT STATUS", EXTRACT)
@command("SEND REPLICAT STATUS", REPLICAT)
@command("SEND ER STATUS", ER)
@command("SEND STATUS", ANY)
def send_status(session: Session, kinds: Kinds, *, group_name: str) -> ProcessStatuses:
    """Show the activity and positions of processes, and the log that their slots retain."""
    return ProcessStatuses(*_ask_each(session, kinds, group_name, _asked_status))


def _asked_status(found: View) -> ProcessStatus:
    ended = None if found.runs else LoadState.of(found.checkpoint)
    if ended is not None:  # a finished load has no process: show its final state
        read = {"table": ended.table, "record": ended.all_rows, "timestamp": ended.time, "csn": ended.csn}
        write = [{"trail": each.trail, **each.current._asdict()} for each in found.checkpoint.write]
        words = f"{ended.words} (not running: {found.state})"
        return ProcessStatus(found.type, found.group, {"pid": 0, "status": words, "read": read, "write": write})
    entry = supervision.process_of(found)
    answer = {"pid": entry.pid, **request(entry.socket, "STATUS", timeout=_ASK_SECONDS)}
    return ProcessStatus(found.type, found.group, answer, SlotFacts.of(answer.get("slot")))


@command("SEND DISTPATH STATUS", PATH)
@command("SEND RECVPATH STATUS", RECVPATH)
def send_status_path(session: Session, kinds: Kinds, *, path_name: str) -> ProcessStatuses:
    """Show the same for distribution paths."""
    return send_status(session, kinds, group_name=path_name)


@command("SEND EXTRACT REPORT", EXTRACT, "REPORT")
@command("SEND REPLICAT REPORT", REPLICAT, "REPORT")
@command("SEND ER REPORT", ER, "REPORT")
@command("SEND REPORT", ANY, "REPORT")
@command("SEND EXTRACT ROLLOVER", EXTRACT, "ROLLOVER")
@command("SEND ER ROLLOVER", EXTRACT, "ROLLOVER")
@command("SEND ROLLOVER", ANY, "ROLLOVER")
@command("SEND EXTRACT STOP", EXTRACT, "STOP")
@command("SEND REPLICAT STOP", REPLICAT, "STOP")
@command("SEND ER STOP", ER, "STOP")
@command("SEND STOP", ANY, "STOP")
@command("SEND EXTRACT FORCESTOP", EXTRACT, "FORCESTOP")
@command("SEND REPLICAT FORCESTOP", REPLICAT, "FORCESTOP")
@command("SEND ER FORCESTOP", ER, "FORCESTOP")
@command("SEND FORCESTOP", ANY, "FORCESTOP")
def send(session: Session, kinds: Kinds, verb: str, *, group_name: str) -> Message:
    """Send a request that is answered with a confirmation only."""

    def ask(found: View) -> tuple[str, ...]:
        request(supervision.process_of(found).socket, verb)
        return f"Sending {verb} request to {found.name} ...", "Request processed."

    answers, errors = _ask_each(session, kinds, group_name, ask)
    return _message([line for lines in answers for line in lines], errors)


@command("SEND REPLICAT HANDLECOLLISIONS", "HANDLECOLLISIONS")
@command("SEND HANDLECOLLISIONS", "HANDLECOLLISIONS")
@command("SEND REPLICAT NOHANDLECOLLISIONS", "NOHANDLECOLLISIONS")
@command("SEND NOHANDLECOLLISIONS", "NOHANDLECOLLISIONS")
@command("SEND REPLICAT REPORT HANDLECOLLISIONS", "REPORTCOLLISIONS")
@command("SEND REPORT HANDLECOLLISIONS", "REPORTCOLLISIONS")
def collisions(session: Session, verb: str, *, group_name: str, table: tuple[str, ...] = ()) -> Message:
    """Turn the handling of collisions on or off, for given target tables or all, or write its state to the report."""
    for pattern in table:
        require_pattern(pattern)

    def ask(found: View) -> tuple[str, ...]:
        request(supervision.process_of(found).socket, verb, tables=list(table))
        return f"Sending {verb.replace('REPORTC', 'REPORT HANDLEC')} request to {found.name} ...", "Request processed."

    answers, errors = _ask_each(session, REPLICAT, group_name, ask)
    return _message([line for lines in answers for line in lines], errors)


def require_pattern(text: str) -> None:
    """Raise UsageError unless a text is a table name, or a pattern of names, with a schema."""
    from ggshell.types import split_name

    if len(split_name(text)) not in (2, 3):
        raise UsageError(f"{text} is not a valid table name", hint="use schema.table")


@command("SEND DISTPATH REPORT", PATH, "REPORT")
@command("SEND RECVPATH REPORT", RECVPATH, "REPORT")
@command("SEND DISTPATH ROLLOVER", PATH, "ROLLOVER")
@command("SEND RECVPATH ROLLOVER", RECVPATH, "ROLLOVER")
@command("SEND DISTPATH STOP", PATH, "STOP")
@command("SEND RECVPATH STOP", RECVPATH, "STOP")
@command("SEND DISTPATH FORCESTOP", PATH, "FORCESTOP")
@command("SEND RECVPATH FORCESTOP", RECVPATH, "FORCESTOP")
def send_path(session: Session, kinds: Kinds, verb: str, *, path_name: str) -> Message:
    """Send a request to distribution paths."""
    return send(session, kinds, verb, group_name=path_name)
