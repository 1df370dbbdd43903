"""Bounded Recovery as an Extract runs it: when a checkpoint is due, what a start does, what SEND EXTRACT … BR asks."""

from __future__ import annotations

from typing import Any, NamedTuple

from ggshell.capture.bounded.keeper import Found, Keeper, Place
from ggshell.capture.bounded.manifest import BoundedCheckpoint
from ggshell.capture.bounded.plan import Conditions, Kind, Plan, Recorded, Refusal, decide
from ggshell.capture.cache import OpenTransaction, TransactionCache
from ggshell.clock import Clock
from ggshell.errors import DiskError, GgsError

SECOND = 1_000_000
NEVER = 1 << 62
RETRY_PART = 10
"""A checkpoint that failed is tried again after this part of an interval."""


class Started(NamedTuple):
    """The plan that a start follows in the end, and what failed on the way to it (empty: nothing)."""

    plan: Plan
    failure: str = ""


class BoundedRecovery:
    """One run's Bounded Recovery.  ``status``: ON, OFF (never on in this run), STOPPED (BRSTOP) or FAILED (BROFFONFAILURE)."""

    def __init__(self, keeper: Keeper, clock: Clock, *, on: bool = True, off_on_failure: bool = False) -> None:
        self._keeper = keeper
        self._clock = clock
        self._off_on_failure = off_on_failure
        self.status = "ON" if on else "OFF"
        self.last: BoundedCheckpoint | None = None
        self.forced: int | None = None
        self.failure = ""
        self._log_due = self._due = 0
        self._counts = dict.fromkeys(("checkpoints", "failed", "objects_written", "objects_kept", "bytes_written"), 0)

    @property
    def interval(self) -> int:
        """Seconds between checkpoints."""
        return self._keeper.settings.interval

    def start(self, recorded: Recorded, conditions: Conditions, cache: TransactionCache, log_time: int) -> Started:
        """Decide on the recovery and restore what it needs; a restore that fails falls back to the checkpoint before, if that
        is whole, and else to normal recovery.  ``log_time``: the log's time where a normal recovery begins."""
        failure = ""
        below: int | None = None
        while True:
            found = self._find(below, failure)
            plan = decide(recorded, found.checkpoint, conditions, failure or found.trouble)
            if plan.kind is not Kind.BOUNDED or plan.checkpoint is None:
                break
            try:
                self._keeper.restore(plan.checkpoint, cache)
                break
            except GgsError as error:
                failure = failure or str(error)
                below = plan.checkpoint.number
        if plan.kind is Kind.REREAD and plan.refusal is Refusal.FAILED:
            failure = failure or plan.reason
        if failure and self._off_on_failure and self.status == "ON":
            self.status = "FAILED"
        self.failure = failure
        self.last = found.checkpoint if plan.refusal is Refusal.NONE else None
        self._plan_next(self.last.position_time if self.last is not None else log_time)
        return Started(plan, failure)

    def begin(self, log_time: int) -> None:
        """Begin without any recovery; 0 while the log's time is not known."""
        self._plan_next(log_time)

    def see(self, first_time: int) -> None:
        """The log's time is known from its first record on."""
        if not self._log_due and first_time:
            self._log_due = self._following(first_time)

    def is_saved(self, transaction: OpenTransaction) -> bool:
        """Whether what is in files is all there is of a transaction."""
        return self._keeper.is_saved(transaction)

    def _find(self, below: int | None, failure: str) -> Found:
        try:
            return self._keeper.find(below)
        except DiskError as error:
            return Found(None, failure or str(error))

    def due(self, log_time: int) -> bool:
        """Whether a checkpoint is to be made now: an interval has passed on the clock or in the log, or it was asked for."""
        if self.status != "ON":
            return False
        now = self._clock.now()
        self.see(log_time)
        if not log_time:
            return False
        return log_time >= self._log_due or now >= self._due or (self.forced is not None and now >= self.forced)

    def checkpoint(self, cache: TransactionCache, place: Place) -> BoundedCheckpoint:
        """Make a checkpoint where everything that committed before, but for what waits, is durable in the trail.

        Raises DiskError; the checkpoint before stands, and another is tried later.
        """
        begin = self._clock.now()
        try:
            made = self._keeper.checkpoint(cache, place, begin)
        except DiskError as error:
            self.failure = str(error)
            self.forced = None
            self._counts["failed"] += 1
            self._plan_next(place.time, RETRY_PART)
            raise
        self.last, self.forced, self.failure = made, None, ""
        self._plan_next(place.time)
        written = [item for item in made.objects if item.written == made.number]
        self._counts["checkpoints"] += 1
        self._counts["objects_written"] += len(written)
        self._counts["objects_kept"] += len(made.objects) - len(written)
        self._counts["bytes_written"] += sum(file.size for item in written for file in item.files)
        try:
            self._keeper.clean(made)
        except DiskError as error:  # the checkpoint is whole; the next one removes what is left
            self.failure = str(error)
        return made

    @property
    def log_due(self) -> int:
        """The log's time at which the next checkpoint falls: reading should not go far beyond it without a pause."""
        return self._log_due if self.status == "ON" else NEVER

    def _following(self, log_time: int) -> int:
        """The next whole interval of the log's time: checkpoints fall on the same hours, whenever Extract was started."""
        span = self.interval * SECOND
        return (log_time // span + 1) * span

    def _plan_next(self, log_time: int, part: int = 1) -> None:
        self._log_due = self._following(log_time) if log_time else 0
        if part > 1:
            self._log_due = log_time + self.interval * SECOND // part
        self._due = self._clock.now() + self.interval * SECOND // part

    def turn_on(self, log_time: int) -> None:
        """BRSTART: from here on, whatever it was before."""
        if self.status != "ON":
            self.status, self.failure = "ON", ""
            self._plan_next(self.last.position_time if self.last is not None else log_time)

    def turn_off(self) -> None:
        """BRSTOP: no checkpoints until BRSTART or the next start; those that there are stay."""
        if self.status == "ON":
            self.status = "STOPPED"

    def set_interval(self, seconds: int) -> None:
        """BRINTERVAL for the rest of the run."""
        before, due = self.interval, self._log_due
        self._keeper.set_interval(seconds)
        self._log_due = self._following(due - before * SECOND) if due else 0
        self._due += (seconds - before) * SECOND

    def set_durable(self, *, durable: bool) -> None:
        """BRFSOPTION for the rest of the run."""
        self._keeper.set_durable(durable=durable)

    def force(self, moment: int) -> None:
        """BRCHECKPOINT: one more checkpoint at a moment (microseconds since 1970)."""
        self.forced = moment

    def facts(self, cache: TransactionCache, log_time: int) -> dict[str, Any]:
        """What BRSTATUS tells: times in microseconds since 1970, sizes in bytes, ``interval`` in seconds."""
        last = self.last
        waiting = [
            item
            for item in cache.open.values()
            if not item.ignored and self._keeper.is_long(item, log_time) and not self._keeper.is_saved(item)
        ]
        return {
            "status": self.status,
            "interval": self.interval,
            "last_number": last.number if last else 0,
            "last_time": last.time if last else 0,
            "next_time": self._due if self.status == "ON" else 0,
            "forced_time": self.forced or 0,
            "objects": len(last.objects) if last else 0,
            "state": last.state if last else 0,
            "data": last.data if last else 0,
            "outstanding": len(waiting),
            "outstanding_data": sum(item.size for item in waiting),
            "failure": self.failure,
        }

    def counts(self) -> dict[str, int]:
        """What BRSTATS counts since the start: checkpoints, failed ones, objects, bytes."""
        return dict(self._counts)
