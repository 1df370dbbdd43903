"""The position that START named for a Replicat, stored in its checkpoint file until the target has confirmed a later one.

Such a position may have a CSN that the trail has not reached yet. It is valid after an initial load: the load already
contains the transactions up to its CSN that Extract writes later. A mistyped CSN would skip every transaction, so a pending
position is always reported.

The trail reader is imported and used only if START named a position.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ggshell.home.checkpoint import GroupOptions
from ggshell.home.events import ReportEvent, Severity
from ggshell.trail.name import TrailName
from ggshell.types import Csn, TrailPosition

if TYPE_CHECKING:
    from ggshell.pipeline.apply.target import CheckpointRow
    from ggshell.record.change import ChangeBatch


ANYWHERE = TrailPosition(-1, -1)


class StartPosition(NamedTuple):
    """ATCSN, AFTERCSN or SKIPTRANSACTION.

    ``base``: the group's position when SKIPTRANSACTION was requested; ANYWHERE until the started process has set it.

    If transactions are applied in parallel, the first one after that position may already be applied. In this case, the
    transactions that ended runs are skipped by CSN and id (``skipped``) until the group has passed ``behind``.
    """

    csn: str = ""
    after: bool = False
    skip: bool = False
    base: TrailPosition = ANYWHERE
    skipped: tuple[tuple[str, str], ...] = ()
    behind: TrailPosition = ANYWHERE
    taken: bool = False
    """Whether a process has used this position. A later START does not use a position that was not taken."""
    end: TrailPosition = ANYWHERE
    """The trail's end when a process started with a CSN beyond it. Later runs skip from there on, to count everything."""

    @classmethod
    def of(cls, options: GroupOptions) -> StartPosition | None:
        """Read the position from a checkpoint's options; None if there is none."""
        kept = options.start
        if not kept:
            return None
        skipped = tuple((str(csn), str(xid)) for csn, xid in kept.get("skipped", ()))
        places = (TrailPosition(*kept["base"]), skipped, TrailPosition(*kept.get("behind", ANYWHERE)))
        end = TrailPosition(*kept.get("end", ANYWHERE))
        return cls(kept["csn"], kept["after"], kept["skip"], *places, bool(kept.get("taken")), end)

    def as_option(self) -> dict[str, Any]:
        return {**self._asdict(), "base": list(self.base), "behind": list(self.behind), "end": list(self.end)}

    def position(self, name: TrailName, present: TrailPosition) -> TrailPosition:
        """Return where to continue; never before the current position, because everything before it is already applied.

        A transaction is skipped only once: if the group has moved on since the request, nothing is skipped.
        """
        from ggshell.trail.finding import position_of_csn
        from ggshell.trail.positions import after_transaction, end_of

        if self.skipped:
            return present
        if self.skip:
            return after_transaction(name, present) if self.base in (ANYWHERE, present) else present
        if self.end != ANYWHERE:
            return max(self.end, present)
        found = position_of_csn(name, self.least)
        return max(found or end_of(name), present)

    def row(self, name: TrailName) -> CheckpointRow:
        """Return a replacement for a lost checkpoint row: everything below the CSN counts as applied, and nothing else."""
        from ggshell.pipeline.apply.target import CheckpointRow
        from ggshell.trail.finding import position_of_csn
        from ggshell.trail.positions import end_of

        least = self.least
        place = position_of_csn(name, least) or end_of(name)
        return CheckpointRow(place, least._replace(value=least.value - 1) if least.value else None)

    def __str__(self) -> str:
        """Return the position in the syntax of START."""
        return "SKIPTRANSACTION" if self.skip else f"{'AFTERCSN' if self.after else 'ATCSN'} {self.csn}"

    @property
    def least(self) -> Csn:
        """The first CSN to apply; nothing below it is applied, even if it is not in the trail yet."""
        csn = Csn.parse(self.csn)
        return csn._replace(value=csn.value + self.after)

    def with_transaction(self, name: TrailName, refused: TrailPosition) -> StartPosition:
        """Return a copy that also skips the transaction of the record at ``refused``."""
        from ggshell.trail.reader import TrailReader

        reader = TrailReader(name, refused)
        try:
            batch = reader.read()
        finally:
            reader.close()
        if batch is None:
            return self
        header = batch.pieces[0].header
        found = (str(header.csn), header.xid)
        return self._replace(skipped=tuple(dict.fromkeys((*self.skipped, found))), behind=max(self.behind, refused))

    def left(self, batch: ChangeBatch) -> ChangeBatch:
        """Return a batch without the skipped transactions; their rows stay in it, so that later positions are known."""
        from dataclasses import replace

        pieces = [piece for piece in batch.pieces if (str(piece.header.csn), piece.header.xid) not in self.skipped]
        return batch if len(pieces) == len(batch.pieces) else replace(batch, pieces=tuple(pieces))


def without_untaken(options: GroupOptions) -> GroupOptions:
    """Return a checkpoint's options without a START position that was not taken."""
    asked = StartPosition.of(options)
    return options._replace(start={}) if asked is not None and not asked.taken else options


def from_csn(batch: ChangeBatch, least: Csn) -> ChangeBatch | None:
    """Return the transactions of a batch from a CSN on, or None if there are none."""
    number = next((number for number, piece in enumerate(batch.pieces) if piece.header.csn.value >= least.value), None)
    if not number:
        return batch if number == 0 else None
    return batch.from_piece(number)


BEYOND_TRAIL = "GGS-00529"


def beyond_text(asked: StartPosition, trail: TrailName, name: str) -> str:
    """Return a warning if a START position is beyond the last CSN of the trail, or else an empty text.

    ``name``: the trail's name for the message.
    """
    from ggshell.trail.finding import last_csn  # loaded only if START named a position

    if asked.skip:
        return ""
    last = last_csn(trail)
    if asked.least.value <= (last.value if last is not None else 0) + 1:
        return ""
    has = f"the last CSN of {name} is {last}" if last is not None else f"{name} contains no transaction"
    return (
        f"START … {asked} specifies a CSN past the end of the trail: {has}. Every transaction {skipped_until(asked)} is"
        " skipped, including those captured later."
    )


def skipped_until(asked: StartPosition) -> str:
    return f"{'up to' if asked.after else 'before'} CSN {asked.csn}"


def undo_text(group: str, asked: StartPosition, applied: Csn | None) -> str:
    """Return how to undo such a position; ``applied``: the CSN up to which the checkpoint table records all as applied."""
    again = f"START REPLICAT {group}, AFTERCSN the correct CSN"
    if applied is None or applied.value + 1 < asked.least.value:
        return f"If this CSN is wrong: STOP REPLICAT {group}, then {again}."
    return (
        f"If this CSN is wrong: the checkpoint table records them as applied, so STOP REPLICAT {group}, DBLOGIN"
        f" to the target database, ALTER REPLICAT {group}, EXTSEQNO the first file, EXTRBA 0, then {again},"
        " NOFILTERDUPTRANSACTIONS."
    )


def pending_text(group: str, options: GroupOptions, latest_csn: str, trail: TrailName, name: str) -> str:
    """Return the warning and how to undo it for the position in a checkpoint; empty if no position is pending."""
    asked = StartPosition.of(options)
    text = beyond_text(asked, trail, name) if asked is not None and asked.taken else ""
    if asked is None or not text:
        return ""
    return f"{text} {undo_text(group, asked, Csn.parse(latest_csn) if latest_csn else None)}"


class Skipped:
    """Counts the transactions after the trail's former end that a run skips until the START position is reached."""

    def __init__(self, asked: StartPosition, report_event: ReportEvent) -> None:
        self._asked, self._report_event = asked, report_event
        self._transactions = 0
        self._first = self._last = ""

    def see(self, batch: ChangeBatch, least: Csn) -> None:
        """Count a batch before the position, or report the position as reached."""
        for piece in batch.pieces:
            if piece.header.csn.value >= least.value:
                self._reached(piece.header.csn)
                return
            self._count(str(piece.header.csn), begins=bool(piece.begins))

    def _count(self, csn: str, *, begins: bool) -> None:
        self._last = csn
        self._transactions += begins
        if not self._first:
            self._first = csn
            text = (
                f"The transaction with CSN {csn} is skipped: START … {self._asked} skips every transaction"
                f" {skipped_until(self._asked)}. Further skipped transactions are counted until that position is reached."
            )
            self._report_event(Severity.WARNING, BEYOND_TRAIL, text)

    def _reached(self, csn: Csn) -> None:
        many = f"{self._transactions} transaction{'s'[: self._transactions != 1]}"
        between = f" (CSN {self._first} to {self._last})" if self._first else ""
        text = (
            f"The position of START … {self._asked} was reached at CSN {csn}: {many}{between} after the trail's former end"
            f" {self._asked.end} {'was' if self._transactions == 1 else 'were'} skipped."
        )
        self._report_event(Severity.INFO, BEYOND_TRAIL, text)
