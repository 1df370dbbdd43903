"""Heartbeats in Extract, pump, path and Replicat: what the files say of them, and each process's courier."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from ggshell.apply.mapping import MapRule
from ggshell.apply.target import CheckpointRow, Target
from ggshell.errors import DiskError
from ggshell.heartbeat import hops
from ggshell.heartbeat.courier import NOWHERE, OWNER, Courier
from ggshell.heartbeat.lag import negative_parts, parts_of
from ggshell.heartbeat.row import Beat
from ggshell.process.heartbeat_settings import HeartbeatSettings, load_heartbeats
from ggshell.process.lag_archive import LagArchive, lag_folder
from ggshell.process.lifecycle import GroupContext
from ggshell.record.change import ChangeBatch
from ggshell.record.transaction import TransactionHeader
from ggshell.store.checkpoint import GroupType
from ggshell.store.events import Severity
from ggshell.types import Csn, TableName


def _set_apart(context: GroupContext, courier: Courier) -> None:
    context.statistics.set_apart(lambda name: name in courier.names or name.owner == OWNER)


def extract_heartbeats(
    context: GroupContext, restart_time: Callable[[TransactionHeader], int]
) -> tuple[Courier, frozenset[TableName]]:
    """An Extract's courier, and the tables that no TABLE line may take."""
    settings = load_heartbeats(context.home, context.home.parameters(context.group), "Extract")
    names = settings.names
    if not settings.enabled:
        return Courier(hops.drop), names.captured | names.kept if names is not None else frozenset()
    courier = hops.extract_courier(context.group, context.clock, names, restart_time)
    _set_apart(context, courier)
    return courier, names.kept if names is not None else frozenset()


def path_heartbeats(context: GroupContext) -> Courier:
    """A pump's or a path's courier."""
    own = context.home.parameters(context.group) if context.type is GroupType.EXTRACT else None
    if not load_heartbeats(context.home, own, "Extract").enabled:
        return Courier(hops.drop)
    courier = hops.path_courier(context.group, context.clock)
    _set_apart(context, courier)
    return courier


class ReplicatHeartbeats:
    """A Replicat's courier, with what it tells: heartbeats that nothing can take in, clocks that disagree.

    With LAGARCHIVE it keeps each heartbeat whose commit the target has confirmed, with the moment of that.
    """

    def __init__(self, context: GroupContext, settings: HeartbeatSettings) -> None:
        self._context = context
        self._settings = settings
        self._archive = _archive(context) if settings.archive else None
        self._waiting: deque[tuple[Csn, Beat]] = deque()
        self._told: set[str] = set()
        self._database = ""
        self._applied: CheckpointRow | None = None
        self.courier = hops.deaf_courier(self._refuse)
        self._lag_stats = settings.lag_stats
        context.statistics.lag_stats = settings.lag_stats

    def open(self, target: Target, database: str) -> None:
        """Take part if the target has the objects."""
        self._waiting.clear()
        if self._lag_stats is not None:
            self._lag_stats.forget()
        self._database = database
        names = self._settings.names
        self.courier = hops.deaf_courier(self._refuse)
        if not self._settings.enabled or names is None or target.describe(names.history) is None:
            return
        receiver = hops.Receiver(self._context.group, database)
        self.courier = hops.replicat_courier(receiver, self._context.clock, self._low_watermark, self._heard)
        _set_apart(self._context, self.courier)

    @property
    def rules(self) -> list[MapRule]:
        """The automatic mapping."""
        names = self._settings.names
        if names is None:
            return []
        source = f'"{hops.ARRIVED_NAME.owner}"."{hops.ARRIVED_NAME.name}"'
        return [MapRule(source, _quoted(names.history))]

    @property
    def excludes(self) -> tuple[str, ...]:
        """What no MAP line may take."""
        return (_quoted(NOWHERE.name),)

    def carry(self, batch: ChangeBatch) -> ChangeBatch:
        if self._lag_stats is not None:
            self._lag_stats.fed(batch)
        return self.courier.carry(batch)

    def applied(self, row: CheckpointRow | None) -> None:
        """The target has confirmed everything up to here."""
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
        """The process ends: nothing may be left unwritten."""
        if self._archive is not None:
            self._write_archive(self._archive)

    def _write_archive(self, archive: LagArchive) -> None:
        """A full disk does not keep Replicat from applying."""
        try:
            archive.write()
        except DiskError as error:
            self._warn(error.code, f"{error} Heartbeats are missing in it.")

    def _low_watermark(self) -> Csn | None:
        return self._applied.csn if self._applied is not None else None

    def _heard(self, beat: Beat, header: TransactionHeader) -> None:
        self._waiting.append((header.csn, beat))
        if beat.remote_database == self._database:
            self._warn(
                "GGS-00651",
                f"Source and target databases are both called {self._database}: heartbeats cannot tell the way back, so the"
                " OUTGOING columns stay empty.",
            )

    def _refuse(self, *_: object) -> Beat | None:
        if self._settings.enabled:
            names = self._settings.names
            what = f"the target has no {names.history}" if names is not None else "GLOBALS names no GGSCHEMA"
            self._warn("OGG-02735", f"Heartbeats that come are dropped: {what}.")
        return None

    def _look_at_clocks(self, beat: Beat, received: int) -> None:
        wrong = negative_parts(parts_of(beat, received))
        if wrong:
            told = ", ".join(f"{name} {seconds:.6f} s" for name, seconds in wrong)
            self._warn(
                "GGS-00652",
                f"A heartbeat of {beat.remote_database} shows a negative lag ({told}): the hosts' clocks differ.",
                key=f"{beat.remote_database} {[name for name, _ in wrong]}",
            )

    def _warn(self, code: str, text: str, key: str = "") -> None:
        """What is wrong with every heartbeat is told once."""
        if (key or code) not in self._told:
            self._told.add(key or code)
            self._context.report.event(Severity.WARNING, code, text)


def _archive(context: GroupContext) -> LagArchive:
    return LagArchive(lag_folder(context.home), context.group, context.clock)


def _quoted(name: TableName) -> str:
    return ".".join('"' + part.replace('"', '""') + '"' for part in name)
