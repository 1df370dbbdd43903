"""The cost of heartbeats: low for their own rows, nothing for other rows."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

from batches import Row, Tx, make_batch
from pipeline.heartbeat.deployment_end import CHECKPOINTS, NAMES, DeploymentEnd

from ggshell.clock import SystemClock
from ggshell.connectors.postgres.target import PostgresTarget
from ggshell.pipeline.apply.delivery import Delivery
from ggshell.pipeline.apply.mapping import Mapper, MapRule
from ggshell.pipeline.heartbeat import hops
from ggshell.pipeline.heartbeat.names import HEARTBEAT_COLUMNS
from ggshell.pipeline.heartbeat.row import Beat, layout_of
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.operation import IoType
from ggshell.types import TableName, TrailPosition

SEED = TableDefinition(TableName("s", "gg_heartbeat_seed"), tuple(Column(n, "text") for n in HEARTBEAT_COLUMNS), (0,))
BEATS = 200


def test_a_heartbeat_costs_replicat_less_than_two_milliseconds(south: str, tmp_path: Path) -> None:
    end, layout = DeploymentEnd(south, tmp_path / "south"), layout_of(SEED)
    assert layout is not None
    sent = [layout.encode(Beat("north", number, outgoing_extract="E")) for number in range(1, BEATS + 1)]
    batches = [make_batch([Tx(number, [Row(SEED, IoType.FIELD_COMP, data)])]) for number, data in enumerate(sent, 1)]
    target = PostgresTarget(south, "rep1", "/home", CHECKPOINTS, TrailPosition(0, 0))
    processor = hops.replicat_processor(hops.Receiver("REP1", end.name), SystemClock(), lambda: None, lambda *_: None)
    source = f'"{hops.ARRIVED_NAME.owner}"."{hops.ARRIVED_NAME.name}"'
    with contextlib.closing(target):
        delivery = Delivery(target, Mapper([MapRule(source, str(NAMES.history))], target.describe))
        delivery.start()
        began = time.process_time()
        for batch in batches:
            delivery.feed(processor.stamp_heartbeats(batch))
            delivery.flush()
        cost = (time.process_time() - began) / BEATS
    assert len(end.rows("gg_heartbeat_history")) == BEATS
    assert cost < 0.002


def test_a_batch_of_other_rows_costs_less_than_fifty_microseconds() -> None:
    table = TableDefinition(TableName("shop", "items"), (Column("id", "integer"),), (0,))
    batch = make_batch([Tx(1, [Row(table, IoType.INSERT, b"x" * 20)] * 1000)])
    processor = hops.path_processor("DP1", SystemClock())
    processor.stamp_heartbeats(batch)
    began = time.process_time()
    for _ in range(1000):
        processor.stamp_heartbeats(batch)
    assert (time.process_time() - began) / 1000 < 50e-6
