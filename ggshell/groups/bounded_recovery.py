"""Bounded Recovery in an Extract: starts a run with the required recovery and writes Bounded Recovery checkpoints.

``capture.bounded`` contains the decisions and the file format. SEND EXTRACT … BR is answered here.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ggshell import __version__
from ggshell.clock import Clock, local_text
from ggshell.connectors.source import BoundedLog, SourceDatabase
from ggshell.durations import HOUR, MINUTE, interval_text
from ggshell.errors import DiskError, ParameterError, StateError, UsageError
from ggshell.groups.lifecycle import GroupContext
from ggshell.home.bounded_state import BoundedState, PersistedTransaction, RecoveryState, TimedPosition
from ggshell.home.checkpoint import Checkpoint, GroupOptions
from ggshell.home.events import Severity
from ggshell.home.typed_fields import plain
from ggshell.parameters.process_parameters import ExtractParameters
from ggshell.parameters.transaction_rules import BoundedParameters, capture_fingerprint, nearest_multiple
from ggshell.pipeline.capture.bounded.manifest import MachineIdentity, RecoveryManifest
from ggshell.pipeline.capture.bounded.recovery import (
    BoundedRecovery,
    Recovery,
    RecoveryConditions,
    RecoveryKind,
    RecoveryRecord,
    RecoveryRefusal,
)
from ggshell.pipeline.capture.bounded.store import BoundedStore, ManifestPosition, StoreSettings, SystemDisk
from ggshell.pipeline.capture.cache import TransactionCache
from ggshell.pipeline.capture.stream import Capture
from ggshell.types import Csn, LogPosition

_LEAST, _MOST = 20 * MINUTE, 96 * HOUR
_READ_ONLY = ("BRSTATUS", "BRSTATS", "BRSHOW")
"""Requests that change nothing."""
_SHOWN_OBJECTS = 500
"""The maximum number of persisted transactions in the checkpoint file, for INFO; the manifest contains all of them."""


def refuse_bounded(context: GroupContext, given: BoundedParameters, reason: str) -> None:
    """Raise ParameterError if a BR parameter enables Bounded Recovery for a source that does not have it."""
    if given.line and given.on:
        raise ParameterError(
            f"BR applies to Oracle redo only: {reason}",
            where=f"{context.home.parameters(context.group)}:{given.line}",
            hint="remove the BR line",
        )


class ExtractRecovery:
    """The Bounded Recovery of one Extract. It does nothing for a source that retains its log for the Extract."""

    def __init__(self, context: GroupContext, parameters: ExtractParameters, source: SourceDatabase) -> None:
        """Raises ParameterError for BR with such a source, and for BRRESET unless the Extract is started manually."""
        self._context = context
        self._parameters = parameters
        self._source = source
        self._bounded: BoundedRecovery | None = None
        self._previous: RecoveryManifest | None = None
        self._seconds = 0.0
        self.recovering: RecoveryProgress | None = None
        given = parameters.bounded
        if source.bounded_recovery_refusal:
            refuse_bounded(context, given, source.bounded_recovery_refusal)
        if given.reset and not context.home.by_hand:
            raise ParameterError(
                "BR BRRESET is valid only for a single manual start",
                where=f"{context.home.parameters(context.group)}:{given.line}",
                hint="remove it from the group's parameter file, and run ggshell extract paramfile FILE reportfile FILE",
            )

    @property
    def control(self) -> BoundedRecovery | None:
        """The object that SEND EXTRACT … BR controls; None before the first start and for a source without it."""
        return self._bounded

    def folder(self) -> Path:
        """Return the folder of the group's files: BR/<GROUP> in the home directory or in BRDIR."""
        written = self._parameters.bounded.directory
        root = self._context.home.resolve(written) if written else self._context.home.root
        return (root if root.name == "BR" else root / "BR") / self._context.group

    def start(self, cache: TransactionCache, begin: Csn) -> LogPosition | None:
        """Choose the kind of recovery and restore its data; return where to start reading, or None for the default."""
        if self._source.bounded_recovery_refusal:
            return None
        checkpoint, given = self._context.checkpoint, self._parameters.bounded
        began = self._context.clock.steady()
        read = checkpoint.read
        incarnation = _saved(checkpoint).incarnation
        settings = self._settings(incarnation or self._context.clock.now())
        store = BoundedStore(settings, SystemDisk(), self._source.definitions, self._source.transaction_id)
        self._bounded = bounded = BoundedRecovery(
            store, self._context.clock, on=given.on, off_on_failure=given.off_on_failure
        )
        self._say_parameters(settings)
        oldest, current = read.recovery, read.current
        if not isinstance(oldest, LogPosition) or not isinstance(current, LogPosition) or oldest.csn <= begin.value:
            # The group has not run since its start point was set.
            self._event(
                Severity.INFO, "OGG-01635", "Bounded Recovery starts over: this is an initial or altered start point."
            )
            bounded.begin(0)
            self._keep_incarnation(settings.incarnation)
            return None
        recorded = RecoveryRecord(current.csn, oldest.csn, incarnation)
        conditions = RecoveryConditions(given.on, given.reset, settings.identity, settings.fingerprint)
        recovery = bounded.start(recorded, conditions, cache, read.recovery_time)
        if recovery.refusal is RecoveryRefusal.RESET:
            incarnation = self._context.clock.now()
            store.settings = settings._replace(incarnation=incarnation)
        self._keep_incarnation(store.settings.incarnation)
        place = oldest
        if recovery.kind is RecoveryKind.BOUNDED and recovery.manifest is not None:
            place = recovery.manifest.restart_place
        elif recovery.kind is RecoveryKind.NORMAL:
            place = current
        self._say_start(recovery, place, current)
        begin_time = recovery.manifest.restart_time if recovery.manifest else read.recovery_time
        target = current.csn, read.current_time
        self.recovering = RecoveryProgress(recovery, begin_time, target, self._context.clock, began)
        return place

    def opened(self, cache: TransactionCache) -> None:
        """Pass the restored transactions and the pause time to the log, which was just opened."""
        log, recovering = self._source.bounded, self.recovering
        if log is None or self._bounded is None:
            return
        log.pause_time = self._bounded.log_due
        if recovering is None:
            return
        # The log that is read again contains rows of transactions that began before the start position and have ended.
        log.expect_orphaned_rows((recovering.until, 1 << 62))
        recovery = recovering.recovery
        if recovery.manifest is None:
            return
        for item in recovery.manifest.objects:
            if item.xid in cache.open:
                log.resume(item.xid, item.begin_place)

    def turn(self, capture: Capture, save: Callable[[], None]) -> None:
        """Track the progress of the recovery and write a checkpoint if one is due. Called between two reads."""
        log, bounded = self._source.bounded, self._bounded
        if log is None or bounded is None:
            return
        bounded.see(log.first_time)
        recovering = self.recovering
        if recovering is not None and recovering.check(log.state.read, log.time, log.bytes_read):
            code = "OGG-01644" if recovering.recovery.kind is RecoveryKind.BOUNDED else "GGS-00536"
            self._event(Severity.INFO, code, f"Recovery complete: {recovering.words()}.")
        if bounded.due(log.time) and capture.handed_out:
            self._checkpoint(bounded, log, capture, save)
        log.pause_time = bounded.log_due

    def _checkpoint(
        self, bounded: BoundedRecovery, log: BoundedLog, capture: Capture, save: Callable[[], None]
    ) -> None:
        began = self._context.clock.steady()
        save()
        here = log.position(log.state.read)
        place = ManifestPosition(log.state.read, log.cursor, log.time, here, log.begin_of)
        previous = bounded.last
        try:
            made = bounded.checkpoint(capture.cache, place)
        except DiskError as error:
            text = f"The Bounded Recovery checkpoint failed; the previous one stays valid: {error}"
            self._event(Severity.WARNING, "OGG-30471", text)
            return
        self._previous = previous
        start, end = _shown(made.restart_place, made.restart_time), _shown(made.position_place, made.position_time)
        text = f"BOUNDED RECOVERY: CHECKPOINT: CP.{made.group}.{made.number:09d}: start={start}, end={end}"
        self._event(Severity.INFO, "OGG-01738", f"{text}, persisted: {_names(made)}.")
        self._seconds += self._context.clock.steady() - began

    def counts(self) -> dict[str, Any]:
        """Return the counters of BRSTATS since the start; ``microseconds``: the total time spent on checkpoints."""
        counted = self._bounded.counts() if self._bounded is not None else {}
        return {**counted, "microseconds": round(self._seconds * 1e6)}

    def restart_floor(self) -> int | None:
        """Return the lowest position at which a bounded recovery can start reading, or None without a checkpoint."""
        last = self._bounded.last if self._bounded is not None else None
        return last.restart if last is not None else None

    def noted(self, options: GroupOptions, capture: Capture) -> GroupOptions:
        """Return a checkpoint's options with the state of Bounded Recovery."""
        bounded, log = self._bounded, self._source.bounded
        if bounded is None or log is None:
            return options
        return options._replace(bounded=self.state(bounded, log, capture))

    def state(self, bounded: BoundedRecovery, log: BoundedLog, capture: Capture) -> BoundedState:
        """Return the state of Bounded Recovery for the checkpoint file, from which INFO and BR SHOW read it."""
        before = _saved(self._context.checkpoint)
        found = BoundedState(
            incarnation=before.incarnation,
            **bounded.facts(capture.cache, log.time),
            log_time=log.time,
            folder=str(self.folder()),
            recovering=self.recovering.state() if self.recovering is not None else None,
        )
        last, previous = bounded.last, self._previous
        if last is None:
            return found
        dirty = {item.xid for item in capture.cache.open.values() if not bounded.is_saved(item)}
        return found._replace(
            begin=TimedPosition(*last.restart_place, last.restart_time),
            end=TimedPosition(*last.position_place, last.position_time),
            restart_name=last.restart_name,
            previous=TimedPosition(*previous.restart_place, previous.restart_time) if previous else before.previous,
            persisted=tuple(
                PersistedTransaction(item.name, item.begin_time, item.state, item.data, item.written, item.xid in dirty)
                for item in last.objects[:_SHOWN_OBJECTS]
            ),
        )

    def _settings(self, incarnation: int) -> StoreSettings:
        given = self._parameters.bounded
        machine = MachineIdentity(platform.node(), f"{platform.system()} {platform.machine()}", __version__)
        return StoreSettings(
            group=self._context.group,
            folder=self.folder(),
            interval=given.interval,
            identity=machine,
            fingerprint=capture_fingerprint(self._context.home.parameters(self._context.group)),
            incarnation=incarnation,
            keep_stale=given.keep_stale,
            durable=given.durable,
        )

    def _keep_incarnation(self, incarnation: int) -> None:
        """Save the incarnation before anything is read, so that a checkpoint of another incarnation is never used."""
        checkpoint = self._context.checkpoint
        before = _saved(checkpoint)
        if before.incarnation != incarnation:
            options = checkpoint.options._replace(bounded=before._replace(incarnation=incarnation))
            self._context.save(checkpoint._replace(options=options))

    def _say_parameters(self, settings: StoreSettings) -> None:
        given = self._parameters.bounded
        self._context.report.write("\nBounded Recovery Parameter:")
        if not given.on:
            self._context.report.write("BROFF\n")
            return
        interval = interval_text(settings.interval, "HOURS", "MINUTES")
        self._context.report.write(f"BRINTERVAL = {interval}\nBRDIR      = {settings.folder}\n")

    def _say_start(self, recovery: Recovery, place: LogPosition, current: LogPosition) -> None:
        read = self._context.checkpoint.read
        if recovery.failure:
            code = recovery.failure_code
            self._event(
                Severity.WARNING,
                code,
                f"Bounded Recovery is not used: {recovery.failure}. Normal recovery is used instead.",
            )
        elif recovery.refusal is RecoveryRefusal.RESET:
            self._event(Severity.INFO, "OGG-01635", f"Bounded Recovery starts over: {recovery.reason}.")
        self._event(Severity.INFO, "GGS-00540", f"Recovery: {recovery.kind}: {recovery.reason}.")
        if recovery.kind is RecoveryKind.BOUNDED and recovery.manifest is not None:
            found = recovery.manifest
            self._event(
                Severity.INFO, "OGG-01579", f"BOUNDED RECOVERY: VALID BCP: CP.{found.group}.{found.number:09d}."
            )
            self._event(Severity.INFO, "OGG-01629", f"BOUNDED RECOVERY: PERSISTED OBJECTS RECOVERED: {_names(found)}.")
            begin, end = _shown(place, found.restart_time), _shown(current, read.current_time)
            self._event(Severity.INFO, "OGG-01641", f"BOUNDED RECOVERY: recovery start position: {begin}.")
            self._event(Severity.INFO, "OGG-01642", f"BOUNDED RECOVERY: recovery end position: {end}.")

    def _event(self, severity: Severity, code: str, text: str) -> None:
        self._context.report.event(severity, code, text)


def _saved(checkpoint: Checkpoint) -> BoundedState:
    """Return the state in a checkpoint, or an empty one before the first start."""
    return checkpoint.options.bounded or BoundedState()


def _shown(place: LogPosition, time: int) -> str:
    scn = f"{place.csn >> 32}.{place.csn & 0xFFFFFFFF} ({place.csn})"
    when = local_text(time, "%Y-%m-%d %H:%M:%S.%f") if time else "not available"
    return f"SeqNo: {place.sequence}, RBA: {place.rba}, SCN: {scn}, Timestamp: {when}, Thread: {place.thread or 1}"


def _names(found: RecoveryManifest) -> str:
    names = [item.name for item in found.objects[:20]]
    more = f" and {len(found.objects) - 20} more" if len(found.objects) > 20 else ""
    return ", ".join(names) + more if names else "<<NONE>>"


class RecoveryProgress:
    """A recovery from its start position to the position that was reached before (``target``: position and time)."""

    def __init__(
        self, recovery: Recovery, begin_time: int, target: tuple[int, int], clock: Clock, started: float
    ) -> None:
        """``started``: the monotonic time of its start, before data was restored. ``until``: the target's position."""
        self.recovery = recovery
        self._begin_time = begin_time
        self.until, self._target_time = target
        self._clock = clock
        self._started = started
        self._seconds = 0.0
        self._bytes = 0
        self._fraction = 0.0
        self.complete = recovery.position >= self.until

    def check(self, position: int, time: int, bytes_read: int) -> bool:
        """Update the progress; return True if the recovery is now complete."""
        if self.complete:
            return False
        self._bytes = bytes_read
        self._seconds = self._clock.steady() - self._started
        span = self._target_time - self._begin_time
        self._fraction = min(max((time - self._begin_time) / span, 0.0), 1.0) if span > 0 and time else 0.0
        self.complete = position >= self.until
        return self.complete

    def state(self) -> RecoveryState:
        """Return the progress for STATUS, INFO and the report."""
        known = self._fraction > 0
        rest = (1 - self._fraction) / self._fraction if known else 0.0
        return RecoveryState(
            kind=str(self.recovery.kind),
            bounded=self.recovery.kind is RecoveryKind.BOUNDED,
            reason=self.recovery.reason,
            complete=self.complete,
            percent=100 if self.complete else round(100 * self._fraction),
            bytes=self._bytes,
            seconds=self._seconds,
            left_bytes=0 if self.complete else round(self._bytes * rest) if known else None,
            left_seconds=0 if self.complete else self._seconds * rest if known else None,
        )

    def words(self) -> str:
        """Return the progress as one line of text."""
        found = self.state()
        text = f"{found.kind} ({found.reason}), {found.percent} % of the log read again, {found.bytes:,} bytes"
        if found.left_seconds:
            text += f"; about {found.left_bytes:,} bytes and {found.left_seconds:.0f} seconds left"
        return text


class BoundedRequests:
    """Answers the BR requests. ``capture`` returns the current capture, or None while the log is not open."""

    def __init__(
        self,
        context: GroupContext,
        source: SourceDatabase,
        recovery: ExtractRecovery,
        capture: Callable[[], Capture | None],
        checkpoint_seconds: int,
    ) -> None:
        self._context = context
        self._source = source
        self._recovery = recovery
        self._capture = capture
        self._checkpoint_seconds = checkpoint_seconds
        context.verb("BR", self.answer)

    def answer(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Execute one request. Every answer contains the state that BRSTATUS reports."""
        action = str(arguments.get("action", ""))
        bounded, capture, log = self._require()
        if action == "BRINTERVAL":
            bounded.set_interval(self._interval(arguments["interval"]))
        elif action == "BRSTART":
            bounded.turn_on(log.time)
        elif action == "BRSTOP":
            bounded.turn_off()
        elif action == "BRFSOPTION":
            bounded.set_durable(durable=bool(arguments.get("durable")))
        elif action == "BRCHECKPOINT":
            if bounded.status != "ON":
                raise StateError(f"Bounded Recovery is {bounded.status.lower()}.", hint="run BRSTART first")
            bounded.force(self._moment(arguments))
        elif action not in _READ_ONLY:
            raise UsageError(f"{action} is not a valid BR request")
        if action not in _READ_ONLY:
            self._context.report.event(Severity.INFO, "OGG-01021", f"Command received from GGSCI: BR {action}.")
        drawn = self._drawn(capture, log) if action == "BRSHOW" else {}
        return {
            **plain(self._recovery.state(bounded, log, capture)),
            "counts": self._recovery.counts(),
            "now": self._context.clock.now(),
            **drawn,
        }

    def _drawn(self, capture: Capture, log: BoundedLog) -> dict[str, Any]:
        """Return what BR SHOW draws, as of the same time as the other state: the read position and the open transactions."""
        waiting = [item for item in capture.cache.open.values() if item.xid not in capture.cache.decided]
        return {
            "here": [*log.position(log.state.read), log.time],
            "open": [
                [self._source.transaction_id(item.xid), item.begin_time, item.count, *log.begin_of(item)]
                for item in sorted(waiting, key=lambda item: item.begin)
            ],
        }

    def _require(self) -> tuple[BoundedRecovery, Capture, BoundedLog]:
        if self._source.bounded_recovery_refusal:
            raise StateError(
                f"Bounded Recovery does not apply to this source: {self._source.bounded_recovery_refusal}."
            )
        bounded, capture, log = self._recovery.control, self._capture(), self._source.bounded
        if bounded is None or capture is None or log is None:
            raise StateError("the log is not open yet.", hint="repeat the command")
        return bounded, capture, log

    def _interval(self, seconds: float) -> int:
        if not _LEAST <= seconds <= _MOST:
            raise UsageError(f"BRINTERVAL must be between 20M and 96H, not {seconds:g} seconds.")
        return nearest_multiple(round(seconds), self._checkpoint_seconds)

    def _moment(self, arguments: dict[str, Any]) -> int:
        """Return the requested time: now, after an interval, or a timestamp that the shell has parsed."""
        now = self._context.clock.now()
        if "in" in arguments:
            return now + round(float(arguments["in"]) * 1_000_000)
        return int(arguments.get("at") or now)
