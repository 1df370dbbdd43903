"""ADD and DELETE for alias Extracts: the target side of a passive Extract, which connects to the home of that Extract."""

from __future__ import annotations

from ggshell.cli import registrations
from ggshell.cli.groups import View, require_new
from ggshell.cli.registrations import HeldGroup
from ggshell.cli.registry import command
from ggshell.cli.results import Message
from ggshell.cli.session import Session
from ggshell.errors import GgsError, UsageError
from ggshell.home.checkpoint import (
    AddedAt,
    Checkpoint,
    GroupKind,
    GroupOptions,
    PathSettings,
    ReadCheckpoint,
    SourceType,
)
from ggshell.types import TrailPosition

_FIRST = TrailPosition(0, 0)


@command("ADD EXTRACT RMTHOST")
def add_alias(
    session: Session,
    *,
    group_name: str,
    host: str,
    desc: str = "",
    mgrport: int = 0,
    port: int = 0,
    rmtname: str = "",
    socksproxy: str = "",
    proxycsalias: str = "",
    proxycsdomain: str = "",
) -> Message:
    """Add an alias of a passive Extract in another home, which has the same name without RMTNAME."""
    from ggshell.network.addresses import SOURCES, parse_source
    from ggshell.network.proxy_url import socks_proxy
    from ggshell.network.service_url import ServiceUrl
    from ggshell.parameters.remote_hosts import MANAGER_PORT

    lines = registrations.set_aside(session, GroupKind.EXTRACT, group_name)
    require_new(session.home, GroupKind.EXTRACT, group_name)
    place = ServiceUrl("https", host, port or mgrport or MANAGER_PORT).place
    source = parse_source(f"wss://{place}{SOURCES}", needs_trail=False).uri
    proxy = socks_proxy(socksproxy).url if socksproxy else ""
    options = GroupOptions(
        source=source,
        alias_of=(rmtname or group_name).upper(),
        added=AddedAt.FIRST,
        path=PathSettings(proxy=proxy, proxy_alias=proxycsalias, proxy_domain=proxycsdomain),
    )
    copy = f"./dirtmp/{group_name}/rt"
    found = Checkpoint(
        group_name,
        GroupKind.EXTRACT,
        ReadCheckpoint(SourceType.TRAIL, copy, startup=_FIRST, recovery=_FIRST, current=_FIRST),
        description=desc,
        created=session.clock.now(),
        begin="",
        options=options,
    )
    registrations.add(session, found)
    return Message((*lines, "EXTRACT added."))


def delete_alias(session: Session, group: HeldGroup) -> list[str]:
    """Delete an alias with its copy of the trail; the target trail is kept. Returns what to print."""
    from ggshell.groups.fetcher import forget_at_source
    from ggshell.groups.recvpath import remove_copy
    from ggshell.trail.name import TrailName

    found = group.found
    lines = [f"Deleted EXTRACT {found.group}."]
    options = found.checkpoint.options
    try:
        if found.checkpoint.write:
            forget_at_source(session.home, found.group, options, session.clock)
    except GgsError as error:
        lines += [
            f"The source home could not be notified: {error.message}.",
            f"EXTRACT {options.alias_of} there belongs to this alias until DELETE RECVPATH {found.group} is run there.",
        ]
    group.remove()
    remove_copy(TrailName.parse(found.checkpoint.read.trail, session.home.root))
    return lines


def require_no_alias(found: View, statement: str) -> None:
    """Raise UsageError for a statement that applies to the passive Extract, not to its alias."""
    alias, place = found.checkpoint.options.alias_of, found.other_homes[0] if found.other_homes else ""
    if alias:
        raise UsageError(
            f"{found.name} is an alias: {statement} cannot be used for it.",
            hint=f"use {statement} {alias} in the home at {place}",
        )


def passive_shown(session: Session, found: View) -> str:
    """Return what INFO EXTRACT shows of the passive Extract in its own home, or why that home does not say it."""
    from ggshell.groups.alias_extract import ask_source
    from ggshell.network.opening import ExtractAction

    try:
        options = found.checkpoint.options
        shown = ask_source(session.home, found.group, options, session.clock, ExtractAction.INFO).shown
    except GgsError as error:
        return f"\nThe source home does not return the status of the passive Extract: {error.message}.\n"
    return "".join(each for each in shown if each.isprintable() or each == "\n")  # nothing else reaches the terminal
