"""START with ATCSN, AFTERCSN or SKIPTRANSACTION: saves the start position, or only reports it (DRYRUN)."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from ggshell.cli import registrations
from ggshell.cli.groups import View, is_wildcard
from ggshell.cli.results import Note
from ggshell.cli.session import Session
from ggshell.clock import local_text
from ggshell.errors import GgsError, StateError, UsageError
from ggshell.groups.start_position import (
    ANYWHERE,
    BEYOND_TRAIL,
    StartPosition,
    beyond_text,
    pending_text,
    without_untaken,
)
from ggshell.home.checkpoint import Checkpoint, GroupKind, ReplicatKind, SourceType
from ggshell.trail.name import TrailName
from ggshell.types import Csn, TrailPosition

if TYPE_CHECKING:
    from ggshell.trail.positions import TransactionSpan


def parse_start_position(atcsn: str, aftercsn: str, skip: bool) -> StartPosition | None:
    """Return the start position that START names; None if it names none. Raises UsageError for an invalid CSN."""
    if skip:
        return StartPosition(skip=True)
    text = atcsn or aftercsn
    if not text:
        return None
    try:
        return StartPosition(str(Csn.parse(text)), after=bool(aftercsn))
    except ValueError:
        raise UsageError(f"{text} is not a valid CSN", hint="as INFO … SHOWCH prints it: 00000000/050056B8") from None


def position_of(session: Session, found: View, asked: StartPosition) -> TrailPosition:
    """The trail position where a Replicat would continue, as far as its checkpoint file shows.

    Raises UsageError for a group that does not read a trail.
    """
    return asked.position(*_trail_and_position(session, found))


def _trail_and_position(session: Session, found: View) -> tuple[TrailName, TrailPosition]:
    """The trail that a group reads, and its position there. Raises UsageError if it does not read a trail."""
    read = found.checkpoint.read
    if read.source is not SourceType.TRAIL:
        raise UsageError(f"DRYRUN shows what a reader of a trail would skip; {found.name} does not read a trail.")
    present = read.current if isinstance(read.current, TrailPosition) else TrailPosition(0, 0)
    return TrailName.parse(read.trail, session.home.root), present


def skipped_by_id(found: View, asked: StartPosition) -> list[str]:
    """The line about the transaction that SKIPTRANSACTION would skip in a parallel or coordinated Replicat.

    That is the transaction that ended the last run. Empty if the group's position determines what is skipped.
    """
    options = found.checkpoint.options
    if not asked.skip or options.refused is None or options.replicat_kind is ReplicatKind.CLASSIC:
        return []
    return [
        f"The transaction at {options.refused} of {found.checkpoint.read.trail} would be skipped: the last run stopped there."
    ]


def kept_position(found: View) -> StartPosition:
    """Where START without a position continues: at a CSN that an earlier START named, as long as it is pending."""
    kept = StartPosition.of(without_untaken(found.checkpoint.options))
    return StartPosition(csn="0") if kept is None or kept.skip else kept._replace(end=ANYWHERE)


def beyond_note(session: Session, found: View, asked: StartPosition | None = None) -> tuple[Note, ...]:
    """A warning if the trail has not reached the CSN of this START, or of an earlier START that is still pending."""
    checkpoint = found.checkpoint
    if found.type is not GroupKind.REPLICAT or (asked is None and not checkpoint.options.start):
        return ()
    trail = TrailName.parse(checkpoint.read.trail, session.home.root)
    try:
        text = _beyond(found, trail, asked)
    except GgsError:
        return ()  # the group itself reports what is wrong with its trail
    return (Note(BEYOND_TRAIL, text),) if text else ()


def _beyond(found: View, trail: TrailName, asked: StartPosition | None) -> str:
    checkpoint, shown = found.checkpoint, found.checkpoint.read.trail
    if asked is None:
        return pending_text(found.group, checkpoint.options, checkpoint.latest_csn, trail, shown)
    text = beyond_text(asked, trail, shown)
    return f"{text} The report and INFO {found.name} show how to undo it." if text else ""


def told(session: Session, found: View, place: TrailPosition, asked: StartPosition | None = None) -> list[str]:
    """Describe what continuing at a position would skip or apply again."""
    from ggshell.trail.positions import span_between

    name, present = _trail_and_position(session, found)
    trail = found.checkpoint.read.trail
    low, high = sorted((present, place))
    span = span_between(name, low, high)
    lines = [f"{found.name} is at {present} of {trail}, and would continue at {place}."]
    beyond = beyond_text(asked, name, trail) if asked is not None else ""
    if beyond:
        some = f"{_many(span)} of the trail would be skipped: {_ends(span)}." if span.transactions else ""
        return [*lines, *([some] if some else []), beyond]
    if place == present or not span.transactions:
        return [*lines, "No transaction would be skipped, and none applied again."]
    return [*lines, f"{_many(span)} would be {'skipped' if place > present else 'applied again'}: {_ends(span)}."]


def _many(span: TransactionSpan) -> str:
    return f"{span.transactions} transaction{'s'[: span.transactions != 1]} with {span.rows} row{'s'[: span.rows != 1]}"


def _ends(span: TransactionSpan) -> str:
    first, last = (
        f"CSN {csn} ({local_text(time)})"
        for csn, time in ((span.first_csn, span.first_time), (span.last_csn, span.last_time))
    )
    return first if span.transactions == 1 else f"{first} to {last}"


def keep(session: Session, found: View, asked: StartPosition) -> None:
    """Save the start position for the process.

    Raises UsageError for a group that does not read a log or, as a Replicat, a trail, and StateError for one that is
    running.
    """
    with registrations.held(session, found, "started at another position") as group:
        if found.type is GroupKind.EXTRACT:
            group.save(_begun_at(group.found, asked))
            return
        earlier = StartPosition.of(group.checkpoint.options)
        if asked.skip and earlier is not None:
            # Keep what an earlier START skips: the target has not passed it yet.
            asked = asked._replace(skipped=earlier.skipped, behind=earlier.behind)
        options = group.checkpoint.options._replace(start=asked.as_option())
        group.save(group.checkpoint._replace(options=options))


def forget_untaken(session: Session, found: Iterable[View]) -> None:
    """Discard start positions that an earlier START saved and that no process has taken over."""
    for each in found:
        if each.type is GroupKind.REPLICAT and without_untaken(each.checkpoint.options) != each.checkpoint.options:
            with suppress(StateError), registrations.held(session, each, "started") as group:  # it is running by now
                group.save(group.checkpoint._replace(options=without_untaken(group.checkpoint.options)))


def _begun_at(found: View, asked: StartPosition) -> Checkpoint:
    """Return the checkpoint of an Extract that captures only what commits at a CSN or later (AFTERCSN: after it).

    Raises UsageError if the group does not read a log, StateError for a position before the last transaction in its
    trail.
    """
    kept = found.checkpoint
    if kept.read.source is not SourceType.LOG:
        raise UsageError(
            f"{found.name} does not read a log.", hint="ALTER EXTRACT …, EXTSEQNO …, EXTRBA … sets another position"
        )
    if asked.skip:
        raise UsageError(
            f"SKIPTRANSACTION is for a Replicat; {found.name} captures.",
            hint="SEND EXTRACT …, SKIPTRANS transaction_id leaves out an open transaction of Oracle redo",
        )
    csn = Csn.parse(asked.csn)
    place = csn._replace(value=max(csn.value - (not asked.after), 0))
    done = Csn.parse(kept.latest_csn) if kept.latest_csn else Csn(0, csn.form)
    if place.form != done.form or place < done:
        raise StateError(
            f"{found.name} cannot begin there: everything up to CSN {done} is in its trail.",
            hint="have the readers of its trail begin there instead: START REPLICAT …, AFTERCSN …",
        )
    options = kept.options._replace(since=0, at_csn="" if asked.after else str(place))
    return kept._replace(begin=str(csn), begin_csn=str(place), begin_time=0, options=options)


def require_one(pattern: str) -> None:
    """Raise UsageError for a wildcard: each group has its own position."""
    if is_wildcard(pattern):
        raise UsageError(
            "ATCSN, AFTERCSN, SKIPTRANSACTION and NOFILTERDUPTRANSACTIONS are for one group",
            hint="START REPLICAT group_name, ATCSN csn",
        )
