"""ADD, DELETE, REGISTER and UNREGISTER EXTRACT."""

from __future__ import annotations

from ggshell.clock import local_text
from ggshell.errors import NotFoundError, StateError, UsageError
from ggshell.shell import registrations
from ggshell.shell.begin import begin_time, log_place, starting_position
from ggshell.shell.groups import EXTRACT, require_new, require_stopped, select
from ggshell.shell.redo_begin import redo_checkpoint
from ggshell.shell.registry import command
from ggshell.shell.results import Message
from ggshell.shell.session import Session
from ggshell.store import checkpoint as checkpoints
from ggshell.store.checkpoint import Checkpoint, GroupType, ReadCheckpoint, SourceType
from ggshell.types import Csn


@command("ADD EXTRACT")
def add_extract(
    session: Session,
    *,
    group_name: str,
    tranlog: bool = False,
    integrated: bool = False,
    begin: str = "",
    lsn: str = "",
    scn: str = "",
    desc: str = "",
    exttrailsource: str = "",
    extseqno: int | None = None,
    extrba: int | None = None,
    sourceistable: bool = False,
) -> Message:
    """A group that reads the log (TRANLOG), a trail (EXTTRAILSOURCE), or tables, once (SOURCEISTABLE)."""
    if bool(tranlog or integrated) + bool(exttrailsource) + sourceistable != 1:
        raise UsageError("one source is needed.", hint="TRANLOG, EXTTRAILSOURCE trail, or SOURCEISTABLE")
    lines = registrations.set_aside(session, GroupType.EXTRACT, group_name)
    require_new(session.home, GroupType.EXTRACT, group_name)
    now = session.clock.now()
    if sourceistable:
        found = Checkpoint(group_name, GroupType.EXTRACT, ReadCheckpoint(SourceType.TABLE), begin="")
    elif exttrailsource:
        start = starting_position(session, exttrailsource, begin, extseqno, extrba)
        read = ReadCheckpoint(SourceType.TRAIL, exttrailsource, startup=start, recovery=start, current=start)
        found = Checkpoint(group_name, GroupType.EXTRACT, read, begin=begin, begin_time=now if begin else 0)
    else:
        found = _log_extract(session, group_name, begin or "NOW", lsn, scn, now)
    registrations.save(session, found._replace(description=desc, created=now))
    lines.append("EXTRACT added.")
    if found.begin_csn:
        lines.append(f"Capture begins {'behind SCN' if found.options.get('redo') else 'at LSN'} {found.begin_csn}.")
    return Message(tuple(lines))


def _log_extract(session: Session, group: str, begin: str, lsn: str, scn: str, now: int) -> Checkpoint:
    """The start point as a place in the log: the one given, its present end for NOW, for a time the slot's begin.

    Raises StateError without a login, which alone can tell a place, or without a slot for a time.
    """
    if session.login is not None and session.login.redo:
        return redo_checkpoint(session.login.redo, group, begin, lsn, scn, now)
    if scn:
        raise UsageError(
            "PostgreSQL's log has LSNs.", hint="LSN 0/50056B8; SCN is for redo, after DBLOGIN SOURCEDB redo:///folder"
        )
    moment = begin_time(begin, now)
    options: dict[str, object] = {"slot": slot_of(group)}
    if lsn:
        csn = log_place(lsn)
    elif begin.upper() == "NOW":
        from ggshell.databases.postgres.session import current_position

        position, moment = current_position(session.connection())
        csn = Csn(position)
    else:
        csn = _slot_position(session, group)
        options["since"] = moment
    return Checkpoint(
        group,
        GroupType.EXTRACT,
        ReadCheckpoint(SourceType.LOG),
        begin=lsn or begin,
        begin_csn=str(csn),
        begin_time=moment,
        options=options,
    )


def slot_of(group: str) -> str:
    """The name of a group's replication slot."""
    return f"ggs_{group.lower()}"


def _slot_position(session: Session, group: str) -> Csn:
    from ggshell.databases.postgres.slot import slot_status

    status = slot_status(session.connection(), slot_of(group))
    if status is None:
        raise StateError(
            f"EXTRACT {group} is not registered, so the server keeps nothing from a time in the past.",
            hint=f"REGISTER EXTRACT {group} first, or BEGIN NOW",
        )
    return Csn(status.confirmed)


@command("DELETE EXTRACT")
def delete_extract(session: Session, *, group_name: str, force: bool = False) -> Message:
    """Remove groups; their trails stay, and so does a slot, which holds back the server's log until UNREGISTER."""
    found, errors = select(session, EXTRACT, group_name)
    registrations.confirm_many(session, group_name, "EXTRACT", len(found), force=force)
    lines: list[str] = []
    for each in found:
        require_stopped(each, "deleted")
        registrations.remove(session, each)
        lines.append(f"Deleted EXTRACT {each.group}.")
        slot = each.checkpoint.options.get("slot")
        if each.checkpoint.read.source is SourceType.LOG and slot and _registered(session, each.group):
            lines.append(f"Its replication slot still holds back the server's log: UNREGISTER EXTRACT {each.group}.")
    return Message(tuple(lines), tuple(errors))


def _registered(session: Session, group: str) -> bool:
    if session.login is None or session.login.redo:
        return False
    from ggshell.databases.postgres import slot

    return slot.slot_status(session.connection(), slot.slot_name(group)) is not None


@command("REGISTER EXTRACT")
def register_extract(session: Session, *, group_name: str, database: bool = False) -> Message:
    """Make the slot; a group that was added before it, with BEGIN NOW, and never ran begins at the slot's position."""
    from ggshell.databases.postgres import slot

    position = slot.register(session.connection(), group_name)
    from ggshell.store.events import Severity

    text = f"EXTRACT {group_name} is registered: slot {slot.slot_name(group_name)}, its changes are kept from"
    text = f"{text} LSN {Csn(position)} on."
    session.event(Severity.INFO, "OGG-02003", text)
    lines = [f"{local_text(session.clock.now())}  INFO    OGG-02003  {text}"]
    path = session.home.checkpoint(group_name, GroupType.EXTRACT)
    if path.exists():
        found = checkpoints.load(path)
        earlier = not found.begin_csn or Csn.parse(found.begin_csn).value < position
        if not found.started and found.begin.upper() == "NOW" and earlier:
            registrations.save(session, found._replace(begin_csn=str(Csn(position))))
            lines.append(f"Capture begins at LSN {Csn(position)}.")
    return Message(tuple(lines), apart=True)


@command("UNREGISTER EXTRACT")
def unregister_extract(session: Session, *, group_name: str, database: bool = False) -> Message:
    """Drop the slot of a group that does not run."""
    from ggshell.databases.postgres import slot

    try:
        found, _ = select(session, EXTRACT, group_name)
    except NotFoundError:
        found = []  # the group is gone already, and its slot is what must follow
    for each in found:
        require_stopped(each, "unregistered")
    slot.unregister(session.connection(), group_name)
    return Message(
        (f"EXTRACT {group_name} is unregistered: slot {slot.slot_name(group_name)} is dropped.",), apart=True
    )
