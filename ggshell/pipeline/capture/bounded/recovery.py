"""Bounded Recovery as an Extract runs it: when a checkpoint is due, what a start does, and SEND EXTRACT … BR."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple

from ggshell.clock import Clock
from ggshell.errors import DiskError, GgsError
from ggshell.pipeline.capture.bounded.manifest import MachineIdentity, RecoveryManifest
from ggshell.pipeline.capture.bounded.store import MISSING, BoundedStore, ManifestPosition
from ggshell.pipeline.capture.cache import OpenTransaction, TransactionCache

NOT_USED = "OGG-30469"
"""The code of a recovery that could not be carried out; normal recovery replaces it."""


class RecoveryKind(StrEnum):
    """The kinds of recovery."""

    NORMAL = "normal recovery, no open transactions"
    REREAD = "normal recovery"
    BOUNDED = "bounded recovery"


class RecoveryRecord(NamedTuple):
    """What Extract's own checkpoint records.

    ``position`` is where reading had stopped. ``recovery`` is where the oldest open transaction began (the same position
    if none was open). ``incarnation`` is that of the group (0: Bounded Recovery has not been on since its start point
    was set).
    """

    position: int
    recovery: int
    incarnation: int


class RecoveryConditions(NamedTuple):
    """The conditions under which a checkpoint of Bounded Recovery is used."""

    on: bool
    reset: bool
    identity: MachineIdentity
    fingerprint: str


class RecoveryRefusal(StrEnum):
    """Why a checkpoint is not used; empty if it may be used."""

    NONE = ""
    ABSENT = "absent"
    OFF = "off"
    RESET = "reset"
    FAILED = "failed"


class Recovery(NamedTuple):
    """Where to begin to read, what to restore first (None: nothing), and the reason as text.

    ``refusal`` is why the saved manifest cannot be used, even if it was not needed. ``failure`` is what failed before
    this recovery was selected (empty: nothing), and ``failure_code`` its code.
    """

    kind: RecoveryKind
    position: int
    reason: str
    manifest: RecoveryManifest | None = None
    refusal: RecoveryRefusal = RecoveryRefusal.NONE
    failure: str = ""
    failure_code: str = NOT_USED


def decide(
    recorded: RecoveryRecord, found: RecoveryManifest | None, conditions: RecoveryConditions, trouble: str = ""
) -> Recovery:
    """Select the recovery at a start. ``trouble`` is why an existing checkpoint could not be read.

    1. No transaction was open: read from where reading had stopped.
    2. Bounded Recovery is off, reset or without a usable checkpoint: read from where the oldest open transaction began.
    3. All open transactions began at or after the checkpoint's restart position: the same, as nothing has to be
       restored.
    4. Otherwise, restore the persisted transactions, and read from the checkpoint's restart position.
    """
    refusal, why = _refusal(recorded, found, conditions, trouble)
    if recorded.recovery >= recorded.position:
        return Recovery(
            RecoveryKind.NORMAL, recorded.position, "no transaction was open when Extract stopped", None, refusal
        )
    if found is None or refusal is not RecoveryRefusal.NONE:
        return Recovery(RecoveryKind.REREAD, recorded.recovery, why, None, refusal)
    if recorded.recovery >= found.restart:
        return Recovery(RecoveryKind.REREAD, recorded.recovery, "no saved transaction was open")
    count = len(found.objects)
    reason = f"{count} long-running transaction{'s' * (count != 1)} restored from checkpoint {found.number}"
    return Recovery(RecoveryKind.BOUNDED, found.restart, reason, found)


def _refusal(
    recorded: RecoveryRecord, found: RecoveryManifest | None, conditions: RecoveryConditions, trouble: str
) -> tuple[RecoveryRefusal, str]:
    if not conditions.on:
        return RecoveryRefusal.OFF, "Bounded Recovery is off (BROFF)"
    if conditions.reset:
        return RecoveryRefusal.RESET, "BRRESET discards what was saved"
    if found is None:
        if trouble:
            return RecoveryRefusal.FAILED, trouble
        return RecoveryRefusal.ABSENT, "there is no Bounded Recovery checkpoint yet"
    if found.incarnation != recorded.incarnation or found.position > recorded.position:
        return (
            RecoveryRefusal.RESET,
            "the start point or the Extract checkpoint was altered after the last Bounded Recovery checkpoint",
        )
    difference = found.identity.difference(conditions.identity)
    if difference:
        return RecoveryRefusal.FAILED, f"the last Bounded Recovery checkpoint was made by {difference}"
    if found.fingerprint != conditions.fingerprint:
        return (
            RecoveryRefusal.RESET,
            "the captured tables changed in the parameter file after the last Bounded Recovery checkpoint",
        )
    return RecoveryRefusal.NONE, ""


SECOND = 1_000_000
NEVER = 1 << 62
RETRY_PART = 10
"""A failed checkpoint is tried again after this fraction of an interval."""


class BoundedRecovery:
    """The Bounded Recovery of one run.

    ``status`` is ON, OFF (never on in this run), STOPPED (BRSTOP) or FAILED (BROFFONFAILURE).
    """

    def __init__(self, store: BoundedStore, clock: Clock, *, on: bool = True, off_on_failure: bool = False) -> None:
        self._store = store
        self._clock = clock
        self._off_on_failure = off_on_failure
        self.status = "ON" if on else "OFF"
        self.last: RecoveryManifest | None = None
        self.forced: int | None = None
        self.failure = ""
        self._log_due = self._due = 0
        self._counts = dict.fromkeys(("checkpoints", "failed", "objects_written", "objects_kept", "bytes_written"), 0)

    @property
    def interval(self) -> int:
        """Seconds between checkpoints."""
        return self._store.settings.interval

    def start(
        self, recorded: RecoveryRecord, conditions: RecoveryConditions, cache: TransactionCache, log_time: int
    ) -> Recovery:
        """Select the kind of recovery, and restore what it needs.

        If a restore fails, the previous checkpoint is used if it is complete, otherwise normal recovery. ``log_time``
        is the log's time at the position where a normal recovery begins.
        """
        failure, code = "", NOT_USED
        below: int | None = None
        while True:
            manifest, trouble = self._find(below, failure)
            recovery = decide(recorded, manifest, conditions, failure or trouble)
            if recovery.kind is not RecoveryKind.BOUNDED or recovery.manifest is None:
                break
            try:
                self._store.restore(recovery.manifest, cache)
                break
            except GgsError as error:
                if not failure:
                    failure, code = str(error), MISSING if error.code == MISSING else NOT_USED
                below = recovery.manifest.number
        if recovery.kind is RecoveryKind.REREAD and recovery.refusal is RecoveryRefusal.FAILED:
            failure = failure or recovery.reason
        if failure and self._off_on_failure and self.status == "ON":
            self.status = "FAILED"
        self.failure = failure
        self.last = manifest if recovery.refusal is RecoveryRefusal.NONE else None
        self._plan_next(self.last.position_time if self.last is not None else log_time)
        return recovery._replace(failure=failure, failure_code=code)

    def begin(self, log_time: int) -> None:
        """Begin without any recovery. ``log_time`` is 0 while the log's time is not known."""
        self._plan_next(log_time)

    def see(self, first_time: int) -> None:
        """Learn the log's time, which is known from its first record on."""
        if not self._log_due and first_time:
            self._log_due = self._following(first_time)

    def is_saved(self, transaction: OpenTransaction) -> bool:
        """Whether the files contain everything of a transaction."""
        return self._store.is_saved(transaction)

    def _find(self, below: int | None, failure: str) -> tuple[RecoveryManifest | None, str]:
        try:
            return self._store.find(below)
        except DiskError as error:
            return None, failure or str(error)

    def due(self, log_time: int) -> bool:
        """Whether to make a checkpoint now: an interval has passed on the clock or in the log, or one was requested."""
        if self.status != "ON":
            return False
        now = self._clock.now()
        self.see(log_time)
        if not log_time:
            return False
        return log_time >= self._log_due or now >= self._due or (self.forced is not None and now >= self.forced)

    def checkpoint(self, cache: TransactionCache, place: ManifestPosition) -> RecoveryManifest:
        """Make a checkpoint. Everything that committed before it, except what waits, must be durable in the trail.

        Raises DiskError. The previous checkpoint then stays valid, and another attempt is made later.
        """
        begin = self._clock.now()
        try:
            made = self._store.checkpoint(cache, place, begin)
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
            self._store.clean(made)
        except DiskError as error:  # the checkpoint is complete; the next one removes what is left
            self.failure = str(error)
        return made

    @property
    def log_due(self) -> int:
        """The log's time at which the next checkpoint is due. Reading should not go far beyond it without a pause."""
        return self._log_due if self.status == "ON" else NEVER

    def _following(self, log_time: int) -> int:
        """The end of the current interval in the log's time, so that checkpoints do not depend on the time of the
        start."""
        span = self.interval * SECOND
        return (log_time // span + 1) * span

    def _plan_next(self, log_time: int, part: int = 1) -> None:
        self._log_due = self._following(log_time) if log_time else 0
        if part > 1:
            self._log_due = log_time + self.interval * SECOND // part
        self._due = self._clock.now() + self.interval * SECOND // part

    def turn_on(self, log_time: int) -> None:
        """BRSTART: turn Bounded Recovery on, regardless of the previous status."""
        if self.status != "ON":
            self.status, self.failure = "ON", ""
            self._plan_next(self.last.position_time if self.last is not None else log_time)

    def turn_off(self) -> None:
        """BRSTOP: make no checkpoints until BRSTART or the next start. Existing ones stay."""
        if self.status == "ON":
            self.status = "STOPPED"

    def set_interval(self, seconds: int) -> None:
        """BRINTERVAL, for the rest of the run."""
        before, due = self.interval, self._log_due
        self._store.set_interval(seconds)
        self._log_due = self._following(due - before * SECOND) if due else 0
        self._due += (seconds - before) * SECOND

    def set_durable(self, *, durable: bool) -> None:
        """BRFSOPTION, for the rest of the run."""
        self._store.set_durable(durable=durable)

    def force(self, moment: int) -> None:
        """BRCHECKPOINT: make an additional checkpoint at a given time (microseconds since 1970)."""
        self.forced = moment

    def facts(self, cache: TransactionCache, log_time: int) -> dict[str, Any]:
        """The facts that BRSTATUS reports: times in microseconds since 1970, sizes in bytes, interval in seconds."""
        last = self.last
        waiting = [
            item
            for item in cache.open.values()
            if not item.ignored and self._store.is_long(item, log_time) and not self._store.is_saved(item)
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
        """The counters that BRSTATS reports since the start: checkpoints, failed ones, objects, bytes."""
        return dict(self._counts)
