"""Appliers: everything that one has applied is committed, whatever is taken back from its queue meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from queue import SimpleQueue

import pytest
from batches import Tx
from pipeline.apply.hand_made import BEGIN, insert, trail
from pipeline.apply.memory_target import MemoryTarget
from pipeline.apply.two_sites import TARGET

from ggshell.pipeline.apply.applier import Answers, Applied, ApplierJob, NamingApplier
from ggshell.pipeline.apply.delivery import Delivery
from ggshell.pipeline.apply.mapping import Mapper, MapRule
from ggshell.pipeline.apply.target import CheckpointRow, Refusal, TargetColumn

PATIENCE = 20.0
TABLE = TARGET._replace(columns=tuple(TargetColumn(name, "text") for name in ("id", "a", "b")))


class NamedTarget(MemoryTarget):
    """A target that knows the ids of the transactions that it commits."""

    def __init__(self) -> None:
        super().__init__(TABLE)
        self._ids: list[str] = []

    def commit(self, row: CheckpointRow, ids: Sequence[str] = ()) -> Refusal | None:
        self._ids += ids
        return super().commit(row, ids)

    def committed(self) -> tuple[list[str], list[int]]:
        found, self._ids = self._ids, []
        return found, []

    def take_turn(self, ticket: int | None) -> None: ...


class RecallingQueue(SimpleQueue[ApplierJob | None]):
    """A queue whose jobs are taken back just after the applier has seen that there are some."""

    applier: NamingApplier
    recalled: Sequence[ApplierJob] = ()

    def empty(self) -> bool:
        found = super().empty()
        if not found and not self.recalled:
            self.recalled = self.applier.recall()
        return found


@pytest.fixture
def answers() -> Iterator[Answers]:
    answers = Answers()
    yield answers
    answers.close()


def test_an_applier_commits_what_it_applied_before_the_rest_was_taken_back(answers: Answers) -> None:
    target = NamedTarget()
    mapper = Mapper((MapRule("hr.*", "s.*"),), target.describe)
    delivery = Delivery(target, mapper, position=CheckpointRow(BEGIN, None), applier=True)
    applier = NamingApplier(0, target, delivery, answers)
    queue = RecallingQueue()
    queue.applier, applier._jobs = applier, queue
    first, second = ([batch] for batch in trail([Tx(1, [insert(1)]), Tx(2, [insert(2)])], 1))
    applier.put(ApplierJob(first))
    applier.put(ApplierJob(second))
    applier.start()
    try:
        answer = answers.get(PATIENCE)
        assert isinstance(answer, Applied)
        assert list(answer.ids) == [first[0].pieces[0].header.xid]
        assert [job.batches for job in queue.recalled] == [second]
        assert target.rows.keys() == {(b"1",)}
    finally:
        applier.end()
