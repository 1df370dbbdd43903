"""Bounded Recovery in an Extract's process: begins a run with the recovery that is needed, makes checkpoints while it goes on,
and answers SEND EXTRACT … BR.  What is decided and kept stands in ``capture.bounded``."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ggshell import __version__
from ggshell.capture.bounded.control import BoundedRecovery, Started
from ggshell.capture.bounded.disk import SystemDisk
from ggshell.capture.bounded.keeper import MISSING, Keeper, Place, Settings
from ggshell.capture.bounded.manifest import BoundedCheckpoint, Identity
from ggshell.capture.bounded.plan import Conditions, Kind, Recorded, Refusal
from ggshell.capture.cache import TransactionCache
from ggshell.capture.stream import Capture
from ggshell.clock import local_text
from ggshell.errors import DiskError, ParameterError
from ggshell.params.files import ExtractParameters
from ggshell.params.transactions import BoundedParameters, capture_fingerprint
from ggshell.process.lifecycle import GroupContext
from ggshell.process.recovering import Recovering
from ggshell.process.source import BoundedLog, SourceDatabase
from ggshell.store.events import Severity
from ggshell.types import Csn, LogPosition

OPTION = "br"
SHOWN_OBJECTS = 500
"""So many persisted transactions stand in the checkpoint file for INFO; the manifest has them all."""


def refuse_bounded(context: GroupContext, given: BoundedParameters, reason: str) -> None:
    """Raises ParameterError for a BR that asks for something where there is no Bounded Recovery."""
    if given.line and given.on:
        raise ParameterError(
            f"BR is for Oracle redo: {reason}",
            where=f"{context.home.parameters(context.group)}:{given.line}",
            hint="leave the line out",
        )


class ExtractRecovery:
    """One Extract's.  Does nothing for a source that keeps its log for us."""

    def __init__(self, context: GroupContext, parameters: ExtractParameters, source: SourceDatabase) -> None:
        """Raises ParameterError for BR with such a source."""
        self._context = context
        self._parameters = parameters
        self._source = source
        self._bounded: BoundedRecovery | None = None
        self._previous: BoundedCheckpoint | None = None
        self._seconds = 0.0
        self.recovering: Recovering | None = None
        given = parameters.bounded
        if source.unbounded:
            refuse_bounded(context, given, source.unbounded)
        if given.reset and not context.home.by_hand:
            raise ParameterError(
                "BR BRRESET is for one start by hand",
                where=f"{context.home.parameters(context.group)}:{given.line}",
                hint="ggshell extract paramfile FILE reportfile FILE; take it out of the group's own file",
            )

    @property
    def control(self) -> BoundedRecovery | None:
        """What SEND EXTRACT … BR speaks to; None before the first start, and for a source without Bounded Recovery."""
        return self._bounded

    def folder(self) -> Path:
        """Where the group's files are: BR/<GROUP> of the home, or of BRDIR."""
        written = self._parameters.bounded.directory
        root = self._context.home.resolve(written) if written else self._context.home.root
        return (root if root.name == "BR" else root / "BR") / self._context.group

    def start(self, cache: TransactionCache, begin: Csn) -> LogPosition | None:
        """Decide on the recovery, restore what it needs; where to begin to read (None: as the source does by itself)."""
        if self._source.unbounded:
            return None
        checkpoint, given = self._context.checkpoint, self._parameters.bounded
        began = self._context.clock.steady()
        read = checkpoint.read
        incarnation = int(checkpoint.options.get(OPTION, {}).get("incarnation", 0))
        settings = self._settings(incarnation or self._context.clock.now())
        keeper = Keeper(settings, SystemDisk(), self._source.definitions, self._source.transaction_id)
        self._bounded = bounded = BoundedRecovery(
            keeper, self._context.clock, on=given.on, off_on_failure=given.off_on_failure
        )
        self._say_parameters(settings)
        recovery, current = read.recovery, read.current
        if not isinstance(recovery, LogPosition) or not isinstance(current, LogPosition) or recovery.csn <= begin.value:
            # The group has not run since its start point was set.
            self._event(
                Severity.INFO, "OGG-01635", "Bounded Recovery begins anew: this is an initial or altered start point."
            )
            bounded.begin(0)
            self._keep_incarnation(settings.incarnation)
            return None
        recorded = Recorded(current.csn, recovery.csn, incarnation)
        conditions = Conditions(given.on, given.reset, settings.identity, settings.fingerprint)
        started = bounded.start(recorded, conditions, cache, read.recovery_time)
        if started.plan.refusal is Refusal.RESET:
            incarnation = self._context.clock.now()
            keeper.settings = settings._replace(incarnation=incarnation)
        self._keep_incarnation(keeper.settings.incarnation)
        place = recovery
        if started.plan.kind is Kind.BOUNDED and started.plan.checkpoint is not None:
            place = started.plan.checkpoint.restart_place
        elif started.plan.kind is Kind.NORMAL:
            place = current
        self._say_start(started, place, current)
        begin_time = started.plan.checkpoint.restart_time if started.plan.checkpoint else read.recovery_time
        target = current.csn, read.current_time
        self.recovering = Recovering(started.plan, begin_time, target, self._context.clock, began)
        return place

    def opened(self, cache: TransactionCache) -> None:
        """The log is open: tell it what was restored, and where to pause."""
        log, recovering = self._source.bounded, self.recovering
        if log is None or self._bounded is None:
            return
        log.pause_time = self._bounded.log_due
        if recovering is None:
            return
        # What is read again holds rows of transactions that ended before the stop and began before where reading begins.
        log.expect_strangers((recovering.until, 1 << 62))
        plan = recovering.plan
        if plan.checkpoint is None:
            return
        for item in plan.checkpoint.objects:
            if item.xid in cache.open:
                log.resume(item.xid, item.begin_place)

    def turn(self, capture: Capture, save: Callable[[], None]) -> None:
        """Between two readings: note how the recovery goes; make a checkpoint when one is due."""
        log, bounded = self._source.bounded, self._bounded
        if log is None or bounded is None:
            return
        bounded.see(log.first_time)
        recovering = self.recovering
        if recovering is not None and recovering.look(log.state.read, log.time, log.bytes_read):
            code = "OGG-01644" if recovering.plan.kind is Kind.BOUNDED else "GGS-00541"
            self._event(Severity.INFO, code, f"Recovery complete: {recovering.words()}.")
        if bounded.due(log.time) and capture.settled and not log.waiting:
            self._checkpoint(bounded, log, capture, save)
        log.pause_time = bounded.log_due

    def _checkpoint(
        self, bounded: BoundedRecovery, log: BoundedLog, capture: Capture, save: Callable[[], None]
    ) -> None:
        began = self._context.clock.steady()
        save()
        here = log.position(log.state.read)
        place = Place(log.state.read, log.cursor, log.time, log.waiting, here, log.begin_of)
        previous = bounded.last
        try:
            made = bounded.checkpoint(capture.cache, place)
        except DiskError as error:
            text = f"The Bounded Recovery checkpoint failed, the one before stands: {error}"
            self._event(Severity.WARNING, "OGG-30471", text)
            return
        self._previous = previous
        start, end = _shown(made.restart_place, made.restart_time), _shown(made.position_place, made.position_time)
        text = f"BOUNDED RECOVERY: CHECKPOINT: CP.{made.group}.{made.number:09d}: start={start}, end={end}"
        self._event(Severity.INFO, "OGG-01738", f"{text}, persisted: {_names(made)}.")
        self._seconds += self._context.clock.steady() - began

    def counts(self) -> dict[str, Any]:
        """What BRSTATS counts since the start; ``microseconds``: the time of checkpoints, with all that belongs to them."""
        counted = self._bounded.counts() if self._bounded is not None else {}
        return {**counted, "microseconds": round(self._seconds * 1e6)}

    def restart_floor(self) -> int | None:
        """The lowest place that a bounded recovery may begin to read at; None without a checkpoint."""
        last = self._bounded.last if self._bounded is not None else None
        return last.restart if last is not None else None

    def options(self, capture: Capture) -> Mapping[str, Any]:
        """What the checkpoint file tells of Bounded Recovery: INFO and BR SHOW live on it."""
        bounded, log = self._bounded, self._source.bounded
        if bounded is None or log is None:
            return {}
        before = self._context.checkpoint.options.get(OPTION, {})
        last = bounded.last
        found: dict[str, Any] = {
            "incarnation": before.get("incarnation", 0),
            **bounded.facts(capture.cache, log.time),
            "log_time": log.time,
            "folder": str(self.folder()),
            "recovering": dict(self.recovering.facts()) if self.recovering is not None else None,
        }
        if last is None:
            return {OPTION: found}
        previous = self._previous
        found["begin"] = [*last.restart_place, last.restart_time]
        found["end"] = [*last.position_place, last.position_time]
        found["restart_name"] = last.restart_name
        found["previous"] = [*previous.restart_place, previous.restart_time] if previous else before.get("previous")
        dirty = {item.xid for item in capture.cache.open.values() if not bounded.is_saved(item)}
        found["persisted"] = [
            [item.name, item.begin_time, item.state, item.data, item.written, item.xid in dirty]
            for item in last.objects[:SHOWN_OBJECTS]
        ]
        return {OPTION: found}

    def _settings(self, incarnation: int) -> Settings:
        given = self._parameters.bounded
        machine = Identity(platform.node(), f"{platform.system()} {platform.machine()}", __version__)
        return Settings(
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
        """Durable before anything is read: a checkpoint of another life is never used."""
        checkpoint = self._context.checkpoint
        before = checkpoint.options.get(OPTION, {})
        if before.get("incarnation") != incarnation:
            options = {**checkpoint.options, OPTION: {**before, "incarnation": incarnation}}
            self._context.save(checkpoint._replace(options=options))

    def _say_parameters(self, settings: Settings) -> None:
        given = self._parameters.bounded
        self._context.report.write("\nBounded Recovery Parameter:")
        if not given.on:
            self._context.report.write("BROFF\n")
            return
        hours, rest = divmod(settings.interval, 3600)
        interval = f"{hours}HOURS" if not rest else f"{settings.interval / 60:g}MINUTES"
        self._context.report.write(f"BRINTERVAL = {interval}\nBRDIR      = {settings.folder}\n")

    def _say_start(self, started: Started, place: LogPosition, current: LogPosition) -> None:
        plan, read = started.plan, self._context.checkpoint.read
        if started.failure:
            code = MISSING if "is missing" in started.failure else "OGG-30469"
            self._event(
                Severity.WARNING, code, f"Bounded Recovery is not used: {started.failure}; normal recovery instead."
            )
        elif plan.refusal is Refusal.RESET:
            self._event(Severity.INFO, "OGG-01635", f"Bounded Recovery begins anew: {plan.reason}.")
        self._event(Severity.INFO, "GGS-00540", f"Recovery: {plan.kind}: {plan.reason}.")
        if plan.kind is Kind.BOUNDED and plan.checkpoint is not None:
            found = plan.checkpoint
            self._event(
                Severity.INFO, "OGG-01579", f"BOUNDED RECOVERY: VALID BCP: CP.{found.group}.{found.number:09d}."
            )
            self._event(Severity.INFO, "OGG-01629", f"BOUNDED RECOVERY: PERSISTED OBJECTS RECOVERED: {_names(found)}.")
            begin, end = _shown(place, found.restart_time), _shown(current, read.current_time)
            self._event(Severity.INFO, "OGG-01641", f"BOUNDED RECOVERY: recovery start position: {begin}.")
            self._event(Severity.INFO, "OGG-01642", f"BOUNDED RECOVERY: recovery end position: {end}.")

    def _event(self, severity: Severity, code: str, text: str) -> None:
        self._context.report.event(severity, code, text)


def _shown(place: LogPosition, time: int) -> str:
    scn = f"{place.csn >> 32}.{place.csn & 0xFFFFFFFF} ({place.csn})"
    when = local_text(time, "%Y-%m-%d %H:%M:%S.%f") if time else "not available"
    return f"SeqNo: {place.sequence}, RBA: {place.rba}, SCN: {scn}, Timestamp: {when}, Thread: {place.thread or 1}"


def _names(found: BoundedCheckpoint) -> str:
    names = [item.name for item in found.objects[:20]]
    more = f" and {len(found.objects) - 20} more" if len(found.objects) > 20 else ""
    return ", ".join(names) + more if names else "<<NONE>>"
