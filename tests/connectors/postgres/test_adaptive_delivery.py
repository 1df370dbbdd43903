"""A parallel Replicat that changes between one connection and several appliers: every transaction exactly once, whatever
happens."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from batches import Row, Tx
from pipeline.apply.hand_made import BEGIN, CHECKPOINTS, T, batches_after, delete, image, insert, key_update, trail

from ggshell.clock import FakeClock
from ggshell.connectors.postgres import session
from ggshell.connectors.postgres.appliers import WatermarkTarget, open_applier, open_target
from ggshell.connectors.target_setup import TargetSetup
from ggshell.home.checkpoint import ReplicatKind
from ggshell.pipeline.apply.adaptive import AdaptiveDelivery
from ggshell.pipeline.apply.applier import Answers, NamingApplier
from ggshell.pipeline.apply.ddl_barrier import DdlBarrier
from ggshell.pipeline.apply.delivery import Delivery
from ggshell.pipeline.apply.mapping import Mapper, MapRule
from ggshell.pipeline.apply.parallel import ParallelDelivery
from ggshell.pipeline.apply.parallelism import ParallelismChoice
from ggshell.pipeline.apply.responses import Responses
from ggshell.pipeline.apply.target import CheckpointRow
from ggshell.record.change import ChangeBatch
from ggshell.record.operation import IoType

pytestmark = pytest.mark.usefixtures("replicats")


class Changing(ParallelismChoice):
    """Changes the way at random."""

    def __init__(self, chance: random.Random, *, several: bool) -> None:
        super().__init__(FakeClock(), several=several)
        self.chance = chance
        self.changes = 0

    def applied(self, operations: int) -> None:
        if self.chance.random() < 0.3:
            self.several = not self.several
            self.changes += 1


class Replicat:
    """One process: its connections and its delivery."""

    def __init__(self, dsn: str, chance: random.Random) -> None:
        self.clock = FakeClock()
        begin = CheckpointRow(BEGIN, None)
        setup = TargetSetup(dsn, "REP1", Path("/home"), ReplicatKind.PARALLEL, CHECKPOINTS, begin, 7, self.clock)
        target = open_target(setup)
        assert isinstance(target, WatermarkTarget)
        self.target = target
        mapper = Mapper((MapRule("hr.*", "public.*"),), target.describe)
        row, ids, sequences = target.start()
        numbers = itertools.count(max(sequences, default=0) + 1)
        own = Delivery(target, mapper, position=row, group_operations=7)

        def opened(row: CheckpointRow, ids: Sequence[str] = (), sequences: Sequence[int] = ()) -> ParallelDelivery:
            answers, appliers = Answers(), []
            for number in range(3):
                applying = open_applier(setup, number, numbers, None)
                inner = Delivery(applying, mapper, position=row, group_operations=3, applier=True)
                appliers.append(NamingApplier(number, applying, inner, answers))
            for applier in appliers:
                applier.start()
            barrier = DdlBarrier(own, appliers, Responses().whole)
            return ParallelDelivery(appliers, answers, mapper, (row, ids, sequences), barrier, target.save)

        first = opened(row, ids, sequences) if ids else None
        self.choice = Changing(chance, several=first is not None)
        self.delivery = AdaptiveDelivery(own, opened, self.choice, self.clock, first)

    def end(self) -> None:
        self.delivery.end()
        self.target.close()


def transactions(chance: random.Random, count: int) -> tuple[list[Tx], dict[str, tuple[str | None, str | None]]]:
    """Random transactions on few keys, and the rows after them."""
    rows: dict[str, tuple[str | None, str | None]] = {}
    found: list[Tx] = []
    for csn in range(1, count + 1):
        changes: list[Row] = []
        for _ in range(chance.randint(1, 4)):
            key, free = str(chance.randint(0, 30)), str(1000 + csn)
            if key not in rows:
                changes.append(insert(int(key), f"i{csn}"))
                rows[key] = (f"i{csn}", "1.5")
            elif chance.random() < 0.3:
                changes.append(delete(int(key)))
                del rows[key]
            elif chance.random() < 0.3 and free not in rows:
                changes.append(key_update(int(key), int(free), f"k{csn}"))
                del rows[key]
                rows[free] = (f"k{csn}", "1.5")
            else:
                changes.append(Row(T, IoType.FIELD_COMP, image(key, f"u{csn}", str(csn))))
                rows[key] = (f"u{csn}", str(csn))
        found.append(Tx(csn, changes))
    return found, rows


def rows_of(dsn: str) -> dict[str, tuple[str | None, str | None]]:
    with session.connect(dsn) as connection:
        found = connection.execute("SELECT id::text, a, b::text FROM public.t").fetchall()
    return {key: (a, b) for key, a, b in found}


def names_left(dsn: str) -> int:
    with session.connect(dsn) as connection:
        return len(connection.execute("SELECT 1 FROM public.ggs_checkpoint_lox WHERE log_cmplt_xids <> ''").fetchall())


@pytest.mark.parametrize("seed", range(6))
def test_rows_are_applied_once_over_changes_of_the_way_and_kills(south: str, seed: int) -> None:
    chance = random.Random(seed)
    whole, expected = transactions(chance, 300)
    batches = trail(whole, 37)
    changes = 0
    while True:
        process = Replicat(south, chance)
        applied = process.delivery.applied
        assert applied is not None
        rest = batches_after(batches, applied.position) if applied.csn is not None else batches
        killed = feed(process, rest, chance)
        if not killed:
            process.delivery.flush()
        changes += process.choice.changes
        process.end()
        if not killed:
            break
    assert rows_of(south) == expected
    assert names_left(south) == 0
    assert changes > 5


def feed(process: Replicat, batches: Sequence[ChangeBatch], chance: random.Random) -> bool:
    """Feed batches in parts; return True if the process ended before the last one, without a goodbye."""
    for batch in batches:
        process.delivery._part = chance.randint(1, 12)
        process.delivery.feed(batch)
        if chance.random() < 0.1:
            process.delivery.advance()
        if chance.random() < 0.08:
            return True
    return False


def test_a_start_after_a_kill_uses_the_appliers_until_the_row_has_passed_their_transactions(south: str) -> None:
    """Guard 1."""
    chance = random.Random(1)
    process = Replicat(south, chance)
    first = trail([Tx(csn, [insert(csn)]) for csn in range(1, 4)])
    process.delivery.feed(first[0])
    process.delivery.flush()
    row = process.delivery.applied
    process.end()
    with session.connect(south) as connection:  # as appliers leave it that are killed after a commit
        connection.execute(
            "INSERT INTO ggs_checkpoint_lox (group_name, group_key, log_cmplt_csn, log_cmplt_xids_seq, log_cmplt_xids)"
            " VALUES ('REP1', 7, '5', 1, '705')"
        )
        connection.execute("INSERT INTO t VALUES (5, 'x', 1.5)")
    assert row is not None
    again = Replicat(south, random.Random(1))
    assert again.choice.several
    batches = trail([Tx(csn, [insert(csn)]) for csn in range(1, 8)])
    for batch in batches_after(batches, row.position):
        again.delivery.feed(batch)
    again.delivery.flush()
    again.end()
    assert sorted(rows_of(south)) == list("1234567")
