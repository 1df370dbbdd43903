"""ADD, ALTER and DELETE DISTPATH."""

from __future__ import annotations

from ggshell.cli import registrations
from ggshell.cli.begin import starting_position
from ggshell.cli.groups import PATH, require_new
from ggshell.cli.registrations import HeldGroup
from ggshell.cli.registry import command
from ggshell.cli.results import Message
from ggshell.cli.session import Session
from ggshell.cli.trails import require_unwritten, same_trail
from ggshell.errors import UsageError
from ggshell.home.checkpoint import Checkpoint, GroupKind, GroupOptions, ReadCheckpoint, SourceType, WriteCheckpoint
from ggshell.language.handlers import unavailable
from ggshell.network.addresses import parse_receiver

DEFAULT_MEGABYTES = 500


@command("ADD DISTPATH")
def add_distpath(
    session: Session,
    *,
    path_name: str,
    source: str,
    target: str,
    megabytes: int = DEFAULT_MEGABYTES,
    targettype: str = "",
    authentication: str | tuple[str, ...] = (),
) -> Message:
    """Add a path that copies a trail to another one. Every TARGETTYPE that is supported connects in the same way."""
    if targettype == "COLLECTOR":
        raise UsageError("TARGETTYPE COLLECTOR is not supported", hint="use RECVSRVR, or MANAGER with its port")
    lines = registrations.set_aside(session, GroupKind.PATH, path_name)
    require_new(session.home, GroupKind.PATH, path_name)
    reads, (writes, receiver) = source_trail(source), target_trail(target)
    if not receiver and same_trail(session, reads, writes):
        raise UsageError("a path cannot write to the trail that it reads.")
    if not receiver:
        require_unwritten(session, writes)
    start = starting_position(session, reads, "", None, None)
    found = Checkpoint(
        path_name,
        GroupKind.PATH,
        ReadCheckpoint(SourceType.TRAIL, reads, startup=start, recovery=start, current=start),
        write=(WriteCheckpoint(writes, remote=True, megabytes=megabytes, receiver=receiver),),
        created=session.clock.now(),
        begin="",
        options=signing_in(GroupOptions(source=source, target=target), authentication),
    )
    registrations.add(session, found)
    return Message((*lines, f"Distribution path {path_name} added: {reads} to {receiver or writes}."))


def signing_in(options: GroupOptions, authentication: str | tuple[str, ...]) -> GroupOptions:
    """Return the options of a path with its AUTHENTICATION: USERIDALIAS alias [DOMAIN domain], or CERTIFICATE name.

    Raises UsageError for OAUTH.
    """
    given = (authentication,) if isinstance(authentication, str) else authentication
    kind, name, _, domain = (*given, "", "", "", "")[:4]
    if kind == "OAUTH":
        raise UsageError(
            "AUTHENTICATION OAUTH is not supported", hint="use USERIDALIAS or CERTIFICATE, or leave it out"
        )
    return options._replace(
        access_alias=name if kind == "USERIDALIAS" else "",
        access_domain=domain,
        access_certificate=name if kind == "CERTIFICATE" else "",
    )


def source_trail(url: str) -> str:
    """The trail of a source: ``trail://host:port/services/v2/sources?trail=./dirdat/ea``, or a trail name."""
    if "://" not in url:
        return _in_folder(url)
    from urllib.parse import parse_qs, urlsplit

    parts = urlsplit(url)
    trails = parse_qs(parts.query).get("trail", [])
    if len(trails) != 1:
        raise UsageError(
            f"{url} does not name a trail", hint="use trail://host:port/services/v2/sources?trail=./dirdat/ea"
        )
    return _in_folder(trails[0])


def target_trail(url: str) -> tuple[str, str]:
    """Return the trail of a target and its receiver's URL, which is empty for a trail of this machine.

    ``file://./dirdat/da``, a trail name, or ``wss://host:port/services/v2/targets?trail=da``. Raises UsageError.
    """
    scheme, found, rest = url.partition("://")
    if not found:
        return _in_folder(url), ""
    if scheme.lower() in ("ws", "wss", "ogg"):
        address = parse_receiver(url)
        return _in_folder(address.trail), address._replace(trail=_in_folder(address.trail)).uri
    if scheme.lower() != "file":
        raise unavailable(f"a target of the kind {scheme}")
    return _in_folder(rest), ""


def _in_folder(trail: str) -> str:
    """Put a trail name without a folder into dirdat."""
    return trail if "/" in trail else f"./dirdat/{trail}"


@command("DELETE DISTPATH")
def delete_distpath(session: Session, *, path_name: str, force: bool = False) -> Message:
    """Delete paths; their trails are kept. With a wildcard, a path that cannot be deleted does not stop the others."""
    return registrations.delete_each(session, PATH, path_name, _deleted, what="DISTPATH", force=force)


def _deleted(group: HeldGroup) -> list[str]:
    group.remove()
    return [f"Deleted DISTPATH {group.found.group}."]
