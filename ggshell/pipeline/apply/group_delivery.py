"""What a Replicat needs from its delivery, whether one connection applies the rows or several do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from ggshell.pipeline.apply.target import CheckpointRow
from ggshell.record.change import ChangeBatch


class GroupDelivery(Protocol):
    """Applies the batches of a group and moves the group's row in the checkpoint table."""

    @property
    def applied(self) -> CheckpointRow | None:
        """The group's row: everything up to it is applied. None before the first transaction."""

    @property
    def pending(self) -> bool:
        """Whether there are rows that are not in a confirmed commit."""

    @property
    def oldest(self) -> int:
        """The commit time of the oldest transaction that is not confirmed as applied; 0 if there is none."""

    @property
    def threads(self) -> Sequence[int] | None:
        """The threads with a row of their own; None if nothing is ever applied above the group's row."""

    def feed(self, batch: ChangeBatch) -> None:
        """Take a batch, which may be applied later. Raises ApplyError, ConnectionLostError."""

    def advance(self) -> None:
        """Do what can be done without further batches, because the trail has none at the moment."""

    def wake(self) -> list[int]:
        """Return the descriptors that become readable when pending work is applied."""

    def flush(self) -> None:
        """Apply all whole transactions, and wait until the target has confirmed them."""

    def save(self) -> None:
        """Save in the checkpoint table what ``applied`` shows, if that is not done with the rows."""

    def note(self) -> bool:
        """After an error, record the confirmed commits in ``applied``; False if only the checkpoint table shows them."""

    def abandon(self) -> None:
        """Roll back what is not committed, because the process stops inside a transaction."""

    def activity(self) -> dict[str, Any]:
        """Return what the appliers or threads do, for STATUS; nothing if there are none."""

    def end(self) -> None:
        """End the appliers or threads, if there are any."""
