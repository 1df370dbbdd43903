"""Heartbeats in Extract, pump, path and Replicat: creates each process's processor from its settings."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from ggshell.errors import DiskError
from ggshell.groups.heartbeat_settings import HeartbeatSettings, load_heartbeats
from ggshell.groups.lifecycle import GroupContext
from ggshell.home.checkpoint import GroupKind
from ggshell.home.events import Severity
from ggshell.monitoring.heartbeat_lag import negative_parts, parts_of
from ggshell.monitoring.lag_archive import LagArchive, lag_folder
from ggshell.pipeline.apply.mapping import MapRule
from ggshell.pipeline.apply.target import CheckpointRow, Target
from ggshell.pipeline.heartbeat import hops
from ggshell.pipeline.heartbeat.processor import DROPPED, OWNER, HeartbeatProcessor
from ggshell.pipeline.heartbeat.row import Beat
from ggshell.record.change import ChangeBatch
from ggshell.record.transaction import TransactionHeader
from ggshell.types import Csn, TableName, quote_table


def _set_apart(context: GroupContext, processor: HeartbeatProcessor) -> None:
    context.statistics.set_apart(lambda name: name in processor.names or name.owner == OWNER)


def extract_heartbeats(
    context: GroupContext, restart_time: Callable[[TransactionHeader], int]
) -> tuple[HeartbeatProcessor, frozenset[TableName]]:
    """Return an Extract's processor, and the tables that a TABLE line never selects."""
    settings = load_heartbeats(context.home, context.home.parameters(context.group), "Extract")
    names = settings.names
    if not settings.enabled:
        return HeartbeatProcessor(hops.drop), names.captured | names.kept if names is not None else frozenset()
    processor = hops.extract_processor(context.group, context.clock, names, restart_time)
    _set_apart(context, processor)
    return processor, names.kept if names is not None else frozenset()


def path_heartbeats(context: GroupContext) -> HeartbeatProcessor:
    """Return the processor of a pump or a path."""
    own = context.home.parameters(context.group) if context.type is GroupKind.EXTRACT else None
    if not load_heartbeats(context.home, own, "Extract").enabled:
        return HeartbeatProcessor(hops.drop)
    processor = hops.path_processor(context.group, context.clock)
    _set_apart(context, processor)
    return processor


class ReplicatHeartbeats:
    """A Replicat's processor, with warnings about heartbeats that are dropped and clocks that differ.

    With LAGARCHIVE it archives each heartbeat whose commit the target has confirmed, with the time of the confirmation.
    """

    def __init__(self, context: GroupContext, settings: HeartbeatSettings) -> None:
        self._context = context
        self._settings = settings
        self._archive = _archive(context) if settings.archive else None
        self._waiting: deque[tuple[Csn, Beat]] = deque()
        self._reported: set[str] = set()
        self._database = ""
        self._applied: CheckpointRow | None = None
        self.processor = hops.dropping_processor(self._refuse)
        self._lag_stats = settings.lag_stats
        context.statistics.lag_stats = settings.lag_stats

    def open(self, target: Target, database: str) -> None:
        """Start delivering heartbeats if the target has the heartbeat objects."""
        self._waiting.clear()
        if self._lag_stats is not None:
            self._lag_stats.forget()
        self._database = database
        names = self._settings.names
        self.processor = hops.dropping_processor(self._refuse)
        if not self._settings.enabled or names is None or target.describe(names.history) is None:
            return
        receiver = hops.Receiver(self._context.group, database)
        self.processor = hops.replicat_processor(receiver, self._context.clock, self._low_watermark, self._heard)
        _set_apart(self._context, self.processor)

    @property
    def rules(self) -> list[MapRule]:
        """The automatic mapping of heartbeats to the history table."""
        names = self._settings.names
        if names is None:
            return []
        source = f'"{hops.ARRIVED_NAME.owner}"."{hops.ARRIVED_NAME.name}"'
        return [MapRule(source, quote_table(names.history))]

    @property
    def excludes(self) -> tuple[str, ...]:
        """The tables that no MAP line may select."""
        return (quote_table(DROPPED.name),)

    def stamp(self, batch: ChangeBatch) -> ChangeBatch:
        if self._lag_stats is not None:
            self._lag_stats.fed(batch)
        return self.processor.stamp_heartbeats(batch)

    def applied(self, row: CheckpointRow | None) -> None:
        """Process the heartbeats up to ``row``: the target has confirmed everything up to there."""
        moved, self._applied = row is not self._applied, row
        if self._lag_stats is not None and moved and row is not None:
            self._lag_stats.applied(row.csn, self._context.clock.now())
        if row is None or row.csn is None:
            return
        while self._waiting and self._waiting[0][0] <= row.csn:
            _, beat = self._waiting.popleft()
            received = self._context.clock.now()
            self._look_at_clocks(beat, received)
            if self._archive is not None:
                self._archive.add(beat, received)
        if self._archive is not None and self._archive.due():
            self._write_archive(self._archive)

    def close(self) -> None:
        """Write the remaining rows of the archive before the process ends."""
        if self._archive is not None:
            self._write_archive(self._archive)

    def _write_archive(self, archive: LagArchive) -> None:
        """Write the archive; a full disk is reported but does not stop Replicat."""
        try:
            archive.write()
        except DiskError as error:
            self._warn(error.code, f"{error} Heartbeats are missing from it.")

    def _low_watermark(self) -> Csn | None:
        return self._applied.csn if self._applied is not None else None

    def _heard(self, beat: Beat, header: TransactionHeader) -> None:
        self._waiting.append((header.csn, beat))
        if beat.remote_database == self._database:
            self._warn(
                "GGS-00651",
                f"The source and target databases are both named {self._database}: heartbeats cannot identify the return path,"
                " so the OUTGOING columns remain empty.",
            )

    def _refuse(self, *_: object) -> Beat | None:
        if self._settings.enabled:
            names = self._settings.names
            what = f"the target has no {names.history}" if names is not None else "GLOBALS does not contain GGSCHEMA"
            self._warn("OGG-02735", f"Received heartbeats are discarded: {what}.")
        return None

    def _look_at_clocks(self, beat: Beat, received: int) -> None:
        wrong = negative_parts(parts_of(beat, received))
        if wrong:
            differences = ", ".join(f"{name} {seconds:.6f} s" for name, seconds in wrong)
            self._warn(
                "GGS-00652",
                f"A heartbeat of {beat.remote_database} shows a negative lag ({differences}): the hosts' clocks differ.",
                key=f"{beat.remote_database} {[name for name, _ in wrong]}",
            )

    def _warn(self, code: str, text: str, key: str = "") -> None:
        """Report a warning once, even if it applies to every heartbeat."""
        if (key or code) not in self._reported:
            self._reported.add(key or code)
            self._context.report.event(Severity.WARNING, code, text)


def _archive(context: GroupContext) -> LagArchive:
    return LagArchive(lag_folder(context.home), context.group, context.clock)
