"""SEND EXTRACT about open transactions: SHOWTRANS, SKIPTRANS, FORCETRANS, the cache, and TRANLOGOPTIONS."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ggshell.errors import DiskError
from ggshell.process.control import request
from ggshell.shell import supervision
from ggshell.shell.answers import Transactions
from ggshell.shell.bounded_results import CacheStats
from ggshell.shell.groups import ANY, EXTRACT, Kinds, one
from ggshell.shell.registry import command
from ggshell.shell.results import Message
from ggshell.shell.session import Session

_ASK_SECONDS = 30.0


@command("SEND EXTRACT SHOWTRANS", EXTRACT)
@command("SEND SHOWTRANS", ANY)
def showtrans(
    session: Session,
    kinds: Kinds,
    *,
    group_name: str,
    transaction_id: str = "",
    thread: int | None = None,
    count: int | None = None,
    duration: str = "",
    tabular: bool = False,
    all: bool = False,  # noqa: A002 - the name that stands in the line
    file: str | tuple[str, str] = "",
) -> Transactions | Message:
    """The transactions that are open at the source, the oldest first; with FILE they go to a file instead of the screen."""
    found = one(session, kinds, group_name)
    name, detail = (file, False) if isinstance(file, str) else (file[0], True)
    arguments = {"xid": transaction_id, "count": count, "duration": duration, "detail": detail}
    answer = request(supervision.process_of(found).socket, "SHOWTRANS", timeout=_ASK_SECONDS, **arguments)
    given = [item for item in answer.get("transactions", ()) if thread is None or item.get("thread", 1) == thread]
    result = Transactions(found.group, tuple(given), tabular, answer.get("restart"))
    if not name:
        return result
    path = session.home.resolve(name)
    _write(path, result)
    return Message((f"{len(given)} transactions written to {path}.",), apart=True)


def _write(path: Path, result: Transactions) -> None:
    from ggshell.shell.layout.requests import transactions

    try:
        path.write_text(transactions(result), encoding="utf-8")
    except OSError as error:
        raise DiskError(f"cannot write {path}: {error.strerror}") from error


@command("SEND EXTRACT SKIPTRANS", EXTRACT, "SKIPTRANS", "Leave transaction {} out")
@command("SEND SKIPTRANS", EXTRACT, "SKIPTRANS", "Leave transaction {} out")
@command("SEND EXTRACT FORCETRANS", EXTRACT, "FORCETRANS", "Write transaction {} to the trail as if it had committed")
@command("SEND FORCETRANS", EXTRACT, "FORCETRANS", "Write transaction {} to the trail as if it had committed")
def decide(
    session: Session,
    kinds: Kinds,
    verb: str,
    question: str,
    *,
    group_name: str,
    transaction_id: str,
    thread: int | None = None,
    force: bool = False,
) -> Message:
    """Skip or force one open transaction; asks, since that cannot be taken back, unless FORCE is there."""
    found = one(session, kinds, group_name)
    socket = supervision.process_of(found).socket
    if not force:
        session.confirm(question.format(transaction_id), "with FORCE nobody is asked")
    arguments: dict[str, Any] = {"xid": transaction_id, "thread": thread}
    answer = request(socket, verb, timeout=_ASK_SECONDS, **arguments)
    done = "is left out" if verb == "SKIPTRANS" else "is written to the trail"
    lines = (
        f"Sending {verb} request to {found.name} ...",
        f"Transaction {answer['xid']} ({answer['items']} items) {done}.",
    )
    return Message(lines, apart=True)


@command("SEND EXTRACT CACHEMGR CACHESTATS", EXTRACT)
@command("SEND CACHEMGR CACHESTATS", EXTRACT)
def cachestats(
    session: Session,
    kinds: Kinds,
    *,
    group_name: str,
    cacheall: bool = False,
    cacheminimal: bool = False,
    cachesuperpool: bool = False,
    cachecurrentpool: bool = False,
) -> CacheStats:
    """How much memory open transactions take, and how many went to disk; there is one pool."""
    found = one(session, kinds, group_name)
    return CacheStats(found.group, request(supervision.process_of(found).socket, "CACHEMGR", timeout=_ASK_SECONDS))


@command("SEND EXTRACT TRANLOGOPTIONS TRANSCLEANUPFREQUENCY", EXTRACT)
@command("SEND TRANLOGOPTIONS TRANSCLEANUPFREQUENCY", EXTRACT)
def cleanup_frequency(session: Session, kinds: Kinds, *, group_name: str, minutes: str) -> Message:
    """How often orphaned transactions are looked for, from now on."""
    return _options(session, kinds, group_name, {"minutes": int(minutes)})


@command("SEND EXTRACT TRANLOGOPTIONS", EXTRACT)
@command("SEND TRANLOGOPTIONS", EXTRACT)
def tranlogoptions(
    session: Session,
    kinds: Kinds,
    *,
    group_name: str,
    prepareforupgradetoie: bool = False,
    noprepareforupgradetoie: bool = False,
    purgeorphanedtransactions: bool = False,
    nopurgeorphanedtransactions: bool = False,
) -> Message:
    """Whether orphaned transactions are purged."""
    return _options(session, kinds, group_name, {"purge": purgeorphanedtransactions})


def _options(session: Session, kinds: Kinds, group: str, arguments: dict[str, Any]) -> Message:
    found = one(session, kinds, group)
    answer = request(supervision.process_of(found).socket, "TRANLOGOPTIONS", timeout=_ASK_SECONDS, **arguments)
    every = int(answer["every"])
    now = f"Orphaned transactions are looked for every {every // 60} minutes." if every else "They are not looked for."
    return Message((f"Sending TRANLOGOPTIONS request to {found.name} ...", now), apart=True)
