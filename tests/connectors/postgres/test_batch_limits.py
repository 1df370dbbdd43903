"""The limits of BATCHSQL, and an error within a batch: each operation is applied exactly once."""

from __future__ import annotations

from pathlib import Path

import pytest
from batches import Row, Tx
from pipeline.apply.hand_made import BEGIN, CHECKPOINTS, Replicats, T, delete, insert, trail, update

from ggshell.clock import FakeClock
from ggshell.connectors.postgres import session
from ggshell.connectors.postgres.apply_steps import BULK_ROWS, LONGEST_ARRAY, MOST_ROWS, StepMaker
from ggshell.connectors.postgres.target import PostgresTarget
from ggshell.pipeline.apply.delivery import Delivery
from ggshell.pipeline.apply.discard import DiscardFile
from ggshell.pipeline.apply.error_rules import ErrorRule, Response
from ggshell.pipeline.apply.mapping import Mapper, MapRule
from ggshell.pipeline.apply.responses import Responses
from ggshell.pipeline.apply.target import BatchLimits, Refusal
from ggshell.types import Csn

RULES = (MapRule("hr.*", "public.*"),)
WITNESS = """
CREATE TABLE seen (id int, what text);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
  'BEGIN INSERT INTO seen VALUES (coalesce(NEW.id, OLD.id), TG_OP); RETURN NULL; END';
CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION note()"""


class RecordingTarget(PostgresTarget):
    """Records how many rows and statements each queue had when it was sent."""

    queues: list[tuple[int, int]]

    def _push(self) -> Refusal | None:
        if self._rows:
            self.queues.append((self._rows, len(self._steps)))
        return super()._push()


def recording_target(replicats: Replicats, limits: BatchLimits) -> RecordingTarget:
    replicats.close()
    target = RecordingTarget(replicats.dsn, "rep1", "/home", CHECKPOINTS, BEGIN, limits=limits)
    target.queues = []
    replicats.target = target
    return target


@pytest.mark.parametrize(
    ("most", "make", "rows", "bulk"),
    [
        (MOST_ROWS, insert, 100, [100]),
        (30, insert, 100, [30, 30, 30]),
        (BULK_ROWS - 1, insert, 100, []),
        (1, insert, 40, []),
        (MOST_ROWS, delete, LONGEST_ARRAY + 30, [LONGEST_ARRAY, 30]),
        (50, delete, 120, [50, 50, 20]),
    ],
)
def test_a_statement_has_at_most_opsperbatch_rows(
    replicats: Replicats, most: int, make: type, rows: int, bulk: list[int]
) -> None:
    target = recording_target(replicats, BatchLimits())
    mapping = Mapper(RULES, target.describe).resolve(T)
    assert mapping is not None
    (batch,) = trail([Tx(1, [make(number) for number in range(rows)])])
    steps = StepMaker(most).steps(batch, 0, rows, {0: mapping})
    together = [step.affects or step.data.count(b"\n") for step in steps if (step.affects or 0) > 1 or step.data]
    assert together == bulk
    assert len(steps) == len(bulk) + rows - sum(bulk)


@pytest.mark.parametrize(
    ("limits", "queues"),
    [
        (BatchLimits(), [(100, 1)]),
        (BatchLimits(queue_rows=40), [(40, 1), (40, 1), (20, 1)]),
        (BatchLimits(batch_rows=25, queue_batches=4), [(100, 4)]),
        (BatchLimits(queue_rows=10, queue_batches=20), [(10, 10)] * 10),
        (BatchLimits(queue_bytes=1000), [(100, 1)]),
    ],
)
def test_a_queue_is_sent_when_it_is_full(
    replicats: Replicats, limits: BatchLimits, queues: list[tuple[int, int]]
) -> None:
    target = recording_target(replicats, limits)
    mapping = Mapper(RULES, target.describe).resolve(T)
    assert mapping is not None
    (batch,) = trail([Tx(1, [insert(number) for number in range(100)])])
    assert target.apply(batch, 0, 100, {0: mapping}) is None
    assert target.await_answers() is None
    assert target.queues == queues
    target.rollback()


@pytest.mark.parametrize("batch_rows", [None, 30, 1])
@pytest.mark.parametrize("queue_rows", [None, 37])
def test_after_an_error_within_a_batch_operations_are_applied_singly_and_none_twice(
    replicats: Replicats, tmp_path: Path, batch_rows: int | None, queue_rows: int | None
) -> None:
    with session.connect(replicats.dsn) as connection:
        connection.execute("INSERT INTO t VALUES (57, 'in the way', 0)")
        connection.execute(WITNESS)
    target = recording_target(replicats, BatchLimits(batch_rows, queue_rows))
    discard = DiscardFile(tmp_path / "rep1.dsc", "REP1", FakeClock())
    rules = Responses([ErrorRule("DEFAULT", Response.DISCARD)])
    replicat = Delivery(target, Mapper(RULES, target.describe), group_operations=500, discard=discard, responses=rules)
    replicat.start()
    changes: list[Row] = [insert(number) for number in range(100)]
    changes += [update(number, "new") for number in range(100) if number != 57]
    changes += [delete(number) for number in range(50)]
    transactions = [Tx(1, [insert(1000)]), Tx(2, changes), Tx(3, [insert(number) for number in range(200, 260)])]
    for batch in trail(transactions, rows_a_batch=64):
        replicat.feed(batch)
    replicat.flush()
    assert replicat.applied is not None
    assert replicat.applied.csn == Csn(3)
    with session.connect(replicats.dsn) as connection:
        found = connection.execute(
            "SELECT what, count(*), count(DISTINCT id) FROM seen GROUP BY 1 ORDER BY 1"
        ).fetchall()
        kept = connection.execute("SELECT a FROM t WHERE id = 57").fetchall()
    assert found == [("DELETE", 50, 50), ("INSERT", 160, 160), ("UPDATE", 99, 99)]
    assert kept == [("in the way",)]
    assert discard.path.read_text().count("Operation failed") == 1
