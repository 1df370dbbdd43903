"""The position that START named, as one run of a Replicat uses it: where it begins to read, and what it skips."""

from __future__ import annotations

import contextlib

from ggshell.errors import DiskError
from ggshell.groups.lifecycle import GroupContext
from ggshell.groups.replicat_checkpoint import ReplicatCheckpoint
from ggshell.groups.start_position import (
    ANYWHERE,
    BEYOND_TRAIL,
    Skipped,
    StartPosition,
    beyond_text,
    from_csn,
    undo_text,
    without_untaken,
)
from ggshell.home.checkpoint import ReplicatKind
from ggshell.home.events import Severity
from ggshell.pipeline.apply.target import CheckpointRow
from ggshell.record.change import ChangeBatch
from ggshell.trail.name import TrailName
from ggshell.trail.reader import TrailReader
from ggshell.types import Csn, TrailPosition


class RequestedStart:
    """Applies ATCSN, AFTERCSN or SKIPTRANSACTION to each session of a run; without one of them it changes nothing."""

    def __init__(self, context: GroupContext, trail: TrailName, file: ReplicatCheckpoint) -> None:
        self._context = context
        self._trail = trail
        self._file = file
        self._last: TrailPosition | None = None
        """The checkpoint file needs the request until the target has confirmed a later position than this."""
        self._least: Csn | None = None
        """Transactions below this CSN are not applied; None when the trail has reached it."""
        self._skipping: StartPosition | None = None
        self._counted: Skipped | None = None

    def begin(self, position: TrailPosition, applied: CheckpointRow | None) -> TrailPosition:
        """Return the place at which a session begins to read; ``position``: where it would begin without a request."""
        asked = self._updated(StartPosition.of(self._context.checkpoint.options), position)
        self._skipping = asked if asked is not None and asked.skipped else None
        self._least = None if asked is None or asked.skip else asked.least
        place = asked.position(self._trail, position) if asked is not None else position
        if place > position:
            self._warn(f"START specified another position: transactions between {position} and {place} are skipped.")
        if self._skipping is not None:
            csn, xid = self._skipping.skipped[-1]
            self._warn(f"START skips transaction {xid} (CSN {csn}), at which an earlier run abended.")
            self._last = self._skipping.behind
        else:
            self._last = place if asked is not None else None
        if asked is not None:
            self._note_beyond(asked, place, applied)
        return place

    def read(self, reader: TrailReader) -> ChangeBatch | None:
        """Read the next batch; skip transactions below the CSN that START named, which may not be in the trail yet."""
        while (batch := reader.read()) is not None and self._least is not None:
            if self._counted is not None:
                self._counted.see(batch, self._least)
            if (kept := from_csn(batch, self._least)) is not None:
                self._least = None
                return kept
            self._context.runner.wait([], 0)
        return batch

    def left(self, batch: ChangeBatch) -> ChangeBatch:
        """Return a batch without the transactions that SKIPTRANSACTION skips."""
        return batch if self._skipping is None else self._skipping.left(batch)

    def is_passed(self, position: TrailPosition) -> bool:
        """Whether the request has had its effect when everything up to a position is applied."""
        return self._last is not None and position > self._last

    def forget_untaken(self) -> None:
        """Remove the request from the checkpoint file if this run could not use it, so that no later run uses it."""
        options = self._context.checkpoint.options
        asked = StartPosition.of(options)
        if asked is not None and not asked.taken:
            with contextlib.suppress(DiskError):  # the next START also removes it
                self._warn(f"START … {asked} had no effect; a later START does not use it.")
                self._context.save(self._context.checkpoint._replace(options=without_untaken(options)))

    def _updated(self, asked: StartPosition | None, position: TrailPosition) -> StartPosition | None:
        """Save in a new SKIPTRANSACTION which transaction it skips, so that a later start skips no other one."""
        if asked is None or not asked.skip or asked.base != ANYWHERE:
            return asked
        asked = asked._replace(base=position)
        options = self._context.checkpoint.options
        refused, parallel = options.refused, options.replicat_kind is not ReplicatKind.CLASSIC
        if refused is not None and refused >= position and parallel:
            asked = asked.with_transaction(self._trail, refused)
        self._file.keep(start=asked.as_option())
        return asked

    def _note_beyond(self, asked: StartPosition, place: TrailPosition, applied: CheckpointRow | None) -> None:
        """Report a CSN that the trail has not reached, and count what is skipped until then, also in later runs."""
        context = self._context
        text = beyond_text(asked, self._trail, context.checkpoint.read.trail)
        if text:
            undo = undo_text(context.group, asked, applied.csn if applied is not None else None)
            context.report.event(Severity.WARNING, BEYOND_TRAIL, f"{text} {undo}")
            if asked.end == ANYWHERE:
                asked = asked._replace(end=place)
                self._file.keep(start=asked.as_option())
        self._counted = Skipped(asked, context.report.event) if asked.end != ANYWHERE else None

    def _warn(self, text: str) -> None:
        self._context.report.event(Severity.WARNING, "GGS-00518", text)
