"""SEND to running processes, and LAG, which asks them and works it out for those that do not run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ggshell.errors import GgsError
from ggshell.process.control import request
from ggshell.shell import supervision
from ggshell.shell.answers import GroupLag, Lags, ProcessStatus, ProcessStatuses
from ggshell.shell.commands.info import slot_facts
from ggshell.shell.groups import (
    ANY,
    ER,
    EXTRACT,
    PATH,
    REPLICAT,
    Kinds,
    View,
    group_lag,
    is_wildcard,
    lag_note,
    one,
    select,
)
from ggshell.shell.registry import command
from ggshell.shell.results import Message, Note
from ggshell.shell.session import Session

_ASK_SECONDS = 10.0
_T = TypeVar("_T")


@command("LAG EXTRACT", EXTRACT)
@command("LAG REPLICAT", REPLICAT)
@command("LAG ER", ER)
@command("LAG", ANY)
def lag(session: Session, kinds: Kinds, *, group_name: str = "*") -> Lags:
    """The lag of running groups as they say it; of others as their files tell, growing while work waits."""
    found, errors = select(session, kinds, group_name)
    groups: list[GroupLag] = []
    notes: list[Note] = []
    for each in found:
        try:
            if each.runs:
                groups.append(_asked_lag(each))
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
    return GroupLag(found.type, found.group, microseconds, bool(answer.get("at_eof")))


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
    """Ask a group, or every running one of a wildcard; there one that does not answer keeps no other from it."""
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


@command("SEND EXTRACT GETLAG", EXTRACT)
@command("SEND REPLICAT GETLAG", REPLICAT)
@command("SEND ER GETLAG", ER)
@command("SEND GETLAG", ANY)
def getlag(session: Session, kinds: Kinds, *, group_name: str) -> Lags:
    """The lag of running groups."""
    return Lags(*_ask_each(session, kinds, group_name, _asked_lag))


@command("SEND DISTPATH GETLAG", PATH)
def getlag_path(session: Session, kinds: Kinds, *, path_name: str) -> Lags:
    """The lag of a running path."""
    return getlag(session, kinds, group_name=path_name)


@command("SEND EXTRACT STATUS", EXTRACT)
@command("SEND REPLICAT STATUS", REPLICAT)
@command("SEND ER STATUS", ER)
@command("SEND STATUS", ANY)
def send_status(session: Session, kinds: Kinds, *, group_name: str) -> ProcessStatuses:
    """What the processes are doing, their positions, and the log their slots hold back."""
    return ProcessStatuses(*_ask_each(session, kinds, group_name, _asked_status))


def _asked_status(found: View) -> ProcessStatus:
    entry = supervision.process_of(found)
    answer = {"pid": entry.pid, **request(entry.socket, "STATUS", timeout=_ASK_SECONDS)}
    return ProcessStatus(found.type, found.group, answer, slot_facts(answer.get("slot")))


@command("SEND DISTPATH STATUS", PATH)
def send_status_path(session: Session, kinds: Kinds, *, path_name: str) -> ProcessStatuses:
    """The same of a path."""
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
@command("SEND REPLICAT HANDLECOLLISIONS", REPLICAT, "HANDLECOLLISIONS")
@command("SEND HANDLECOLLISIONS", REPLICAT, "HANDLECOLLISIONS")
@command("SEND REPLICAT NOHANDLECOLLISIONS", REPLICAT, "NOHANDLECOLLISIONS")
@command("SEND NOHANDLECOLLISIONS", REPLICAT, "NOHANDLECOLLISIONS")
@command("SEND EXTRACT FORCESTOP", EXTRACT, "FORCESTOP")
@command("SEND REPLICAT FORCESTOP", REPLICAT, "FORCESTOP")
@command("SEND ER FORCESTOP", ER, "FORCESTOP")
@command("SEND FORCESTOP", ANY, "FORCESTOP")
def send(session: Session, kinds: Kinds, verb: str, *, group_name: str) -> Message:
    """A request that is only confirmed."""

    def ask(found: View) -> tuple[str, ...]:
        request(supervision.process_of(found).socket, verb)
        return f"Sending {verb} request to {found.name} ...", "Request processed."

    answers, errors = _ask_each(session, kinds, group_name, ask)
    return Message(tuple(line for lines in answers for line in lines), errors, apart=True)


@command("SEND DISTPATH REPORT", PATH, "REPORT")
@command("SEND DISTPATH ROLLOVER", PATH, "ROLLOVER")
@command("SEND DISTPATH STOP", PATH, "STOP")
@command("SEND DISTPATH FORCESTOP", PATH, "FORCESTOP")
def send_path(session: Session, kinds: Kinds, verb: str, *, path_name: str) -> Message:
    """A request to a path."""
    return send(session, kinds, verb, group_name=path_name)
