"""The whole path of a heartbeat in one process: real databases and trails, and a separate clock at each hop."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ggshell.clock import FakeClock, SystemClock
from ggshell.connectors.heartbeat_tables import HeartbeatTableSettings
from ggshell.connectors.postgres import heartbeat, session, slot
from ggshell.connectors.postgres.checkpoint_sql import PostgresCheckpointTables
from ggshell.connectors.postgres.log import CapturedRows, PostgresLog, SlotStart
from ggshell.connectors.postgres.target import PostgresTarget
from ggshell.pipeline.apply.delivery import Delivery
from ggshell.pipeline.apply.mapping import Mapper, MapRule
from ggshell.pipeline.capture.cache import TransactionCache
from ggshell.pipeline.capture.stream import Capture
from ggshell.pipeline.heartbeat import hops
from ggshell.pipeline.heartbeat.names import HeartbeatNames
from ggshell.pipeline.heartbeat.processor import HeartbeatProcessor
from ggshell.pipeline.heartbeat.row import time_text
from ggshell.pipeline.transform.selection import Selection
from ggshell.record.change import ChangeBatch
from ggshell.record.transaction import Completed
from ggshell.trail.fileheader import Producer
from ggshell.trail.name import TrailName
from ggshell.trail.reader import TrailReader
from ggshell.trail.writer import TrailWriter
from ggshell.types import Csn, TableName, TrailPosition

NAMES = HeartbeatNames("ggadmin")
CHECKPOINTS = TableName("ggadmin", "checks")


class Hop(NamedTuple):
    """A process by its name and the time of its host, in microseconds since 1970."""

    name: str
    time: int


class DeploymentEnd:
    """A database with heartbeat tables, the slot of its Extract, and its Replicat."""

    def __init__(self, dsn: str, folder: Path) -> None:
        self.dsn, self.folder = dsn, folder
        folder.mkdir()
        with session.connect(dsn) as connection:
            connection.execute("CREATE SCHEMA ggadmin")
            heartbeat.add(connection, NAMES, HeartbeatTableSettings())
            PostgresCheckpointTables(connection).create(CHECKPOINTS)
            self.name = connection.info.dbname
            self._start = slot.register(connection, self.name)
            self._after = Csn(0)
        self._trails = 0

    def sql(self, statement: str) -> list[dict[str, Any]]:
        with session.connect(self.dsn) as connection:
            cursor = connection.execute(statement)
            heads = [column.name for column in cursor.description or ()]
            return [dict(zip(heads, row, strict=True)) for row in cursor.fetchall()] if heads else []

    def rows(self, table: str) -> list[dict[str, Any]]:
        return self.sql(f"SELECT * FROM ggadmin.{table}")

    def send_heartbeat(self, moment: int) -> None:
        """What the scheduled job does, at a time chosen by the test."""
        for table in ("gg_heartbeat_seed", "gg_heartbeat"):
            self.sql(f"UPDATE ggadmin.{table} SET heartbeat_timestamp = '{time_text(moment)}'")

    def extracted(self, hop: Hop) -> list[ChangeBatch]:
        """The rows that Extract writes since the last call."""
        processor = hops.extract_processor(hop.name, FakeClock(hop.time), NAMES, lambda header: header.commit_time)
        wanted = processor.wanting(lambda _: False)
        with session.connect(self.dsn) as connection:
            end = session.current_position(connection)[0]
        log = PostgresLog.open(
            self.dsn, SlotStart(slot.slot_name(self.name), self._start), CapturedRows(wanted), SystemClock()
        )
        capture = Capture(log, TransactionCache(1 << 20, self.folder), Completed(self._after))
        selection, found = Selection(wanted), list[ChangeBatch]()
        with contextlib.closing(capture):
            while capture.state.safe < end:
                batch = capture.read(0.2)
                if batch is not None:
                    self._after = batch.pieces[-1].header.csn
                    found += selection.select(processor.stamp_heartbeats(batch))
            self._start = capture.state.safe
            capture.confirm(self._start)
        return found

    def receive(self, batches: Sequence[ChangeBatch], hop: Hop) -> None:
        """Apply batches as Replicat does."""
        target = PostgresTarget(self.dsn, hop.name, "/home", CHECKPOINTS, TrailPosition(0, 0))
        receiver = hops.Receiver(hop.name, target.database)
        processor = hops.replicat_processor(receiver, FakeClock(hop.time), lambda: Csn(0x123), lambda *_: None)
        source = f'"{hops.ARRIVED_NAME.owner}"."{hops.ARRIVED_NAME.name}"'
        mapper = Mapper([MapRule(source, str(NAMES.history))], target.describe)
        with contextlib.closing(target):
            delivery = Delivery(target, mapper)
            delivery.start()
            for batch in batches:
                delivery.feed(processor.stamp_heartbeats(batch))
            delivery.flush()

    def through_trail(self, batches: Sequence[ChangeBatch]) -> list[ChangeBatch]:
        """Write a trail and read it."""
        self._trails += 1
        name = TrailName.parse(f"./t{self._trails}", self.folder)
        writer = TrailWriter.open(name, clock=FakeClock(), producer=Producer("X", "X"), max_bytes=1 << 20)
        for batch in batches:
            writer.write(batch)
        writer.flush()
        writer.close()
        with contextlib.closing(TrailReader(name)) as reader:
            return list(iter(reader.read, None))


def forwarded(batches: Sequence[ChangeBatch], hop: Hop) -> list[ChangeBatch]:
    """The rows that a distribution path forwards."""
    processor: HeartbeatProcessor = hops.path_processor(hop.name, FakeClock(hop.time))
    selection = Selection(processor.wanting(lambda _: False))
    return [part for batch in batches for part in selection.select(processor.stamp_heartbeats(batch))]


def replicate(source: DeploymentEnd, target: DeploymentEnd, extract: Hop, paths: Sequence[Hop], replicat: Hop) -> None:
    """Everything new in a source, all the way to a target."""
    batches = source.through_trail(source.extracted(extract))
    for path in paths:
        batches = source.through_trail(forwarded(batches, path))
    target.receive(batches, replicat)
