"""ADD, DELETE, REGISTER and UNREGISTER EXTRACT."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from ggshell.cli import registrations
from ggshell.cli.begin import begin_time, starting_position
from ggshell.cli.commands.alias_extract import delete_alias
from ggshell.cli.groups import EXTRACT, View, one, require_new, select
from ggshell.cli.registrations import HeldGroup
from ggshell.cli.registry import command
from ggshell.cli.results import Message, Note
from ggshell.cli.session import Session
from ggshell.clock import local_text
from ggshell.connectors.registry import connector_for, source_log
from ggshell.connectors.source_log import AskedPosition, BlockingTransaction
from ggshell.errors import NotFoundError, UsageError
from ggshell.home.checkpoint import Checkpoint, GroupKind, ReadCheckpoint, SourceType
from ggshell.terminal import redraws_lines
from ggshell.types import Csn

if TYPE_CHECKING:
    from ggshell.connectors.logged_in import LoggedIn

SLOT_REMAINS = "replication slot still retains the server's log"
"""What DELETE EXTRACT says of the slot that it leaves."""


@command("ADD EXTRACT")
def add_extract(
    session: Session,
    *,
    group_name: str,
    tranlog: bool = False,
    integrated: bool = False,
    begin: str = "",
    eof: bool = False,
    lsn: str = "",
    scn: str = "",
    lognum: int | None = None,
    logpos: int | None = None,
    gtidset: str = "",
    desc: str = "",
    exttrailsource: str = "",
    extseqno: int | None = None,
    extrba: int | None = None,
    sourceistable: bool = False,
    passive: bool = False,
) -> Message:
    """Add a group that reads the log (TRANLOG), a trail (EXTTRAILSOURCE), or tables once (SOURCEISTABLE)."""
    if bool(tranlog or integrated) + bool(exttrailsource) + sourceistable != 1:
        raise UsageError("a source is required.", hint="add TRANLOG, EXTTRAILSOURCE trail, or SOURCEISTABLE")
    lines = registrations.set_aside(session, GroupKind.EXTRACT, group_name)
    require_new(session.home, GroupKind.EXTRACT, group_name)
    now = session.clock.now()
    if sourceistable:
        found = Checkpoint(group_name, GroupKind.EXTRACT, ReadCheckpoint(SourceType.TABLE), begin="")
    elif exttrailsource:
        start = starting_position(session, exttrailsource, begin, extseqno, extrba)
        read = ReadCheckpoint(SourceType.TRAIL, exttrailsource, startup=start, recovery=start, current=start)
        found = Checkpoint(group_name, GroupKind.EXTRACT, read, begin=begin, begin_time=now if begin else 0)
    else:
        begin = "NOW" if eof else begin or ("" if lognum is not None or logpos is not None or gtidset else "NOW")
        asked = AskedPosition(begin, begin_time(begin, now), lsn, scn, lognum=lognum, logpos=logpos, gtid=gtidset)
        found = _log_extract(session, group_name, asked)
    found = found._replace(options=found.options._replace(passive=passive))
    registrations.add(session, found._replace(description=desc, created=now))
    lines.append("EXTRACT added.")
    if found.begin_csn:
        lines.append(f"Capture begins {source_log(found.options).start_text(found.begin_csn)}.")
    return Message(tuple(lines), notes=skipped(session, found))


def skipped(session: Session, found: Checkpoint) -> tuple[Note, ...]:
    """A note that the log holds changes from before the group's start point, if the login can see that."""
    if found.read.source is not SourceType.LOG:
        return ()
    held = source_log(found.options).uncaptured(session.login, found)
    return (Note(*held),) if held is not None else ()


def _log_extract(session: Session, group: str, asked: AskedPosition) -> Checkpoint:
    """Create the checkpoint of an Extract that reads the log of the login, or of the default kind without a login.

    Raises StateError without the login that is needed to find the position, or if a time is given that the log may not
    hold.
    """
    connector = session.login.connector if session.login is not None else connector_for("")
    start = connector.log.start(session.login, group, asked)
    return Checkpoint(
        group,
        GroupKind.EXTRACT,
        ReadCheckpoint(SourceType.LOG),
        begin=asked.lsn or asked.scn or asked.gtid or asked.begin,
        begin_csn=str(start.csn),
        begin_time=start.moment,
        options=start.options._replace(source_kind=connector.kind),
    )


@command("DELETE EXTRACT")
def delete_extract(session: Session, *, group_name: str, force: bool = False) -> Message:
    """Delete groups. With a wildcard, a group that cannot be deleted does not stop the others.

    Their trails remain, and so does a slot, which retains the server's log until UNREGISTER EXTRACT.
    """
    delete = partial(_deleted, session)
    return registrations.delete_each(session, EXTRACT, group_name, delete, what="EXTRACT", force=force)


def _deleted(session: Session, group: HeldGroup) -> list[str]:
    found = group.found
    if found.checkpoint.options.alias_of:
        return list(delete_alias(session, group))
    owner = registrations.owner_of(session, found.group)
    group.remove()
    lines = [f"Deleted EXTRACT {found.group}."]
    if owner:
        lines.append(f"Only its files in this copy are removed: its replication slot belongs to {owner}.")
    elif found.checkpoint.read.source is SourceType.LOG:
        lines += _still_registered(session, found.checkpoint)
    return lines


def _still_registered(session: Session, found: Checkpoint) -> list[str]:
    """The line about the slot that a deleted Extract leaves; none if it has none, as far as the login can see."""
    seen = found.options.watch.database if found.options.watch is not None else ""
    is_elsewhere = session.login is None or (bool(seen) and session.login.database != seen)
    if not (found.options.slot if is_elsewhere else _registered(session, found)):
        return []
    elsewhere = f"Log in to {seen or 'its source'}: if {found.group} is still registered there, its"
    start = elsewhere if is_elsewhere else "Its"
    return [f"{start} {SLOT_REMAINS}: run UNREGISTER EXTRACT {found.group}, unless you add the group again."]


def _registered(session: Session, found: Checkpoint) -> bool:
    return source_log(found.options).registered(session.login, found)


@command("REGISTER EXTRACT")
def register_extract(session: Session, *, group_name: str, database: bool = False) -> Message:
    """Have the database keep its log for a group: for PostgreSQL, create the slot.

    A group that was added with BEGIN NOW before it was registered, and never ran, begins at that position.
    """
    from ggshell.home.events import Severity

    login = session.logged_in()
    registration = login.connector.log.register(login, group_name, _WaitingFor(session, group_name))
    lines: list[str] = []
    for code, text in registration.messages:
        session.event(Severity.INFO, code, text)
        lines.append(f"{local_text(session.clock.now())}  INFO    {code}  {text}")
    if session.home.checkpoint(group_name, GroupKind.EXTRACT).exists():
        lines += _begun_later(session, login, one(session, EXTRACT, group_name), registration.kept_from)
    return Message(tuple(lines), apart=True)


def _begun_later(session: Session, login: LoggedIn, found: View, kept_from: Csn) -> list[str]:
    """Let an Extract that was to begin now, before the database kept its log, begin where that is kept."""

    def begins_before(checkpoint: Checkpoint) -> bool:
        earlier = not checkpoint.begin_csn or Csn.parse(checkpoint.begin_csn) < kept_from
        return not checkpoint.started and checkpoint.begin.upper() == "NOW" and earlier

    if not begins_before(found.checkpoint):
        return []
    with registrations.held(session, found, "registered") as group:
        if not begins_before(group.checkpoint):
            return []
        group.save(group.checkpoint._replace(begin_csn=str(kept_from)))
    return [f"Capture begins {login.connector.log.start_text(str(kept_from))}."]


class _WaitingFor:
    """Reports each transaction that REGISTER EXTRACT waits for, once."""

    def __init__(self, session: Session, group: str) -> None:
        self._session = session
        self._group = group
        self._named: set[str] = set()

    def __call__(self, found: list[BlockingTransaction]) -> None:
        from ggshell.home.events import Severity

        self._session.progress(f"waits for {len(found)} transaction{'s'[: len(found) != 1]}; Ctrl-C cancels")
        for each in found:
            if each.name in self._named:
                continue
            self._named.add(each.name)
            text = f"REGISTER EXTRACT {self._group} waits for a transaction to end: {each.text}."
            self._session.event(Severity.WARNING, "GGS-00419", text)
            start = "\r\x1b[K" if redraws_lines(sys.stderr) else ""
            sys.stderr.write(f"{start}{local_text(self._session.clock.now())}  WARNING GGS-00419  {text}\n")
            sys.stderr.flush()


@command("UNREGISTER EXTRACT")
def unregister_extract(session: Session, *, group_name: str, database: bool = False) -> Message:
    """Release the log of a group that is not running: for PostgreSQL, drop the slot."""
    try:
        found, _ = select(session, EXTRACT, group_name)
    except NotFoundError:
        found = []  # the group is already deleted; its slot still has to be dropped
    with ExitStack() as stack:
        for each in found:
            stack.enter_context(registrations.held(session, each, "unregistered"))
        login = session.logged_in()
        done = login.connector.log.unregister(login, group_name)
    return Message((f"EXTRACT {group_name} is unregistered: {done}.",), apart=True)
