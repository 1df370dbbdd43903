"""SEND EXTRACT … BR, and BR SHOW, which draws the state of Bounded Recovery."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ggshell.cli import supervision
from ggshell.cli.begin import begin_time
from ggshell.cli.groups import EXTRACT, one
from ggshell.cli.registry import command
from ggshell.cli.results.bounded import Bar, BoundedStatus, Timeline
from ggshell.cli.session import Session
from ggshell.errors import GgsError, StateError, UsageError
from ggshell.groups.process_request import request
from ggshell.home.bounded_state import BoundedState, PersistedTransaction
from ggshell.types import LogPosition

_ASK_SECONDS = 30.0


def _ask(session: Session, group: str, action: str, arguments: dict[str, Any]) -> BoundedStatus:
    found = one(session, EXTRACT, group)
    socket = supervision.process_of(found).socket
    answer = request(socket, "BR", timeout=_ASK_SECONDS, action=action, **arguments)
    return BoundedStatus(found.group, action, BoundedState.of(answer), answer.get("counts") or {})


@command("SEND EXTRACT BR BRSTATUS", "BRSTATUS")
@command("SEND BR BRSTATUS", "BRSTATUS")
@command("SEND EXTRACT BR BRSTATS", "BRSTATS")
@command("SEND BR BRSTATS", "BRSTATS")
@command("SEND EXTRACT BR BRSTART", "BRSTART")
@command("SEND BR BRSTART", "BRSTART")
@command("SEND EXTRACT BR BRSTOP", "BRSTOP")
@command("SEND BR BRSTOP", "BRSTOP")
def bounded(session: Session, action: str, *, group_name: str) -> BoundedStatus:
    """Show the state of Bounded Recovery of a running Extract, or turn it on or off."""
    return _ask(session, group_name, action, {})


@command("SEND EXTRACT BR BRINTERVAL")
@command("SEND BR BRINTERVAL")
def interval_of(session: Session, *, group_name: str, interval: float) -> BoundedStatus:
    """Set another interval for the rest of the run."""
    return _ask(session, group_name, "BRINTERVAL", {"interval": float(interval)})


@command("SEND EXTRACT BR BRFSOPTION")
@command("SEND BR BRFSOPTION")
def durability(session: Session, *, group_name: str, ms_sync: bool = False, ms_async: bool = False) -> BoundedStatus:
    """Set whether Bounded Recovery waits until its files are on disk, for the rest of the run."""
    return _ask(session, group_name, "BRFSOPTION", {"durable": not ms_async})


@command("SEND EXTRACT BR BRCHECKPOINT")
@command("SEND BR BRCHECKPOINT")
def checkpoint(
    session: Session, *, group_name: str, immediate: bool = False, in_: float | None = None, at: str = ""
) -> BoundedStatus:
    """Request an additional checkpoint: now, after a delay, or at a local time."""
    arguments: dict[str, Any] = {}
    if in_ is not None:
        arguments["in"] = float(in_)
    elif at:
        arguments["at"] = begin_time(at, session.clock.now())
        if arguments["at"] < session.clock.now():
            raise UsageError(f"{at} is in the past.", hint="use BRCHECKPOINT IMMEDIATE")
    return _ask(session, group_name, "BRCHECKPOINT", arguments)


@command("BR SHOW")
def show(session: Session, *, group_name: str) -> Timeline:
    """Show a timeline of the log with the open transactions, the last checkpoint, and the restart point."""
    found = one(session, EXTRACT, group_name)
    kept = found.checkpoint.options.bounded
    if kept is None:
        raise StateError(
            f"{found.name} does not have Bounded Recovery yet.",
            hint="START an Extract on Oracle redo first",
        )
    read = found.checkpoint.read
    saved = _Moment(_position(read.current), read.current_time, _position(read.recovery), read.recovery_time)
    if not found.runs:
        return _timeline(found.group, kept, saved)
    try:
        socket = supervision.process_of(found).socket
        answer = request(socket, "BR", timeout=_ASK_SECONDS, action="BRSHOW")
    except GgsError:  # the process is starting or ending: the checkpoint file is valid as well
        return _timeline(found.group, kept, saved)
    return _timeline(found.group, BoundedState.of(answer), _answered(answer))


class _Open(NamedTuple):
    """An open transaction of a running Extract, and its start position."""

    name: str
    begin: int
    items: int
    place: LogPosition


class _Moment(NamedTuple):
    """The state that BR SHOW draws, all from the same moment.

    ``here``: how far the log was read; ``oldest``: the oldest position that is still needed; ``open``: the open
    transactions, the oldest first, or None if only the checkpoint file is known.
    """

    here: LogPosition
    time: int
    oldest: LogPosition
    oldest_time: int
    open: tuple[_Open, ...] | None = None


def _position(place: object) -> LogPosition:
    return place if isinstance(place, LogPosition) else LogPosition(0, 0, 0)


def _answered(answer: Mapping[str, Any]) -> _Moment:
    """Convert the answer of a running Extract."""
    *here, time = answer["here"]
    found = tuple(_Open(name, begin, items, LogPosition(*place)) for name, begin, items, *place in answer["open"])
    place = LogPosition(*here)
    oldest, since = (found[0].place, found[0].begin) if found else (place, time)
    return _Moment(place, time, oldest, since, found)


class _Restart(NamedTuple):
    """The point where a restart would begin: SCN, segment, time, and the reason."""

    scn: int
    sequence: int
    time: int
    reason: str


def _timeline(group: str, kept: BoundedState, moment: _Moment) -> Timeline:
    persisted = {item.name: item for item in kept.persisted}
    if moment.open is None:
        bars = [Bar(item.name, item.begin_time, True, item.dirty) for item in persisted.values()]
    else:
        bars = [_bar(item, persisted) for item in moment.open]
    end = kept.end.time if kept.end is not None else 0
    restart = _restart(kept, moment)
    return Timeline(
        group,
        end=max([moment.time, kept.log_time, end, *(bar.begin for bar in bars)]),
        bars=tuple(sorted(bars, key=lambda bar: bar.begin)),
        checkpoint=end,
        number=kept.last_number,
        interval=kept.interval,
        restart=restart.time,
        restart_sequence=restart.sequence,
        end_sequence=moment.here.sequence,
        reason=restart.reason,
        running=moment.open is not None,
    )


def _restart(kept: BoundedState, moment: _Moment) -> _Restart:
    idle = moment.oldest == moment.here if moment.open is None else not moment.open
    reason = "no transaction is open" if idle else "the beginning of the oldest open transaction"
    oldest = _Restart(moment.oldest.csn, moment.oldest.sequence, moment.oldest_time, reason)
    begin = kept.begin
    if begin is None or oldest.scn >= begin.csn or kept.status == "OFF":
        return oldest
    reason = "older data is restored from files" + _waited_for(kept, moment)
    return _Restart(begin.csn, begin.sequence, begin.time, reason)


def _waited_for(kept: BoundedState, moment: _Moment) -> str:
    """Describe the transaction that limits the restart point.

    It may have ended or been skipped since the checkpoint.
    """
    name = kept.restart_name
    if not name:
        return ""
    if any(item.name == name for item in moment.open or ()):
        return f", {name} is not in files"
    since = " and is no longer pending" if moment.open is not None else ""
    return f", {name} was open and not in files at checkpoint {kept.last_number}{since}"


def _bar(item: _Open, persisted: Mapping[str, PersistedTransaction]) -> Bar:
    saved = persisted.get(item.name)
    return Bar(item.name, item.begin, saved is not None, saved is not None and saved.dirty, item.items)
