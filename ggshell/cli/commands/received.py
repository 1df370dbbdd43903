"""INFO, STATS and DELETE RECVPATH: the paths that this home starts, and the trails that others send to it."""

from __future__ import annotations

from fnmatch import fnmatchcase

from ggshell.cli.commands.info import info_groups
from ggshell.cli.commands.recvpath import delete_own
from ggshell.cli.commands.stats import stats
from ggshell.cli.groups import RECVPATH, is_wildcard, matching
from ggshell.cli.received_paths import received_paths, select_paths
from ggshell.cli.registry import command
from ggshell.cli.results import Message
from ggshell.cli.results.groups import InfoGroups, ManagerStatus
from ggshell.cli.results.received import ReceivedPaths
from ggshell.cli.results.statistics import Stats
from ggshell.cli.session import Session
from ggshell.errors import DiskError, StateError, UsageError
from ggshell.network.trail_owner import delete_owner


@command("INFO RECVPATH")
@command("INFO RECVPATH ALL")
def info_received(
    session: Session, *, trail: str = "*", detail: bool = False
) -> ReceivedPaths | InfoGroups | ManagerStatus:
    """Show the paths that this home starts, and the trails that arrive; also while the service does not run."""
    own = matching(session.home, RECVPATH, trail)
    if own:
        shown = info_groups(session, RECVPATH, group_name=trail, detail=detail)
        if not is_wildcard(trail) or not isinstance(shown, InfoGroups):
            return shown
        arriving = [each for each in received_paths(session.home) if fnmatchcase(each.name, trail.upper())]
        return ReceivedPaths(tuple(arriving), own=shown)
    found = received_paths(session.home) if trail == "*" else select_paths(session.home, trail)
    return ReceivedPaths(tuple(found))


@command("STATS RECVPATH")
def stats_received(
    session: Session,
    *,
    trail: str,
    total: bool = False,
    daily: bool = False,
    hourly: bool = False,
    latest: bool = False,
    reset: bool = False,
    table: str = "",
    totalsonly: str = "",
    reportrate: str = "",
) -> ReceivedPaths | Stats:
    """Show the operations of paths that this home starts, or what has arrived since the service started.

    The bytes that arrived are counted in total only, not by table.
    """
    if matching(session.home, RECVPATH, trail):
        return stats(
            session,
            RECVPATH,
            group_name=trail,
            total=total,
            daily=daily,
            hourly=hourly,
            latest=latest,
            reset=reset,
            table=table,
            totalsonly=totalsonly,
            reportrate=reportrate,
        )
    found = select_paths(session.home, trail)
    if daily or hourly or latest or reset or table or totalsonly or reportrate:
        raise UsageError(
            f"{found[0].name} sends trail {found[0].trail} from another home: what has arrived is counted in total only",
            hint=f"use STATS RECVPATH {trail}, TOTAL here, or STATS in the sending home",
        )
    return ReceivedPaths(tuple(found), counts=True)


@command("DELETE RECVPATH")
def delete_received(session: Session, *, trail: str, purge: bool = False, force: bool = False) -> Message:
    """Delete paths that this home starts, delete the senders of trails, or forget readers.

    ``purge``: also remove the files of the trails. Without it only the same sender can continue them.
    """
    done = None if purge else delete_own(session, trail, force=force)
    if done is not None:
        return done
    found = select_paths(session.home, trail, deleted=purge)
    for each in found:
        if each.connected:
            raise StateError(
                f"RECVPATH {each.name} is connected: {each.sender.text} sends trail {each.trail}.",
                hint="stop the path in the sending home first",
            )
    if not force:
        what = f"{len(found)} trails" if is_wildcard(trail) else f"trail {found[0].trail}"
        session.confirm(f"Delete the files of {what}" if purge else f"Delete the sender of {what}")
    for each in found:
        try:
            delete_owner(each.place, purge=purge)
        except OSError as error:
            raise DiskError(f"cannot remove {error.filename}: {error.strerror}", where=str(each.place)) from error
    kept = "is removed" if purge else "is kept: the same sender can continue it, PURGE removes it"
    return Message(tuple(f"Deleted RECVPATH {each.name}. Trail {each.trail} {kept}." for each in found))
