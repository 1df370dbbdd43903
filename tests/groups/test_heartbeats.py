"""What a Replicat reports about heartbeats that it cannot fully use."""

from __future__ import annotations

from typing import Any

from batches import Row, Tx, make_batch

from ggshell.clock import FakeClock
from ggshell.groups.heartbeat_settings import HeartbeatSettings
from ggshell.groups.heartbeats import ReplicatHeartbeats
from ggshell.groups.statistics import Statistics
from ggshell.pipeline.heartbeat.names import HEARTBEAT_COLUMNS, HeartbeatNames
from ggshell.pipeline.heartbeat.row import Beat, layout_of
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.operation import IoType
from ggshell.types import TableName

SEED = TableDefinition(TableName("s", "gg_heartbeat_seed"), tuple(Column(n, "text") for n in HEARTBEAT_COLUMNS), (0,))


class FakeContext:
    """A group context that keeps the messages of its report."""

    group = "REP1"

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.statistics = Statistics(self.clock)
        self.messages: list[str] = []
        self.report = self

    def event(self, _: object, code: str, text: str) -> None:
        self.messages.append(f"{code} {text}")


class FakeTarget:
    """A target that has every table."""

    def describe(self, table: TableName) -> TableName:
        return table


def heartbeats(count: int) -> Any:
    layout = layout_of(SEED)
    assert layout is not None
    data = layout.encode(Beat("shop", 1, outgoing_extract="E"))
    return make_batch([Tx(number, [Row(SEED, IoType.FIELD_COMP, data)]) for number in range(1, count + 1)])


def test_databases_with_the_same_name_are_reported_once() -> None:
    context: Any = FakeContext()
    target: Any = FakeTarget()
    replicat = ReplicatHeartbeats(context, HeartbeatSettings(HeartbeatNames("ggadmin")))
    replicat.open(target, "shop")
    replicat.stamp(heartbeats(3))
    assert [text.split()[0] for text in context.messages] == ["GGS-00651"]
    assert "remain empty" in context.messages[0]


def test_heartbeats_without_a_target_table_are_reported_once() -> None:
    context: Any = FakeContext()
    target: Any = FakeTarget()
    replicat = ReplicatHeartbeats(context, HeartbeatSettings())
    replicat.open(target, "south")
    batch = replicat.stamp(heartbeats(3))
    assert {batch.tables[int(number)].name.name for number in batch.table} == {"nowhere"}
    assert [text.split()[0] for text in context.messages] == ["OGG-02735"]
