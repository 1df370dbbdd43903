"""SEND to running processes, and LAG, which asks them and works it out for those that do not run."""

from __future__ import annotations

from typing import Any

from ggshell.errors import GgsError
from ggshell.process.control import request
from ggshell.shell import supervision
from ggshell.shell.answers import GroupLag, Lags, ProcessStatus, ProcessStatuses, Transactions
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


@command("LAG EXTRACT", EXTRACT)
@command("LAG REPLICAT", REPLICAT)
@command("LAG ER", ER)
@command("LAG", ANY)
def lag(session: Session, kinds: Kinds, *, group_name: str) -> Lags:
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


@command("SEND EXTRACT GETLAG", EXTRACT)
@command("SEND REPLICAT GETLAG", REPLICAT)
@command("SEND GETLAG", ANY)
def getlag(session: Session, kinds: Kinds, *, group_name: str) -> Lags:
    """The lag of a running group."""
    return Lags((_asked_lag(one(session, kinds, group_name)),))


@command("SEND DISTPATH GETLAG", PATH)
def getlag_path(session: Session, kinds: Kinds, *, path_name: str) -> Lags:
    """The lag of a running path."""
    return getlag(session, kinds, group_name=path_name)


@command("SEND EXTRACT STATUS", EXTRACT)
@command("SEND REPLICAT STATUS", REPLICAT)
@command("SEND STATUS", ANY)
def send_status(session: Session, kinds: Kinds, *, group_name: str) -> ProcessStatuses:
    """What the process is doing, its positions, and the log its slot holds back."""
    found = one(session, kinds, group_name)
    entry = supervision.process_of(found)
    answer = {"pid": entry.pid, **request(entry.socket, "STATUS", timeout=_ASK_SECONDS)}
    return ProcessStatuses((ProcessStatus(found.type, found.group, answer, slot_facts(answer.get("slot"))),))


@command("SEND DISTPATH STATUS", PATH)
def send_status_path(session: Session, kinds: Kinds, *, path_name: str) -> ProcessStatuses:
    """The same of a path."""
    return send_status(session, kinds, group_name=path_name)


@command("SEND EXTRACT SHOWTRANS", EXTRACT)
@command("SEND SHOWTRANS", ANY)
def showtrans(session: Session, kinds: Kinds, *, group_name: str) -> Transactions:
    """The transactions that are open at the source."""
    found = one(session, kinds, group_name)
    answer = request(supervision.process_of(found).socket, "SHOWTRANS", timeout=_ASK_SECONDS)
    return Transactions(found.group, tuple(answer.get("transactions", ())))


@command("SEND EXTRACT REPORT", EXTRACT, "REPORT")
@command("SEND REPLICAT REPORT", REPLICAT, "REPORT")
@command("SEND REPORT", ANY, "REPORT")
@command("SEND EXTRACT ROLLOVER", EXTRACT, "ROLLOVER")
@command("SEND ROLLOVER", ANY, "ROLLOVER")
@command("SEND EXTRACT STOP", EXTRACT, "STOP")
@command("SEND REPLICAT STOP", REPLICAT, "STOP")
@command("SEND STOP", ANY, "STOP")
@command("SEND REPLICAT HANDLECOLLISIONS", REPLICAT, "HANDLECOLLISIONS")
@command("SEND HANDLECOLLISIONS", REPLICAT, "HANDLECOLLISIONS")
@command("SEND REPLICAT NOHANDLECOLLISIONS", REPLICAT, "NOHANDLECOLLISIONS")
@command("SEND NOHANDLECOLLISIONS", REPLICAT, "NOHANDLECOLLISIONS")
@command("SEND EXTRACT FORCESTOP", EXTRACT, "FORCESTOP")
@command("SEND REPLICAT FORCESTOP", REPLICAT, "FORCESTOP")
@command("SEND FORCESTOP", ANY, "FORCESTOP")
def send(session: Session, kinds: Kinds, verb: str, *, group_name: str) -> Message:
    """A request that is only confirmed."""
    found = one(session, kinds, group_name)
    _confirmed(found, verb)
    return Message((f"Sending {verb} request to {found.name} ...", "Request processed."), apart=True)


@command("SEND DISTPATH REPORT", PATH, "REPORT")
@command("SEND DISTPATH ROLLOVER", PATH, "ROLLOVER")
@command("SEND DISTPATH STOP", PATH, "STOP")
@command("SEND DISTPATH FORCESTOP", PATH, "FORCESTOP")
def send_path(session: Session, kinds: Kinds, verb: str, *, path_name: str) -> Message:
    """A request to a path."""
    return send(session, kinds, verb, group_name=path_name)


def _confirmed(found: View, verb: str) -> dict[str, Any]:
    return request(supervision.process_of(found).socket, verb)
