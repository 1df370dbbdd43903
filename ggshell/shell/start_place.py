"""START ATCSN, AFTERCSN, SKIPTRANSACTION: the place asked for, kept for the process, or only told (DRYRUN)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ggshell.clock import local_text
from ggshell.errors import StateError, UsageError
from ggshell.process.start_place import AT_CSN, OPTION, StartPlace, refused_place
from ggshell.shell import registrations
from ggshell.shell.groups import View, is_wildcard, require_stopped
from ggshell.shell.session import Session
from ggshell.store.checkpoint import Checkpoint, GroupType, SourceType
from ggshell.trail.name import TrailName
from ggshell.types import Csn, TrailPosition

if TYPE_CHECKING:
    from ggshell.trail.span import Span


def start_place(atcsn: str, aftercsn: str, skip: bool) -> StartPlace | None:
    """What START asks for; None for the place where the group stands.  Raises UsageError for what is no CSN."""
    if skip:
        return StartPlace(skip=True)
    text = atcsn or aftercsn
    if not text:
        return None
    try:
        return StartPlace(str(Csn.parse(text)), after=bool(aftercsn))
    except ValueError:
        raise UsageError(f"{text} is no CSN", hint="as INFO … SHOWCH prints it: 00000000/050056B8") from None


def place_of(session: Session, found: View, asked: StartPlace) -> TrailPosition:
    """Where in its trail a Replicat would go on, as far as its checkpoint file knows."""
    read = found.checkpoint.read
    present = read.current if isinstance(read.current, TrailPosition) else TrailPosition(0, 0)
    return asked.position(TrailName.parse(read.trail, session.home.root), present)


def skipped_by_id(found: View, asked: StartPlace) -> list[str]:
    """What SKIPTRANSACTION would leave out where transactions are applied beside each other: the one that ended the last run.
    Empty where the group's place says it."""
    refused = refused_place(found.checkpoint.options)
    if not asked.skip or refused is None or not found.checkpoint.options.get("kind"):
        return []
    return [f"The transaction at {refused} of {found.checkpoint.read.trail} would be skipped: it ended the last run."]


def told(session: Session, found: View, place: TrailPosition) -> list[str]:
    """What going on at a place would skip or apply again, in words."""
    from ggshell.trail.span import span_between

    read = found.checkpoint.read
    present = read.current if isinstance(read.current, TrailPosition) else TrailPosition(0, 0)
    name = TrailName.parse(read.trail, session.home.root)
    low, high = sorted((present, place))
    span = span_between(name, low, high)
    lines = [f"{found.name} stands at {present} of {read.trail}, and would go on at {place}."]
    if place == present or not span.transactions:
        return [*lines, "No transaction would be skipped, and none applied again."]
    return [*lines, f"{_many(span)} would be {'skipped' if place > present else 'applied again'}: {_ends(span)}."]


def _many(span: Span) -> str:
    return f"{span.transactions} transaction{'s'[: span.transactions != 1]} with {span.rows} row{'s'[: span.rows != 1]}"


def _ends(span: Span) -> str:
    first, last = (
        f"CSN {csn} ({local_text(time)})"
        for csn, time in ((span.first_csn, span.first_time), (span.last_csn, span.last_time))
    )
    return first if span.transactions == 1 else f"{first} to {last}"


def keep(session: Session, found: View, asked: StartPlace) -> None:
    """Have the process go on there.  Raises UsageError for what reads neither log nor, as a Replicat, a trail; StateError for a
    group that runs."""
    require_stopped(found, "started at another place")
    if found.type is GroupType.EXTRACT:
        registrations.save(session, _begun_at(found, asked))
        return
    earlier = StartPlace.of(found.checkpoint.options)
    if asked.skip and earlier is not None:
        asked = asked._replace(skipped=earlier.skipped, behind=earlier.behind)  # the target has not passed them yet
    options = {**found.checkpoint.options, OPTION: asked.as_option()}
    registrations.save(session, found.checkpoint._replace(options=options))


def _begun_at(found: View, asked: StartPlace) -> Checkpoint:
    """An Extract that captures what commits at a CSN, or behind it, and nothing before.

    Raises UsageError for one that reads no log, StateError for a place before the last transaction in its trail.
    """
    kept = found.checkpoint
    if kept.read.source is not SourceType.LOG:
        raise UsageError(f"{found.name} reads no log.", hint="ALTER EXTRACT …, EXTSEQNO …, EXTRBA … sets another place")
    csn = Csn.parse(asked.csn)
    place = csn._replace(value=max(csn.value - (not asked.after), 0))
    done = Csn.parse(kept.latest_csn) if kept.latest_csn else Csn(0, csn.lsn)
    if place.lsn is not done.lsn or place < done:
        raise StateError(
            f"{found.name} cannot begin there: everything up to CSN {done} is in its trail.",
            hint="have the readers of its trail begin there instead: START REPLICAT …, AFTERCSN …",
        )
    options = {name: value for name, value in kept.options.items() if name != "since"}
    options[AT_CSN] = "" if asked.after else str(place)
    return kept._replace(begin=str(csn), begin_csn=str(place), begin_time=0, options=options)


def require_one(pattern: str) -> None:
    """Raises UsageError for a wildcard: each group stands at a place of its own."""
    if is_wildcard(pattern):
        raise UsageError(
            "ATCSN, AFTERCSN, SKIPTRANSACTION and NOFILTERDUPTRANSACTIONS are for one group",
            hint="START REPLICAT group_name, ATCSN csn",
        )
