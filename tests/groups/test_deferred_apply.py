"""DEFERAPPLYINTERVAL: each transaction is applied once, in order, and not before it is old enough."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from batches import Row, Tx, make_batch, read_rows
from pipelines import REP1, Pipeline
from processes import until, until_state
from trail_kit import A

from ggshell.clock import FakeClock
from ggshell.groups.deferred_apply import DeferredApply
from ggshell.home.process_file import ProcessState
from ggshell.record.operation import IoType

REPLICAT = "REPLICAT rep1\nUSERIDALIAS south\n{}\nMAP a.*, TARGET b.*;\n"


def transaction(csn: int, rows: int) -> Tx:
    """A transaction that commits ``csn`` milliseconds after the clock's start."""
    return Tx(csn, [Row(A, IoType.INSERT, b"%d.%d" % (csn, row)) for row in range(rows)])


@pytest.mark.parametrize("seed", range(20))
def test_transactions_are_returned_once_in_order_when_they_are_due(seed: int) -> None:
    chance = random.Random(seed)
    whole = [transaction(chance.randrange(100), chance.randrange(1, 4)) for _ in range(40)]
    batches = [make_batch(whole[first : first + 5]) for first in range(0, 40, 5)]
    clock, left, returned = FakeClock(), list(batches), []
    deferred = DeferredApply(clock, 0.05)
    while left or deferred.holds:
        batch = deferred.read(lambda: left.pop(0) if left else None)
        if batch is not None:
            assert all(piece.header.commit_time + 50_000 <= clock.now() for piece in batch.pieces)
            returned += read_rows(batch)
        else:
            assert 0 < deferred.pause(60) <= 0.15
            clock.advance(deferred.pause(60))
    assert returned == [row for batch in batches for row in read_rows(batch)]


def test_nothing_is_held_without_an_interval_or_after_the_session_ends() -> None:
    batch = make_batch([transaction(10_000, 1)])
    assert DeferredApply(FakeClock(), 0).read(lambda: batch) is batch
    deferred = DeferredApply(FakeClock(), 60)
    assert deferred.read(lambda: batch) is None
    assert deferred.status("At EOF").startswith("Deferring: the next transaction is applied at ")
    deferred.forget()
    assert (deferred.holds, deferred.pause(2), deferred.status("At EOF")) == (False, 2, "At EOF")


def test_a_clock_that_is_ahead_defers_by_the_same_interval() -> None:
    clock = FakeClock()
    deferred = DeferredApply(clock, 1, lambda: 500_000)
    clock.advance(1.2)
    assert deferred.read(lambda: make_batch([transaction(0, 1)])) is None
    assert deferred.pause(60) == pytest.approx(0.3)


@pytest.fixture
def pipeline(tmp_path: Path, north: str, south: str) -> Iterator[Pipeline]:
    pipeline = Pipeline(tmp_path / "home", north, south)
    yield pipeline
    pipeline.close()


@pytest.mark.parametrize("kind", ["", "PARALLEL, "])
def test_replicat_applies_transactions_when_they_are_due(pipeline: Pipeline, kind: str) -> None:
    pipeline.add(kind=kind)
    pipeline.write("rep1", REPLICAT.format("DEFERAPPLYINTERVAL 1 HOURS"))
    pipeline.start("ext1", "rep1")
    pipeline.insert(1, 2)
    deferring = "Deferring: the next transaction is applied at "
    until("the transactions are held", lambda: deferring in pipeline.run("SEND REPLICAT rep1, STATUS"))
    assert "At EOF" not in pipeline.run("LAG REPLICAT rep1")
    assert pipeline.ids() == []
    pipeline.run("STOP REPLICAT rep1")
    until_state(pipeline.home, *REP1, ProcessState.STOPPED)
    pipeline.write("rep1", REPLICAT.format("DEFERAPPLYINTERVAL 1 SEC"))
    pipeline.start("rep1")
    pipeline.insert(3)
    pipeline.wait_for_rows(3)
    pipeline.assert_same_rows()
    until("nothing is held", lambda: "At EOF" in pipeline.run("LAG REPLICAT rep1"))
