"""ADD and DELETE of groups and paths."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

from ggshell.clock import from_datetime
from ggshell.errors import ConflictError, NotFoundError, StateError, UsageError
from ggshell.params import load_globals
from ggshell.process.state import ProcessState, state_of
from ggshell.shell.commands.groups import KIND_WORDS, find
from ggshell.shell.registry import command
from ggshell.shell.results import Result, joined, message
from ggshell.shell.session import Session
from ggshell.store import checkpoint as checkpoints
from ggshell.store.catalog import Catalog
from ggshell.store.checkpoint import Checkpoint, GroupType, ReadCheckpoint, SourceType, WriteCheckpoint
from ggshell.types import Csn, TrailPosition

LONGEST_GROUP = 8
LONGEST_PATH = 32


def save(session: Session, checkpoint: Checkpoint) -> None:
    """Write a group's checkpoint file and note it in the catalog."""
    session.home.ensure()
    checkpoints.save(session.home.checkpoint(checkpoint.group, checkpoint.type), checkpoint)
    Catalog(session.home).save_group(checkpoint)


def _new_name(session: Session, name: str, kind: GroupType) -> str:
    group = name.upper()
    longest = LONGEST_PATH if kind is GroupType.PATH else LONGEST_GROUP
    if not re.fullmatch(r"[A-Z][A-Z0-9_]*", group) or len(group) > longest:
        raise UsageError(
            f"{name} is no group name", hint=f"a letter, then letters and digits, at most {longest} in all"
        )
    if session.home.checkpoint(group, kind).exists():
        raise ConflictError(
            f"{KIND_WORDS[kind]} {group} already exists.", hint=f"DELETE {KIND_WORDS[kind]} {group} first"
        )
    return group


def _begin_time(begin: str | None, now: int) -> int:
    if begin is None or begin == "NOW":
        return now
    text = begin.replace("T", " ").rstrip("Z")
    for style in ("%Y-%m-%d %H:%M:%S.%f", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d"):
        try:
            return from_datetime(datetime.strptime(text, style).astimezone())
        except ValueError:
            continue
    raise UsageError(f"{begin} is no time", hint="yyyy-mm-dd hh:mi:ss")


@command("ADD EXTRACT")
def add_extract(
    session: Session,
    *,
    group_name: str,
    tranlog: bool = False,
    integrated: Any = None,
    begin: str | None = None,
    lsn: str | None = None,
    desc: str = "",
    params: str = "",
    report: str = "",
    exttrailsource: str = "",
    extseqno: int = 0,
    extrba: int = 0,
    passive: bool = False,
    sourceistable: bool = False,
) -> Result:
    group = _new_name(session, group_name, GroupType.EXTRACT)
    now = session.clock.now()
    if sourceistable:
        raise UsageError("SOURCEISTABLE is understood, but not carried out yet", code="GGS-00005")
    if exttrailsource:
        place = TrailPosition(extseqno, extrba)
        read = ReadCheckpoint(SourceType.TRAIL, exttrailsource, startup=place, recovery=place, current=place)
        save(session, Checkpoint(group, GroupType.EXTRACT, read, description=desc, created=now, begin_time=now))
        return message("EXTRACT added.")
    from ggshell.databases.postgres.session import current_position
    from ggshell.databases.postgres.slot import slot_name

    with session.connect() as connection:
        position, _ = current_position(connection)
    begins = Csn.parse(lsn) if lsn else Csn(position) if begin in (None, "NOW") else None
    checkpoint = Checkpoint(
        group,
        GroupType.EXTRACT,
        ReadCheckpoint(SourceType.LOG),
        description=desc,
        created=now,
        begin=begin or "NOW",
        begin_csn=str(begins) if begins is not None else "",
        begin_time=_begin_time(begin, now),
        options={"slot": slot_name(group)},
    )
    save(session, checkpoint)
    return message("EXTRACT added.")


@command("ADD REPLICAT")
def add_replicat(
    session: Session,
    *,
    group_name: str,
    exttrail: str = "",
    checkpointtable: str = "",
    nodbcheckpoint: bool = False,
    begin: str | None = None,
    extseqno: int = 0,
    extrba: int = 0,
    desc: str = "",
    params: str = "",
    report: str = "",
) -> Result:
    group = _new_name(session, group_name, GroupType.REPLICAT)
    if nodbcheckpoint:
        raise UsageError("NODBCHECKPOINT is understood, but not carried out yet", code="GGS-00005")
    table = checkpointtable or load_globals(session.home.globals).checkpoint_table
    if not table:
        raise UsageError(
            "Missing checkpoint table specification.", hint="CHECKPOINTTABLE schema.table, here or in GLOBALS"
        )
    now = session.clock.now()
    place = TrailPosition(extseqno, extrba)
    read = ReadCheckpoint(SourceType.TRAIL, exttrail, startup=place, recovery=place, current=place)
    options = {"checkpoint_table": table}
    save(
        session,
        Checkpoint(group, GroupType.REPLICAT, read, description=desc, created=now, begin_time=now, options=options),
    )
    return message("REPLICAT added.")


def _trail_of(url: str) -> str:
    """The trail in a path's SOURCE or TARGET: a name, ``trail://…?trail=NAME`` or ``file://NAME``."""
    text = url.strip().strip("'\"")
    if text.startswith("trail://"):
        named = parse_qs(urlsplit(text).query).get("trail")
        if not named:
            raise UsageError(f"{url} names no trail", hint="trail://host:port/services/v2/sources?trail=./dirdat/ea")
        name = named[0]
    elif text.startswith("file://"):
        name = text.removeprefix("file://")
    elif "://" in text:
        raise UsageError(f"{url} is on another machine: only file targets are carried out yet", code="GGS-00005")
    else:
        name = text
    return name if "/" in name else f"./dirdat/{name}"


@command("ADD DISTPATH")
def add_distpath(session: Session, *, path_name: str, source: str, target: str, megabytes: int = 500) -> Result:
    group = _new_name(session, path_name, GroupType.PATH)
    now = session.clock.now()
    place = TrailPosition(0, 0)
    read = ReadCheckpoint(SourceType.TRAIL, _trail_of(source), startup=place, recovery=place, current=place)
    write = (WriteCheckpoint(_trail_of(target), remote=True, megabytes=megabytes),)
    save(session, Checkpoint(group, GroupType.PATH, read, write, created=now, begin_time=now))
    return message(f"DISTPATH {group} added.")


def _delete(session: Session, name: str, kind: GroupType) -> Result:
    results = []
    for entry in find(session, name, (kind,)):
        state, _ = state_of(session.home.process(entry.group, kind))
        if state in (ProcessState.RUNNING, ProcessState.STARTING):
            raise StateError(f"{KIND_WORDS[kind]} {entry.group} is running.", hint="stop it first")
        path = session.home.checkpoint(entry.group, kind)
        for file in (path, path.with_name(path.name + ".previous"), session.home.process(entry.group, kind)):
            file.unlink(missing_ok=True)
        Catalog(session.home).delete_group(entry.group)
        results.append(message(f"{KIND_WORDS[kind]} {entry.group} deleted."))
    return joined(results)


@command("DELETE EXTRACT")
def delete_extract(session: Session, *, group_name: str, force: bool = False) -> Result:
    return _delete(session, group_name, GroupType.EXTRACT)


@command("DELETE REPLICAT")
def delete_replicat(session: Session, *, group_name: str, force: bool = False) -> Result:
    return _delete(session, group_name, GroupType.REPLICAT)


@command("DELETE DISTPATH")
def delete_distpath(session: Session, *, path_name: str, force: bool = False) -> Result:
    return _delete(session, path_name, GroupType.PATH)


def group_checkpoint(session: Session, group: str, kind: GroupType) -> Checkpoint:
    """A group's checkpoint.  Raises NotFoundError when there is no such group."""
    path = session.home.checkpoint(group, kind)
    if not path.exists():
        raise NotFoundError(f"{KIND_WORDS[kind]} {group.upper()} does not exist.")
    return checkpoints.load(path)
