"""An Extract in one process: the real capture and Bounded Recovery between a log in a list, a trail and a disk that crash.

Its steps are those of the real one, in the same order: rows to the trail, sync of the trail, then the checkpoint, then the
checkpoint of Bounded Recovery. ``Machine`` contains everything that survives a crash.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from pipeline.capture.crashing_disk import CrashingDisk, Fuse
from pipeline.capture.list_log import Entry, ListSource, PlainDefinitions, name_of

from ggshell.clock import FakeClock
from ggshell.errors import DiskError
from ggshell.pipeline.capture.bounded.manifest import MachineIdentity
from ggshell.pipeline.capture.bounded.recovery import (
    BoundedRecovery,
    Recovery,
    RecoveryConditions,
    RecoveryRecord,
)
from ggshell.pipeline.capture.bounded.store import BoundedStore, ManifestPosition, StoreSettings
from ggshell.pipeline.capture.cache import TransactionCache
from ggshell.pipeline.capture.decisions import Action, Decision
from ggshell.pipeline.capture.stream import Capture
from ggshell.record.change import ChangeBatch
from ggshell.record.transaction import Completed
from ggshell.types import Csn, CsnForm

HERE = MachineIdentity("north", "Linux", "1")
NEW = RecoveryRecord(0, 0, 1)
SAME = RecoveryConditions(True, False, HERE, "same")
FOLDER = Path("/BR/EXT1")


class Written(NamedTuple):
    """A transaction in the trail."""

    csn: int
    name: str
    rows: tuple[bytes, ...]


@dataclass
class Machine:
    """What a crash leaves: disk, checkpoint, durable trail; and the notes of an observer."""

    spill: Path
    interval: int = 1200
    fuse: Fuse = field(default_factory=Fuse)
    log: list[Entry] = field(default_factory=list)
    purged: int = 0
    recorded: RecoveryRecord = NEW
    decisions: tuple[Decision, ...] = ()
    made: list[Decision] = field(default_factory=list)
    trail: list[Written] = field(default_factory=list)
    conditions: RecoveryConditions = SAME
    off_on_failure: bool = False
    step_records: int = 3
    reached: int = 0
    purge: bool = True
    clock: FakeClock = field(default_factory=FakeClock)

    def __post_init__(self) -> None:
        self.disk = CrashingDisk(self.fuse)

    def step(self) -> None:
        """A possible crash outside the disk of Bounded Recovery, which alone can fail without ending the Extract."""
        if not self.fuse.error:
            self.fuse.step()

    def store(self) -> BoundedStore:
        conditions = self.conditions
        settings = StoreSettings(
            *("EXT1", FOLDER, self.interval, conditions.identity, conditions.fingerprint, self.recorded.incarnation),
            part_bytes=40,
        )
        return BoundedStore(settings, self.disk, PlainDefinitions(), name_of)


class SmallExtract:
    """One run."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.cache = TransactionCache(2_000, machine.spill)
        for decision in machine.decisions:
            self.cache.decide(decision)
        self.bounded = BoundedRecovery(machine.store(), machine.clock, off_on_failure=machine.off_on_failure)
        begin = next((e.time for e in machine.log if e.position >= machine.recorded.recovery), 0)
        self.started: Recovery = self.bounded.start(machine.recorded, machine.conditions, self.cache, begin)
        self.source = ListSource(machine.log, self.started.position, machine.purged, step=machine.step_records)
        after = machine.trail[-1].csn if machine.trail else 0
        self.capture = Capture(self.source, self.cache, Completed(Csn(after, CsnForm.NUMBER)))
        self._volatile: list[Written] = []
        self._open: Written | None = None

    @property
    def log_time(self) -> int:
        return self.source.time

    def turn(self) -> bool:
        """Read once, write, and make a checkpoint when due; False at the end of the log."""
        batch = self.capture.read()
        self.machine.reached = max(self.machine.reached, self.log_time)
        if batch is not None:
            self.machine.step()
            self._write(batch)
        if self.capture.handed_out and self.bounded.due(self.log_time):
            self.checkpoint()
        return batch is not None or self.source.more or not self.capture.handed_out

    def checkpoint(self) -> None:
        self.save()
        try:
            made = self.bounded.checkpoint(
                self.cache, ManifestPosition(self.source.state.read, self.source.cursor, self.log_time)
            )
        except DiskError:
            return
        if self.machine.purge:
            self.machine.purged = min(max(self.machine.purged, made.restart), self.machine.recorded.position)

    def save(self) -> None:
        """Sync the trail, then save the checkpoint; each is atomic."""
        machine = self.machine
        machine.step()
        machine.trail += self._volatile
        self._volatile = []
        machine.step()
        state, oldest = self.capture.state, self.capture.restart()
        recovery = oldest.begin if oldest is not None else state.read
        last = self.bounded.last
        restart = min(recovery, last.restart) if last is not None else recovery
        machine.decisions = tuple(self.cache.decisions(state.read, restart, handed_out=self.capture.handed_out))
        # While a recovery reads part of the log again, the position already reached remains valid.
        position = max(state.read, machine.recorded.position)
        machine.recorded = RecoveryRecord(position, recovery, machine.recorded.incarnation)

    def decide(self, action: Action, number: int) -> None:
        """SKIPTRANS or FORCETRANS of an open transaction: the decision is made durable, then carried out."""
        found = sorted(self.cache.unfinished(), key=lambda item: item.begin)
        if not found or not self.capture.past_written:
            return
        chosen = found[number % len(found)]
        if chosen.until is not None:
            return
        self.save()
        until, csn = max(self.source.cursor, chosen.held), Csn(self.source.scn - 1, CsnForm.NUMBER)
        if action is Action.FORCE and csn <= self.capture.latest:
            return  # Until the log has advanced.
        decision = Decision(action, chosen.xid, name_of(chosen.xid), chosen.begin, until, csn, self.log_time)
        self.machine.step()
        self.machine.decisions = (*self.machine.decisions, decision)
        self.machine.made.append(decision)
        self.machine.step()
        self.cache.decide(decision)

    def _write(self, batch: ChangeBatch) -> None:
        """Write rows to the trail; a transaction counts when its last row is written."""
        for piece in batch.pieces:
            span = range(piece.first, piece.first + piece.count)
            rows = tuple(bytes(batch.buffer[batch.start[n] : batch.start[n] + batch.length[n]]) for n in span)
            assert (self._open is None) == piece.begins
            before = () if self._open is None else self._open.rows
            self._open = Written(piece.header.csn.value, piece.header.xid, before + rows)
            if piece.ends:
                self._volatile.append(self._open)
                self._open = None


def expected(log: list[Entry], made: list[Decision]) -> list[Written]:
    """The expected content of the trail: an oracle that knows the log and the decisions, but not the implementation."""
    decided = {item.xid: item for item in made}
    found: list[Written] = []
    rows: dict[int, list[bytes]] = {}
    waiting = sorted((item for item in made if item.action is Action.FORCE), key=lambda item: item.until)
    for entry in [*log, Entry(1 << 60, 0, "", 0)]:
        while waiting and waiting[0].until < (entry.position, 0):
            item = waiting.pop(0)
            if rows.get(item.xid):
                found.append(Written(item.csn.value, item.name, tuple(rows[item.xid])))
        if entry.kind == "C":
            rows.setdefault(entry.xid, []).append(entry.content)
        elif entry.kind == "U":
            rows[entry.xid].pop()
        elif entry.kind == "K" and entry.xid not in decided and rows.get(entry.xid):
            found.append(Written(entry.csn, name_of(entry.xid), tuple(rows[entry.xid])))
    return found


def crash(machine: Machine, seed: int) -> None:
    """The machine crashes: whatever was not durable survives only by chance."""
    machine.disk.crash(random.Random(seed))
