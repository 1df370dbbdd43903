"""ADD, ALTER and DELETE RECVPATH: paths that this home starts to read the trail of another home."""

from __future__ import annotations

from functools import partial
from urllib.parse import parse_qs, urlsplit

from ggshell.cli import registrations
from ggshell.cli.begin import begin_time
from ggshell.cli.commands.path import signing_in
from ggshell.cli.groups import RECVPATH, matching, require_new, require_stopped, select
from ggshell.cli.registrations import HeldGroup
from ggshell.cli.registry import command
from ggshell.cli.results import Message
from ggshell.cli.session import Session
from ggshell.cli.trails import require_unwritten
from ggshell.clock import local_text
from ggshell.errors import GgsError, UsageError
from ggshell.groups.progress import without_completed
from ggshell.home.checkpoint import (
    AddedAt,
    Checkpoint,
    GroupKind,
    GroupOptions,
    ReadCheckpoint,
    SourceType,
    WriteCheckpoint,
)
from ggshell.network.addresses import parse_source
from ggshell.network.trail_readers import TrailReader, forget_reader, readers_in
from ggshell.trail.name import TrailName
from ggshell.types import TrailPosition

_FIRST = TrailPosition(0, 0)


@command("ADD RECVPATH")
def add_recvpath(
    session: Session, *, path_name: str, source: str, target: str, authentication: str | tuple[str, ...] = ()
) -> Message:
    """Add a path that reads a trail of another home and writes it to a trail of this home."""
    lines = registrations.set_aside(session, GroupKind.RECVPATH, path_name)
    require_new(session.home, GroupKind.RECVPATH, path_name)
    address = parse_source(source)
    prefix = TrailName.parse(
        f"./dirdat/{address.trail}" if "/" not in address.trail else address.trail, session.home.root
    )
    reads, writes = f"./dirtmp/{path_name}/{prefix.prefix}", own_trail(target)
    require_unwritten(session, writes)
    options = GroupOptions(source=address.uri, target=target, added=AddedAt.FIRST)
    found = Checkpoint(
        path_name,
        GroupKind.RECVPATH,
        ReadCheckpoint(SourceType.TRAIL, reads, startup=_FIRST, recovery=_FIRST, current=_FIRST),
        write=(WriteCheckpoint(writes, remote=True),),
        created=session.clock.now(),
        begin="",
        options=signing_in(options, authentication),
    )
    registrations.add(session, found)
    return Message((*lines, f"Receiver path {path_name} added: {address.uri} to {writes}."))


def own_trail(url: str) -> str:
    """Return the trail of a target in this home: its name, ``file://NAME`` or ``trail://host:port/…?trail=NAME``.

    Raises UsageError.
    """
    scheme, found, rest = url.partition("://")
    if not found:
        trail = url
    elif scheme.lower() == "file":
        trail = rest
    elif scheme.lower() == "trail":
        trails = parse_qs(urlsplit(url).query).get("trail", [])
        if len(trails) != 1:
            raise UsageError(f"{url[:200]} does not name a trail", hint="add ?trail=NAME")
        trail = trails[0]
    else:
        raise UsageError(
            f"{url[:200]} is not a trail of this home",
            hint="use trail://localhost:PORT/services/v2/targets?trail=NAME, or the name of the trail",
        )
    return trail if "/" in trail else f"./dirdat/{trail}"


@command("ALTER RECVPATH BEGIN")
def alter_recvpath(
    session: Session, *, path_name: str, now: bool = False, when: str = "", seqno: tuple[int | str, ...] = ()
) -> Message:
    """Set a stopped path to another position of its source trail. What the target trail holds is not written again."""
    from ggshell.groups.recvpath import remove_copy

    moment = begin_time("NOW" if now else when, session.clock.now())
    lines: list[str] = []
    found, errors = select(session, RECVPATH, path_name)
    for each in found:
        require_stopped(each, "altered")
    place = TrailPosition(int(seqno[0]), int(seqno[-1])) if seqno else _FIRST
    pending = AddedAt.FIRST if now or when else None
    for each in found:
        with registrations.held(session, each, "altered") as group:
            read = group.checkpoint.read._replace(startup=place, recovery=place, current=place, current_time=0)
            changed = without_completed(group.checkpoint)._replace(
                read=read, begin="NOW" if now else when, begin_time=moment, record_time=0, caught_up=0
            )
            remove_copy(TrailName.parse(read.trail, session.home.root))
            group.save(changed._replace(options=changed.options._replace(added=pending)))
        at = "the end that the source trail has when the path connects" if now else str(place)
        at = f"the first transaction of the source trail since {local_text(moment)}" if when else at
        lines += [f"{each.name} continues at {at}.", "Receiver path altered."]
    return Message(tuple(lines), tuple(errors))


def delete_own(session: Session, name: str, *, force: bool) -> Message | None:
    """Delete paths of this home with their copies of the source trail; their target trails are kept.

    In the source home, forget a path of another home that reads a trail here: the files that it needs may be purged. Returns
    None if there is neither.
    """
    if not matching(session.home, RECVPATH, name):
        readers = _readers(session, name)
        return _forgotten(readers) if readers else None
    delete = partial(_deleted, session)
    return registrations.delete_each(session, RECVPATH, name, delete, what="RECVPATH", force=force)


def _deleted(session: Session, group: HeldGroup) -> list[str]:
    from ggshell.groups.fetcher import forget_at_source
    from ggshell.groups.recvpath import remove_copy

    found = group.found
    lines = [f"Deleted RECVPATH {found.group}."]
    try:
        forget_at_source(session.home, found.group, found.checkpoint.options, session.clock)
    except GgsError as error:
        lines += [
            f"The source home could not be notified: {error.message}.",
            f"It keeps the trail files that the path needs until DELETE RECVPATH {found.group} is run there too.",
        ]
    group.remove()
    remove_copy(TrailName.parse(found.checkpoint.read.trail, session.home.root))
    return lines


def _readers(session: Session, name: str) -> list[tuple[TrailName, TrailReader]]:
    """Return the paths of other homes, by name, that read trails of this home."""
    root = session.home.root
    names = [path for path in (root / "dirdat", *(root / "dirdat").glob("*/")) if path.is_dir()]
    found = [each for folder in names for each in readers_in(folder)]
    return [each for each in found if each[1].group.upper() == name.upper()]


def _forgotten(readers: list[tuple[TrailName, TrailReader]]) -> Message:
    for name, note in readers:
        forget_reader(name, note.home, note.group)
    return Message(
        tuple(f"Forgot {note.text}: trail {name} is no longer kept for it." for name, note in readers),
    )
