"""START, STOP, RESTART and KILL of groups: one, those of a wildcard, Extracts and Replicats together."""

from __future__ import annotations

from collections.abc import Callable

from ggshell.errors import ConflictError, GgsError, UsageError
from ggshell.process.start_place import StartPlace
from ggshell.shell import registrations, start_place, supervision
from ggshell.shell.groups import (
    ANY,
    ER,
    EXTRACT,
    PATH,
    REPLICAT,
    Kinds,
    View,
    is_wildcard,
    one,
    require_stopped,
    select,
)
from ggshell.shell.registry import command
from ggshell.shell.replicat_rows import forget_applied
from ggshell.shell.results import Message
from ggshell.shell.session import Session
from ggshell.store.checkpoint import LAKE

_MANAGER = ("MANAGER", "MGR")
Action = Callable[[View], list[str]]


def _each(session: Session, kinds: Kinds, pattern: str, action: Action, *, running: bool | None = None) -> Message:
    """Do something with every group of a name or wildcard; one that fails does not keep the others from it.

    ``running``: of a wildcard, only those that run (or only those that do not).
    """
    found, errors = select(session, kinds, pattern)
    many = is_wildcard(pattern)
    if many and running is not None:
        found = [each for each in found if each.runs is running]
    lines: list[str] = []
    for each in found:
        try:
            lines += action(each)
        except GgsError as error:
            if not many:
                raise
            error.where = error.where or each.name
            errors.append(error)
    while lines and not lines[-1]:
        lines.pop()
    if many and not found and not errors:
        lines = [f"Nothing to do: no group of {pattern} is {'running' if running else 'stopped'}."]
    return Message(tuple(lines), tuple(errors), apart=True)


def _start(session: Session, found: View) -> list[str]:
    if found.runs:
        return [f"{found.name} is already running."]
    try:
        supervision.start(session, found)
    except ConflictError as error:
        return [error.message]
    return ["Sending START request to MANAGER ...", f"{found.name} starting", ""]


@command("START EXTRACT", EXTRACT)
@command("START REPLICAT", REPLICAT)
@command("START ER", ER)
@command("START", ANY)
def start(
    session: Session,
    kinds: Kinds,
    *,
    group_name: str,
    atcsn: str = "",
    aftercsn: str = "",
    skiptransaction: bool = False,
    filterduptransactions: bool = False,
    nofilterduptransactions: bool = False,
    dryrun: bool = False,
) -> Message:
    """Start through Manager, and come back when the process says that it runs.

    What was applied already is left out, so FILTERDUPTRANSACTIONS changes nothing; NOFILTERDUPTRANSACTIONS has the checkpoint
    table forget it.  DRYRUN tells what another place would skip, and starts nothing.
    """
    if nofilterduptransactions and not dryrun:
        _forget_applied(session, kinds, group_name)
    asked = start_place.start_place(atcsn, aftercsn, skiptransaction)
    if asked is not None or dryrun:
        start_place.require_one(group_name)
        found = one(session, kinds, group_name)
        if asked is not None and found.checkpoint.options.get("kind") == LAKE:
            raise UsageError(
                f"{found.name} delivers to a lake, whose batches say where it goes on.",
                hint="BEGIN, or EXTSEQNO and EXTRBA, of ADD REPLICAT say where to begin",
            )
        if dryrun:
            place = start_place.place_of(session, found, asked or StartPlace(csn="0"))
            skipped = start_place.skipped_by_id(found, asked) if asked is not None else []
            return Message(tuple(skipped or start_place.told(session, found, place)), apart=True)
        if asked is not None:
            start_place.keep(session, found, asked)
    if kinds == ANY and group_name in _MANAGER:
        from ggshell.shell.commands.manager import start_manager

        return start_manager(session)
    if any(not each.runs for each in select(session, kinds, group_name)[0]):
        supervision.require_manager(session)  # said once, not for each group of a wildcard
    return _each(session, kinds, group_name, lambda found: _start(session, found), running=False)


def _forget_applied(session: Session, kinds: Kinds, pattern: str) -> None:
    """Have a Replicat apply again what the trail brings again."""
    start_place.require_one(pattern)
    found = one(session, kinds, pattern)
    require_stopped(found, "made to apply again")
    forget_applied(session, found)
    registrations.save(session, found.checkpoint._replace(latest_csn="", latest_xid=""))


@command("START DISTPATH", PATH)
def start_path(session: Session, kinds: Kinds, *, path_name: str) -> Message:
    """Start distribution paths."""
    return start(session, kinds, group_name=path_name)


def _stop(found: View, *, forced: bool) -> list[str]:
    ended = supervision.stop(found, forced=forced)
    lines = [f"Sending {'FORCESTOP' if forced else 'STOP'} request to {found.name} ...", "Request processed."]
    if not ended:
        lines.append(f"{found.name} is still finishing its work; STATUS shows when it has ended.")
    return [*lines, ""]


@command("STOP EXTRACT", EXTRACT)
@command("STOP REPLICAT", REPLICAT)
@command("STOP ER", ER)
@command("STOP", ANY)
def stop(session: Session, kinds: Kinds, *, group_name: str, force: bool = False) -> Message:
    """End at a transaction boundary, and come back when the process has ended."""
    if kinds == ANY and group_name in _MANAGER:
        from ggshell.shell.commands.manager import stop_manager

        return stop_manager(session, force=force)
    forced = force and not is_wildcard(group_name)
    return _each(session, kinds, group_name, lambda found: _stop(found, forced=forced), running=True)


@command("STOP DISTPATH", PATH)
def stop_path(session: Session, kinds: Kinds, *, path_name: str, force: bool = False) -> Message:
    """End distribution paths."""
    return stop(session, kinds, group_name=path_name, force=force)


@command("RESTART EXTRACT", EXTRACT)
@command("RESTART REPLICAT", REPLICAT)
@command("RESTART ER", ER)
def restart(
    session: Session,
    kinds: Kinds,
    *,
    group_name: str,
    atcsn: str = "",
    aftercsn: str = "",
    skiptransaction: bool = False,
    filterduptransactions: bool = False,
    nofilterduptransactions: bool = False,
) -> Message:
    """STOP, then START; of a wildcard only the groups that run."""
    if atcsn or aftercsn or skiptransaction or nofilterduptransactions:
        start_place.require_one(group_name)
        if one(session, kinds, group_name).runs:
            stop(session, kinds, group_name=group_name)
        return start(
            session,
            kinds,
            group_name=group_name,
            atcsn=atcsn,
            aftercsn=aftercsn,
            skiptransaction=skiptransaction,
            filterduptransactions=filterduptransactions,
            nofilterduptransactions=nofilterduptransactions,
        )

    def action(found: View) -> list[str]:
        stopped = _stop(found, forced=False) if found.runs else []
        return [*stopped, *_start(session, one(session, kinds, found.group))]

    supervision.require_manager(session)
    return _each(session, kinds, group_name, action, running=True)


@command("KILL EXTRACT", EXTRACT)
@command("KILL REPLICAT", REPLICAT)
@command("KILL ER", ER)
@command("KILL", ANY)
def kill(session: Session, kinds: Kinds, *, group_name: str) -> Message:
    """End at this instant; nothing is lost, and Manager does not start it again."""

    def action(found: View) -> list[str]:
        pid = supervision.kill(session.home, found)
        return [f"Sending KILL request to {found.name} ...", f"Killed process ({pid}) for {found.name}", ""]

    return _each(session, kinds, group_name, action, running=True)


@command("KILL DISTPATH", PATH)
def kill_path(session: Session, kinds: Kinds, *, path_name: str) -> Message:
    """End distribution paths at this instant."""
    return kill(session, kinds, group_name=path_name)
