"""START, STOP, RESTART and KILL for groups: a single group, a wildcard, or Extracts and Replicats together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ggshell.cli import registrations, start_position, supervision
from ggshell.cli.groups import (
    ANY,
    ER,
    EXTRACT,
    PATH,
    RECVPATH,
    REPLICAT,
    Kinds,
    View,
    is_wildcard,
    of_each,
    one,
    select,
)
from ggshell.cli.load_overlap import open_loads, overtaken
from ggshell.cli.registry import command
from ggshell.cli.replicat_rows import folder_target, forget_applied, unapplied
from ggshell.cli.results import Message
from ggshell.cli.session import Session
from ggshell.errors import ConflictError, GgsError, UsageError
from ggshell.groups.start_position import StartPosition
from ggshell.home.checkpoint import ReplicatKind

_MANAGER = ("MANAGER", "MGR")
Action = Callable[[View], list[str]]


class StartOptions(NamedTuple):
    """The options of START and RESTART that have an effect, as they are given; they are valid for one group only."""

    atcsn: str = ""
    aftercsn: str = ""
    skiptransaction: bool = False
    nofilterduptransactions: bool = False


def _each(session: Session, kinds: Kinds, pattern: str, action: Action, *, running: bool | None = None) -> Message:
    """Apply an action to every group that matches a name or wildcard.

    With a wildcard, an error in one group does not stop the others. ``running``: for a wildcard, take only groups that
    are running (true) or not running (false).
    """
    found, errors = select(session, kinds, pattern)
    many = is_wildcard(pattern)
    if many and running is not None:
        found = [each for each in found if each.runs is running]
    return _carry_out(found, errors, pattern, action, running=running)


def _carry_out(
    found: Sequence[View], errors: list[GgsError], pattern: str, action: Action, *, running: bool | None
) -> Message:
    many = is_wildcard(pattern)
    lines, failed = of_each(found, pattern, action)
    errors = [*errors, *failed]
    while lines and not lines[-1]:
        lines.pop()
    if many and not found and not errors:
        lines = [f"Nothing to do: no group of {pattern} is {'running' if running else 'stopped'}."]
    return Message(tuple(lines), tuple(errors), apart=True)


def _start(session: Session, found: View) -> list[str]:
    if found.runs:
        return [f"{found.name} is already running."]
    if found.checkpoint.options.special:
        from ggshell.groups.load_tasks import started_by_extract

        raise started_by_extract(found.group)
    try:
        supervision.start(session, found)
    except ConflictError as error:
        return [error.message]
    return _started(found)


def _started(found: View) -> list[str]:
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
    """Start groups through Manager, and return when each process reports that it is running.

    Applied transactions are always skipped, so FILTERDUPTRANSACTIONS has no effect; NOFILTERDUPTRANSACTIONS clears them
    from the checkpoint table. DRYRUN reports what another position would skip, and starts nothing.
    """
    options = StartOptions(atcsn, aftercsn, skiptransaction, nofilterduptransactions)
    return _start_at(session, kinds, group_name, options, dry_run=dryrun)


def _start_at(session: Session, kinds: Kinds, group_name: str, options: StartOptions, *, dry_run: bool) -> Message:
    """Start groups, a single one at the position of the options if they name one."""
    if options.nofilterduptransactions and not dry_run:
        _forget_applied(session, kinds, group_name)
    asked = start_position.parse_start_position(options.atcsn, options.aftercsn, options.skiptransaction)
    if asked is not None or dry_run:
        found = _one_at(session, kinds, group_name, asked)
        if dry_run:
            return _dry_run(session, found, asked)
        if asked is not None:
            _keep_position(session, found, asked)
    if kinds == ANY and group_name in _MANAGER:
        from ggshell.cli.commands.manager import start_manager

        return start_manager(session)
    started = [each for each in select(session, kinds, group_name)[0] if not each.runs]
    if started:
        supervision.require_manager(session)  # report it once, not for each group of a wildcard
    if asked is None:
        start_position.forget_untaken(session, started)
    loads = open_loads(session)
    if is_wildcard(group_name):
        done = _start_together(session, kinds, group_name)
    else:
        done = _each(session, kinds, group_name, lambda found: _start(session, found), running=False)
    beyond = [note for each in started for note in start_position.beyond_note(session, each, asked)]
    return done._replace(notes=(*overtaken(session, started, loads), *beyond))


def _one_at(session: Session, kinds: Kinds, name: str, asked: StartPosition | None) -> View:
    """Return the one group that starts at a position. Raises UsageError for a wildcard, or if it cannot start there."""
    start_position.require_one(name)
    found = one(session, kinds, name)
    if asked is not None and found.checkpoint.options.replicat_kind is ReplicatKind.LAKE:
        _require_csn_for_lake(session, found, asked)
    return found


def _dry_run(session: Session, found: View, asked: StartPosition | None) -> Message:
    """Report what START would skip."""
    wanted = asked or start_position.kept_position(found)
    place = start_position.position_of(session, found, wanted)
    skipped = start_position.skipped_by_id(found, asked) if asked is not None else []
    return Message(tuple(skipped or start_position.told(session, found, place, wanted)), apart=True)


def _keep_position(session: Session, found: View, asked: StartPosition) -> None:
    """Keep a start position for the process, but not if the start cannot be carried out."""
    supervision.require_manager(session)
    supervision.require_parameters(session, found)
    start_position.keep(session, found, asked)


def _require_csn_for_lake(session: Session, found: View, asked: StartPosition) -> None:
    """Raise UsageError unless a lake can begin at a position: at a CSN, before its first batch."""
    if asked.skip or folder_target(session, found.checkpoint.options.target, found.group).delivered() is not None:
        raise UsageError(
            f"{found.name} delivers to a lake, whose batches determine where it continues.",
            hint="use ATCSN or AFTERCSN before the first batch, or the options BEGIN, EXTSEQNO and EXTRBA of ADD REPLICAT",
        )


def _start_together(session: Session, kinds: Kinds, pattern: str) -> Message:
    """Start all groups of a wildcard at once, and report them one after the other in order of name."""
    chosen, errors = select(session, kinds, pattern)
    found = [each for each in chosen if not each.runs and not each.checkpoint.options.special]
    outcomes = supervision.start_all(session, found) if found else []
    failed = {each.name: error for each, error in zip(found, outcomes, strict=True) if error is not None}

    def outcome(each: View) -> list[str]:
        error = failed.get(each.name)
        if isinstance(error, ConflictError):
            return [error.message]
        if error is not None:
            raise error
        return _started(each)

    return _carry_out(found, errors, pattern, outcome, running=False)


def _forget_applied(session: Session, kinds: Kinds, pattern: str) -> None:
    """Make a Replicat apply transactions again that the trail repeats."""
    start_position.require_one(pattern)
    found = one(session, kinds, pattern)
    with registrations.held(session, found, "repositioned") as group:
        forget_applied(session, group.found)
        group.save(unapplied(group.checkpoint))


@command("START DISTPATH", PATH)
@command("START RECVPATH", RECVPATH)
def start_path(session: Session, kinds: Kinds, *, path_name: str) -> Message:
    """Start distribution paths."""
    return start(session, kinds, group_name=path_name)


def _stop(found: View, *, forced: bool) -> list[str]:
    ended = supervision.stop(found, forced=forced)
    lines = [f"Sending {'FORCESTOP' if forced else 'STOP'} request to {found.name} ...", "Request processed."]
    if not ended:
        lines.append(f"{found.name} is still completing its work; use STATUS to see when it has stopped.")
    return [*lines, ""]


@command("STOP EXTRACT", EXTRACT)
@command("STOP REPLICAT", REPLICAT)
@command("STOP ER", ER)
@command("STOP", ANY)
def stop(session: Session, kinds: Kinds, *, group_name: str, force: bool = False) -> Message:
    """Stop groups at a transaction boundary, and return when each process has ended."""
    if kinds == ANY and group_name in _MANAGER:
        from ggshell.cli.commands.manager import stop_manager

        return stop_manager(session, force=force)
    forced = force and not is_wildcard(group_name)
    return _each(session, kinds, group_name, lambda found: _stop(found, forced=forced), running=True)


@command("STOP DISTPATH", PATH)
@command("STOP RECVPATH", RECVPATH)
def stop_path(session: Session, kinds: Kinds, *, path_name: str, force: bool = False) -> Message:
    """Stop distribution paths."""
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
    """Run STOP and START; for a wildcard, only for groups that are running."""
    options = StartOptions(atcsn, aftercsn, skiptransaction, nofilterduptransactions)
    if any(options):
        start_position.require_one(group_name)
        found = one(session, kinds, group_name)
        supervision.require_parameters(session, found)
        if found.runs:
            stop(session, kinds, group_name=group_name)
        return _start_at(session, kinds, group_name, options, dry_run=False)

    def action(found: View) -> list[str]:
        supervision.require_parameters(session, found)
        stopped = _stop(found, forced=False) if found.runs else []
        return [*stopped, *_start(session, one(session, kinds, found.group))]

    supervision.require_manager(session)
    return _each(session, kinds, group_name, action, running=True)


@command("KILL EXTRACT", EXTRACT)
@command("KILL REPLICAT", REPLICAT)
@command("KILL ER", ER)
@command("KILL", ANY)
def kill(session: Session, kinds: Kinds, *, group_name: str) -> Message:
    """End processes immediately. Nothing is lost, and Manager does not restart them."""

    def action(found: View) -> list[str]:
        pid = supervision.kill(session.home, found)
        return [f"Sending KILL request to {found.name} ...", f"Killed process ({pid}) for {found.name}", ""]

    return _each(session, kinds, group_name, action, running=True)


@command("KILL DISTPATH", PATH)
@command("KILL RECVPATH", RECVPATH)
def kill_path(session: Session, kinds: Kinds, *, path_name: str) -> Message:
    """End distribution paths immediately."""
    return kill(session, kinds, group_name=path_name)
