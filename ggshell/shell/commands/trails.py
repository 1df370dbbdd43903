"""EXTTRAIL and RMTTRAIL."""

from __future__ import annotations

from ggshell.errors import ConflictError, NotFoundError, StateError
from ggshell.process.state import ProcessState, state_of
from ggshell.shell import layout
from ggshell.shell.commands.add import group_checkpoint, save
from ggshell.shell.registry import command
from ggshell.shell.results import Result, joined, message
from ggshell.shell.session import Session
from ggshell.store.checkpoint import GroupType, WriteCheckpoint
from ggshell.trail.name import TrailName
from ggshell.types import TrailPosition

_COLUMNS = ("trail", "group", "seqno", "rba", "megabytes")


def _add(session: Session, trail: str, group: str, megabytes: int, *, remote: bool) -> Result:
    name = TrailName.parse(trail, session.home.root)
    for entry in session.home.groups():
        if entry.checkpoint is None:
            continue
        if any(TrailName.parse(item.trail, session.home.root) == name for item in entry.checkpoint.write):
            raise ConflictError(f"trail {trail} is written by {entry.type} {entry.group} already")
    checkpoint = group_checkpoint(session, group, GroupType.EXTRACT)
    state, _ = state_of(session.home.process(group, GroupType.EXTRACT))
    if state is ProcessState.RUNNING:
        raise StateError(f"EXTRACT {group.upper()} is running.", hint="stop it first")
    added = WriteCheckpoint(trail, remote=remote, megabytes=megabytes)
    save(session, checkpoint._replace(write=(*checkpoint.write, added)))
    return message(f"{'RMTTRAIL' if remote else 'EXTTRAIL'} added.")


@command("ADD EXTTRAIL")
def add_exttrail(session: Session, *, trail: str, extract: str, megabytes: int = 500, seqno: int = 0) -> Result:
    return _add(session, trail, extract, megabytes, remote=False)


@command("ADD RMTTRAIL")
def add_rmttrail(session: Session, *, trail: str, extract: str, megabytes: int = 500, seqno: int = 0) -> Result:
    return _add(session, trail, extract, megabytes, remote=True)


def _delete(session: Session, trail: str, *, remote: bool) -> Result:
    name = TrailName.parse(trail, session.home.root)
    results = []
    for entry in session.home.groups():
        checkpoint = entry.checkpoint
        if checkpoint is None or entry.type is not GroupType.EXTRACT:
            continue
        left = tuple(
            item
            for item in checkpoint.write
            if item.remote != remote or TrailName.parse(item.trail, session.home.root) != name
        )
        if left != checkpoint.write:
            save(session, checkpoint._replace(write=left))
            results.append(message(f"Deleting extract trail {trail} for extract {entry.group}"))
    if not results:
        raise NotFoundError(f"no group writes trail {trail}")
    return joined(results)


@command("DELETE EXTTRAIL")
def delete_exttrail(session: Session, *, trail: str) -> Result:
    return _delete(session, trail, remote=False)


@command("DELETE RMTTRAIL")
def delete_rmttrail(session: Session, *, trail: str) -> Result:
    return _delete(session, trail, remote=True)


def _info(session: Session, trail: str | None, *, remote: bool) -> Result:
    wanted = TrailName.parse(trail, session.home.root) if trail and "*" not in trail else None
    results = []
    for entry in session.home.groups():
        for item in entry.checkpoint.write if entry.checkpoint is not None else ():
            if item.remote == remote and wanted in (None, TrailName.parse(item.trail, session.home.root)):
                place: TrailPosition = item.current
                text = layout.info_trail(item.trail, entry.group, place, item.megabytes)
                row = (item.trail, entry.group, place.seqno, place.rba, item.megabytes)
                results.append(Result(text, _COLUMNS, (row,)))
    if not results:
        raise NotFoundError(f"no trail {trail or ''} is known".replace("  ", " "))
    return joined(results)


@command("INFO EXTTRAIL")
def info_exttrail(session: Session, *, trail: str | None = None) -> Result:
    return _info(session, trail, remote=False)


@command("INFO RMTTRAIL")
def info_rmttrail(session: Session, *, trail: str | None = None) -> Result:
    return _info(session, trail, remote=True)
