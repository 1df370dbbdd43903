"""The checkpoint file of a Replicat, which follows its checkpoint table.

The file is written only when its content would survive a crash of the target.
"""

from __future__ import annotations

from typing import Any

from ggshell.groups.checkpoint_rows import keys_in_use
from ggshell.groups.deliveries import with_additional_rows
from ggshell.groups.lifecycle import GroupContext
from ggshell.groups.progress import ReadingProgress
from ggshell.groups.start_position import StartPosition
from ggshell.home.checkpoint import AddedAt
from ggshell.pipeline.apply.group_delivery import GroupDelivery
from ggshell.pipeline.apply.target import CheckpointRow, GroupTarget
from ggshell.trail.misplaced import require_placed
from ggshell.trail.name import TrailName
from ggshell.types import Csn, TableName, TrailPosition


class ReplicatCheckpoint:
    """Saves in the checkpoint file what a Replicat has applied, and what a later run needs to know."""

    def __init__(self, context: GroupContext, table: TableName | None, progress: ReadingProgress) -> None:
        """``table``: the checkpoint table, None with NODBCHECKPOINT."""
        self._context = context
        self._table = table
        self._progress = progress
        self._saved: CheckpointRow | None = None

    @property
    def begin(self) -> TrailPosition:
        """The position in the trail."""
        place = self._context.checkpoint.read.current
        return place if isinstance(place, TrailPosition) else TrailPosition(0, 0)

    def first_row(self) -> CheckpointRow:
        """Return the first row for the checkpoint table, with the content of the file."""
        checkpoint = self._context.checkpoint
        csn = Csn.parse(checkpoint.latest_csn) if checkpoint.latest_csn else None
        same = checkpoint.options.completed if csn is not None else ()
        return CheckpointRow(self.begin, csn, checkpoint.latest_xid, checkpoint.record_time, same_csn=same)

    def require_standing(self, trail: TrailName, position: TrailPosition, applied: CheckpointRow | None) -> None:
        """Check that the position of the checkpoint table's row still follows its CSN in the trail.

        Raises TrailError if the trail was written again before that position.
        """
        if applied is None or self._context.checkpoint.options.added is AddedAt.PLACED:
            return
        group = self._context.group
        place = "EXTSEQNO {seqno}, EXTRBA {rba}"
        remedy = f"ALTER REPLICAT {group}, {place}, FILTERDUPTRANSACTIONS, then START: applied transactions are skipped"
        require_placed(trail, position, applied.csn, f"REPLICAT {group}", remedy)

    def keep(self, **changes: Any) -> None:
        """Save changed options of the group."""
        context = self._context
        context.save(context.checkpoint._replace(options=context.checkpoint.options._replace(**changes)))

    def opened(self, delivery: GroupDelivery) -> None:
        """Update the file before anything is applied.

        Records that transactions above the group's row may be applied from now on, and that START's position is in use.
        """
        options = with_additional_rows(self._context.checkpoint.options, delivery, whole=False)
        options = options._replace(uncertain=None)
        asked = StartPosition.of(options)
        if asked is not None:
            options = options._replace(start=asked._replace(taken=True).as_option())
        if options != self._context.checkpoint.options:
            self._context.save(self._context.checkpoint._replace(options=options))

    def must_follow(self, applied: CheckpointRow | None) -> bool:
        """Whether the file must be saved now: without a checkpoint table, nothing else shows what is applied."""
        return self._table is None and applied is not self._saved

    def save(
        self, target: GroupTarget, delivery: GroupDelivery, applied: CheckpointRow, *, whole: bool, start_passed: bool
    ) -> None:
        """Save that everything up to the row ``applied`` is applied.

        ``whole``: nothing is applied above it. ``start_passed``: START's position is no longer needed.
        """
        context = self._context
        self._saved = applied
        target.durable()
        options = with_additional_rows(context.checkpoint.options, delivery, whole=whole)
        if start_passed:
            options = options._replace(start={})
        if options.refused is not None and applied.position > options.refused:
            options = options._replace(refused=None)
        context.save(
            context.checkpoint._replace(
                read=context.checkpoint.read.reached(applied.position, applied.commit_time),
                record_time=applied.commit_time or self._progress.record_time,
                caught_up=self._progress.caught_up,
                latest_csn=str(applied.csn or ""),
                latest_xid=applied.xid,
                options=options._replace(
                    added=None,
                    completed=tuple(applied.same_csn),
                    checkpoint_table=str(self._table or ""),
                    group_key=target.key,
                    row_keys=keys_in_use(context.home, context.checkpoint),
                ),
            )
        )
