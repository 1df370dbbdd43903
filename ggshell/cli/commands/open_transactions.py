"""SEND EXTRACT for open transactions: SHOWTRANS, SKIPTRANS, FORCETRANS, CACHEMGR, and TRANLOGOPTIONS."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ggshell.cli import supervision
from ggshell.cli.groups import ANY, EXTRACT, Kinds, one
from ggshell.cli.registry import command
from ggshell.cli.results import Message
from ggshell.cli.results.bounded import CacheStats
from ggshell.cli.results.requests import Transactions
from ggshell.cli.session import Session
from ggshell.files import disk_errors
from ggshell.groups.process_request import request
from ggshell.home.shown_place import ShownPlace

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
    duration: float = 0.0,
    tabular: bool = False,
    all: bool = False,  # noqa: A002 - the name in the syntax line
    file: str | tuple[str, str] = "",
) -> Transactions | Message:
    """Show the transactions that are open at the source, the oldest first; FILE writes them to a file."""
    found = one(session, kinds, group_name)
    name, detail = (file, False) if isinstance(file, str) else (file[0], True)
    arguments = {"xid": transaction_id, "count": count, "duration": float(duration), "detail": detail}
    answer = request(supervision.process_of(found).socket, "SHOWTRANS", timeout=_ASK_SECONDS, **arguments)
    given = [item for item in answer.get("transactions", ()) if thread in (None, _thread(item))]
    result = Transactions(found.group, tuple(given), tabular, answer.get("restart") or "")
    if not name:
        return result
    path = session.home.resolve(name)
    _write(path, result)
    return Message((f"{len(given)} transactions written to {path}.",), apart=True)


def _thread(transaction: Mapping[str, Any]) -> object:
    return ShownPlace.of(transaction).values.get("thread", 1)


def _write(path: Path, result: Transactions) -> None:
    with disk_errors("write", path):
        path.write_text(result.layout, encoding="utf-8")


@command("SEND EXTRACT SKIPTRANS", EXTRACT, "SKIPTRANS", "Skip transaction {}")
@command("SEND SKIPTRANS", EXTRACT, "SKIPTRANS", "Skip transaction {}")
@command("SEND EXTRACT FORCETRANS", EXTRACT, "FORCETRANS", "Write transaction {} to the trail as if it were committed")
@command("SEND FORCETRANS", EXTRACT, "FORCETRANS", "Write transaction {} to the trail as if it were committed")
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
    """Skip or force one open transaction. This cannot be undone, so it requires a confirmation or FORCE."""
    found = one(session, kinds, group_name)
    socket = supervision.process_of(found).socket
    if not force:
        session.confirm(question.format(transaction_id), "use FORCE to skip the question")
    arguments: dict[str, Any] = {"xid": transaction_id, "thread": thread}
    answer = request(socket, verb, timeout=_ASK_SECONDS, **arguments)
    done = "is skipped" if verb == "SKIPTRANS" else "is written to the trail"
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
    """Show how much memory open transactions use, and how many are on disk; there is a single pool."""
    found = one(session, kinds, group_name)
    return CacheStats(found.group, request(supervision.process_of(found).socket, "CACHEMGR", timeout=_ASK_SECONDS))


@command("SEND EXTRACT TRANLOGOPTIONS TRANSCLEANUPFREQUENCY", EXTRACT)
@command("SEND TRANLOGOPTIONS TRANSCLEANUPFREQUENCY", EXTRACT)
def cleanup_frequency(session: Session, kinds: Kinds, *, group_name: str, minutes: int) -> Message:
    """Set how often Extract looks for orphaned transactions, for the rest of the run."""
    return _options(session, kinds, group_name, {"minutes": minutes})


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
    """Set whether orphaned transactions are purged."""
    return _options(session, kinds, group_name, {"purge": purgeorphanedtransactions})


def _options(session: Session, kinds: Kinds, group: str, arguments: dict[str, Any]) -> Message:
    found = one(session, kinds, group)
    answer = request(supervision.process_of(found).socket, "TRANLOGOPTIONS", timeout=_ASK_SECONDS, **arguments)
    every = int(answer["every"])
    now = (
        f"The Extract checks for orphaned transactions every {every // 60} minutes."
        if every
        else "The Extract does not check for orphaned transactions."
    )
    return Message((f"Sending TRANLOGOPTIONS request to {found.name} ...", now), apart=True)
