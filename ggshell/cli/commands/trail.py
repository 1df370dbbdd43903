"""ADD, ALTER, DELETE, PURGE and INFO for trails."""

from __future__ import annotations

from ggshell.cli import registrations
from ggshell.cli.groups import EXTRACT, View, one
from ggshell.cli.registry import command
from ggshell.cli.results import Message
from ggshell.cli.results.listings import TrailInfo, Trails, trail_type
from ggshell.cli.session import Session
from ggshell.cli.trails import require_unwritten, same_trail, written
from ggshell.errors import GgsError, NotFoundError, StateError, UsageError
from ggshell.home.checkpoint import GroupKind, WriteCheckpoint
from ggshell.types import TrailPosition

_MEGABYTES = 500


@command("ADD EXTTRAIL", False)
@command("ADD RMTTRAIL", True)
def add_trail(
    session: Session,
    remote: bool,
    *,
    trail: str,
    extract: str,
    megabytes: int = _MEGABYTES,
    seqno: int = 0,
    format: tuple[str, str] = ("", ""),  # noqa: A002 - the option's name
) -> Message:
    """Add a trail that an Extract writes."""
    release = format[1]
    if release:
        _check_release(release)
    with registrations.held(session, one(session, EXTRACT, extract.upper()), "altered") as group:
        found = group.found
        passive, alias = found.checkpoint.options.passive, found.checkpoint.options.alias_of
        if alias:
            raise UsageError(f"{found.name} is an alias: the trails of EXTRACT {alias} are added in its home.")
        if passive:
            _require_passive(session, found, trail, remote)
        receiver = _receiver(session, found.group, trail) if remote and not passive else ""
        if not receiver and found.checkpoint.read.trail and same_trail(session, found.checkpoint.read.trail, trail):
            raise UsageError(f"{found.name} cannot write to the trail that it reads.", hint="use another trail name")
        require_unwritten(session, trail, found.group, receiver=receiver)
        target = WriteCheckpoint(trail, remote, megabytes, TrailPosition(seqno, 0), release=release, receiver=receiver)
        group.save(found.checkpoint._replace(write=(*found.checkpoint.write, target)))
    return Message((f"{trail_type(remote)} added.",))


def _require_passive(session: Session, found: View, trail: str, remote: bool) -> None:
    """Raise UsageError for a trail that a passive Extract cannot have: it has one, of the other home, in this home's dirdat."""
    if not remote:
        raise UsageError(
            "Only remote trail/file is allowed in passive mode.",
            code="OGG-00057",
            hint=f"ADD RMTTRAIL {trail}, EXTRACT {found.group}",
        )
    if found.checkpoint.write:
        raise UsageError(f"{found.name} is passive and already has a trail: it sends to one target.")
    if not session.home.resolve(trail).resolve().is_relative_to((session.home.root / "dirdat").resolve()):
        raise UsageError(
            f"{trail} is not in dirdat of this home: {found.name} is passive and writes it here, where its alias reads it.",
            hint=f"ADD RMTTRAIL ./dirdat/xx, EXTRACT {found.group}",
        )


def _receiver(session: Session, group: str, trail: str) -> str:
    """Return the receiver that the RMTHOST of the group's parameter file names; empty for a trail of this machine.

    START reads the file again, so a file that is not written yet, or has errors, does not refuse the trail.
    """
    from ggshell.groups.receivers import receiver_of
    from ggshell.parameters.loading import load_extract

    home = session.home
    try:
        named = load_extract(home.parameters(group)).trails
        hosts = [each.host for each in named if same_trail(session, trail, each.trail)]
        return receiver_of(home, hosts[0], trail) if hosts else ""
    except GgsError:
        return ""


def _check_release(release: str) -> None:
    from ggshell.trail.releases import compatibility_of

    try:
        compatibility_of(release)
    except ValueError as error:
        raise UsageError(f"FORMAT RELEASE {release}: {error}.", hint="omit FORMAT for the newest version") from None


@command("ALTER EXTTRAIL", False)
@command("ALTER RMTTRAIL", True)
def alter_trail(session: Session, remote: bool, *, trail: str, extract: str, megabytes: int = 0) -> Message:
    """Set the size of future trail files. The group must be stopped, since its process owns the checkpoint."""
    found = one(session, EXTRACT, extract.upper())
    if not megabytes:
        raise UsageError("ALTER requires at least one option.", hint="add MEGABYTES n")
    with registrations.held(session, found, "altered") as group:
        targets = group.checkpoint.write
        mine = [each for each in targets if each.remote is remote and same_trail(session, trail, each.trail)]
        if not mine:
            raise NotFoundError(
                f"{found.name} does not write {trail_type(remote)} {trail}.", hint=f"use INFO {trail_type(remote)} *"
            )
        changed = tuple(each._replace(megabytes=megabytes) if each in mine else each for each in targets)
        group.save(group.checkpoint._replace(write=changed))
    return Message((f"{trail_type(remote)} altered.",))


@command("PURGE EXTTRAIL")
def purge_trail(session: Session, *, trail: str, force: bool = False) -> Message:
    """Delete the trail files that readers no longer need; ``!`` deletes all but the newest, whether read or not."""
    from ggshell.groups.purge import first_needed, known_checkpoints, needed_from, purge
    from ggshell.parameters.process_parameters import PurgeRule
    from ggshell.trail.name import TrailName

    name = TrailName.parse(trail, session.home.root)
    if not name.sequences():
        raise NotFoundError(f"trail {trail} has no files.", hint="use INFO EXTTRAIL * to list the trails")
    needed = needed_from(known_checkpoints(session.home), session.home)
    if not force and first_needed(needed, name.real) is None:
        raise StateError(
            f"no group reads trail {trail}, so the files in use are unknown.", hint="add ! to purge it anyway"
        )
    removed = purge(session.home, PurgeRule(trail, use_checkpoints=not force), session.clock.now())
    return Message(tuple(f"Purged {path}." for path in removed) or ("No file can be purged.",))


@command("DELETE EXTTRAIL", False)
@command("DELETE RMTTRAIL", True)
def delete_trail(session: Session, remote: bool, *, trail: str, force: bool = False) -> Message:
    """Remove a trail from its group; the files are kept, so there is nothing to confirm."""
    lines: list[str] = []
    for found, target in list(written(session)):
        if found.type is GroupKind.EXTRACT and target.remote is remote and same_trail(session, trail, target.trail):
            with registrations.held(session, found, "altered") as group:
                targets = group.checkpoint.write
                rest = (each for each in targets if (each.trail, each.receiver) != (target.trail, target.receiver))
                group.save(group.checkpoint._replace(write=tuple(rest)))
            lines.append(f"Deleting extract trail {target.trail} for extract {found.group}")
    if not lines:
        raise NotFoundError(f"no Extract writes {trail_type(remote)} {trail}.", hint=f"use INFO {trail_type(remote)} *")
    return Message(tuple(lines))


@command("INFO EXTTRAIL", False)
@command("INFO RMTTRAIL", True)
def info_trail(session: Session, remote: bool, *, trail: str = "*") -> Trails:
    """Show the trails of the home and their writers, with the positions in the writers' checkpoints."""
    found = [
        TrailInfo(each.trail, each.remote, group.group, *each.current, each.megabytes, each.receiver)
        for group, each in written(session)
        if each.remote is remote and (trail == "*" or same_trail(session, trail, each.trail))
    ]
    if not found:
        raise NotFoundError(
            f"no {trail_type(remote)} matches {trail}.", hint=f"use ADD {trail_type(remote)} to add a trail"
        )
    return Trails(tuple(found))
