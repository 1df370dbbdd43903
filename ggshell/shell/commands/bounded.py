"""SEND EXTRACT … BR, and BR SHOW, which draws what Bounded Recovery has kept."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from ggshell.clock import from_datetime
from ggshell.errors import GgsError, StateError, UsageError
from ggshell.process.control import request
from ggshell.shell import supervision
from ggshell.shell.begin import begin_time
from ggshell.shell.bounded_results import Bar, BoundedStatus, Timeline
from ggshell.shell.groups import EXTRACT, View, one
from ggshell.shell.registry import command
from ggshell.shell.session import Session
from ggshell.types import LogPosition

_ASK_SECONDS = 30.0


def _ask(session: Session, group: str, action: str, arguments: dict[str, Any]) -> BoundedStatus:
    found = one(session, EXTRACT, group)
    socket = supervision.process_of(found).socket
    answer = request(socket, "BR", timeout=_ASK_SECONDS, action=action, **arguments)
    return BoundedStatus(found.group, action, answer)


@command("SEND EXTRACT BR BRSTATUS", "BRSTATUS")
@command("SEND BR BRSTATUS", "BRSTATUS")
@command("SEND EXTRACT BR BRSTATS", "BRSTATS")
@command("SEND BR BRSTATS", "BRSTATS")
@command("SEND EXTRACT BR BRSTART", "BRSTART")
@command("SEND BR BRSTART", "BRSTART")
@command("SEND EXTRACT BR BRSTOP", "BRSTOP")
@command("SEND BR BRSTOP", "BRSTOP")
def bounded(session: Session, action: str, *, group_name: str) -> BoundedStatus:
    """What Bounded Recovery of a running Extract is and does; turned on and off."""
    return _ask(session, group_name, action, {})


@command("SEND EXTRACT BR BRINTERVAL")
@command("SEND BR BRINTERVAL")
def interval_of(session: Session, *, group_name: str, interval: str) -> BoundedStatus:
    """Another interval for the rest of the run."""
    return _ask(session, group_name, "BRINTERVAL", {"interval": interval})


@command("SEND EXTRACT BR BRFSOPTION")
@command("SEND BR BRFSOPTION")
def durability(session: Session, *, group_name: str, ms_sync: bool = False, ms_async: bool = False) -> BoundedStatus:
    """Whether files are waited for, for the rest of the run."""
    return _ask(session, group_name, "BRFSOPTION", {"durable": not ms_async})


@command("SEND EXTRACT BR BRCHECKPOINT")
@command("SEND BR BRCHECKPOINT")
def checkpoint(
    session: Session, *, group_name: str, immediate: bool = False, in_: str = "", at: str = ""
) -> BoundedStatus:
    """One more checkpoint: now, in a while, or at a time of this machine's clock."""
    arguments: dict[str, Any] = {}
    if in_:
        arguments["in"] = in_
    elif at:
        arguments["at"] = begin_time(at, session.clock.now())
        if arguments["at"] < session.clock.now():
            raise UsageError(f"{at} is past.", hint="BRCHECKPOINT IMMEDIATE")
    return _ask(session, group_name, "BRCHECKPOINT", arguments)


@command("BR SHOW")
def show(session: Session, *, group_name: str) -> Timeline:
    """The log's time with open transactions, the last checkpoint, and where a restart would begin."""
    found = one(session, EXTRACT, group_name)
    kept = found.checkpoint.options.get("br")
    if not kept:
        raise StateError(
            f"{found.name} has no Bounded Recovery yet.", hint="it is for Extracts on Oracle redo, once they have run"
        )
    if not found.runs:
        return _timeline(found, kept, None)
    try:
        socket = supervision.process_of(found).socket
        answer = request(socket, "SHOWTRANS", timeout=_ASK_SECONDS)
        kept = request(socket, "BR", timeout=_ASK_SECONDS, action="BRSTATUS")
    except GgsError:  # it begins, or ends: what its file says is true as well
        return _timeline(found, kept, None)
    return _timeline(found, kept, [item for item in answer["transactions"] if item["status"] == "Running"])


class _Restart(NamedTuple):
    """Where a restart would begin: SCN, segment, time, and why there."""

    scn: int
    sequence: int
    time: int
    reason: str


def _timeline(found: View, kept: dict[str, Any], now: list[dict[str, Any]] | None) -> Timeline:
    """``now``: the open transactions that a running process has told; None when it does not run."""
    read = found.checkpoint.read
    persisted = {item[0]: item for item in kept.get("persisted", ())}
    if now is None:
        bars = [Bar(item[0], item[1], True, bool(item[5])) for item in persisted.values()]
    else:
        bars = [_bar(item, persisted) for item in now]
    end = kept.get("end") or [0] * 5
    restart = _restart(found, kept, now)
    return Timeline(
        found.group,
        end=max([read.current_time, int(kept.get("log_time", 0)), end[4], *(bar.begin for bar in bars)]),
        bars=tuple(sorted(bars, key=lambda bar: bar.begin)),
        checkpoint=end[4],
        number=int(kept.get("last_number", 0)),
        interval=int(kept.get("interval", 0)),
        restart=restart.time,
        restart_sequence=restart.sequence,
        end_sequence=read.current.sequence if isinstance(read.current, LogPosition) else 0,
        reason=restart.reason,
        running=now is not None,
    )


def _restart(found: View, kept: dict[str, Any], now: list[dict[str, Any]] | None) -> _Restart:
    read = found.checkpoint.read
    place = read.recovery if isinstance(read.recovery, LogPosition) else LogPosition(0, 0, 0)
    oldest = _Restart(place.csn, place.sequence, read.recovery_time, "the begin of the oldest open transaction")
    if now:
        first = min(now, key=lambda item: int(item["scn"]))
        oldest = oldest._replace(scn=int(first["scn"]), sequence=first["seqno"], time=_begin(first))
    elif now is not None or read.recovery == read.current:
        oldest = oldest._replace(reason="no transaction is open")
    begin = kept.get("begin")
    if not begin or oldest.scn >= begin[2] or kept.get("status") == "OFF":
        return oldest
    name = kept.get("restart_name")
    reason = "what is older is restored from files" + (f", {name} is not in files" if name else "")
    return _Restart(begin[2], begin[0], begin[4], reason)


def _begin(item: dict[str, Any]) -> int:
    return from_datetime(datetime.fromisoformat(item["start_time"]))


def _bar(item: dict[str, Any], persisted: dict[str, Any]) -> Bar:
    saved = persisted.get(item["xid"])
    return Bar(item["xid"], _begin(item), saved is not None, bool(saved and saved[5]), item["items"])
