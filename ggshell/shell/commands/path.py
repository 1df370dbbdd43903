"""ADD and DELETE DISTPATH."""

from __future__ import annotations

from ggshell.errors import UsageError
from ggshell.shell import registrations
from ggshell.shell.begin import starting_position
from ggshell.shell.groups import PATH, require_new, require_stopped, select
from ggshell.shell.registry import command, unavailable
from ggshell.shell.results import Message
from ggshell.shell.session import Session
from ggshell.shell.trails import require_unwritten
from ggshell.store.checkpoint import Checkpoint, GroupType, ReadCheckpoint, SourceType, WriteCheckpoint

_MEGABYTES = 500


@command("ADD DISTPATH")
def add_distpath(session: Session, *, path_name: str, source: str, target: str, megabytes: int = _MEGABYTES) -> Message:
    """A path that carries a trail to another one."""
    require_new(session.home, GroupType.PATH, path_name)
    reads, writes = source_trail(source), target_trail(target)
    if session.home.resolve(reads) == session.home.resolve(writes):
        raise UsageError("a path cannot write the trail that it reads.")
    require_unwritten(session, writes)
    start = starting_position(session, reads, "", None, None)
    found = Checkpoint(
        path_name,
        GroupType.PATH,
        ReadCheckpoint(SourceType.TRAIL, reads, startup=start, recovery=start, current=start),
        write=(WriteCheckpoint(writes, remote=True, megabytes=megabytes),),
        created=session.clock.now(),
        begin="",
        options={"source": source, "target": target},
    )
    registrations.save(session, found)
    return Message((f"Distribution path {path_name} added: {reads} to {writes}.",))


def source_trail(url: str) -> str:
    """The trail that a source names: ``trail://host:port/services/v2/sources?trail=./dirdat/ea``, or the trail itself."""
    if "://" not in url:
        return _in_folder(url)
    from urllib.parse import parse_qs, urlsplit

    parts = urlsplit(url)
    trails = parse_qs(parts.query).get("trail", [])
    if len(trails) != 1:
        raise UsageError(
            f"the source names no trail: {url}", hint="trail://host:port/services/v2/sources?trail=./dirdat/ea"
        )
    return _in_folder(trails[0])


def target_trail(url: str) -> str:
    """The trail that a target names: ``file://./dirdat/da``, or the trail itself."""
    scheme, found, rest = url.partition("://")
    if not found:
        return _in_folder(url)
    if scheme.lower() != "file":
        raise unavailable(f"a target of the kind {scheme}")
    return _in_folder(rest)


def _in_folder(trail: str) -> str:
    """A trail without a folder lies among the others."""
    return trail if "/" in trail else f"./dirdat/{trail}"


@command("DELETE DISTPATH")
def delete_distpath(session: Session, *, path_name: str, force: bool = False) -> Message:
    """Remove paths; their trails stay."""
    found, errors = select(session, PATH, path_name)
    registrations.confirm_many(session, path_name, "DISTPATH", len(found), force=force)
    for each in found:
        require_stopped(each, "deleted")
        registrations.remove(session, each)
    return Message(tuple(f"Deleted DISTPATH {each.group}." for each in found), tuple(errors))
