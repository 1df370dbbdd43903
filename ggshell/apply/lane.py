"""A lane: one worker of a parallel or coordinated Replicat, with a connection of its own, applying in order what it gets."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from queue import SimpleQueue
from typing import NamedTuple, Protocol

from ggshell.apply.delivery import Delivery
from ggshell.apply.target import Target
from ggshell.record.change import ChangeBatch


class Applied(NamedTuple):
    """Transactions that a lane's target has committed, and the rows of the transaction table that name them."""

    lane: int
    ids: Sequence[str]
    sequences: Sequence[int]


class Rested(NamedTuple):
    """A lane has committed the first ``jobs`` of its jobs, and has no others."""

    lane: int
    jobs: int


class Failed(NamedTuple):
    """A lane has ended with an error."""

    error: BaseException


class Job(NamedTuple):
    """Rows for a lane: batches whose pieces are to be applied, in order; ``ticket``: the job's turn to commit, where commits
    keep the source's order."""

    batches: Sequence[ChangeBatch]
    ticket: int | None = None


Answer = Applied | Rested | Failed


class NamingTarget(Target, Protocol):
    """A target that names the transactions it commits."""

    def committed(self) -> tuple[list[str], list[int]]:
        """The ids and rows of commits that were confirmed since the last call."""
        ...

    def take_turn(self, ticket: int | None) -> None:
        """The commits from here on belong to this turn."""
        ...


class Turns:
    """Lets jobs commit in the order of their tickets."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._next = 0
        self._ended = False

    def wait(self, ticket: int) -> bool:
        """Wait for a turn; False when there will be none, since the run has failed."""
        with self._condition:
            self._condition.wait_for(lambda: self._next >= ticket or self._ended)
            return not self._ended

    def done(self, ticket: int) -> None:
        with self._condition:
            self._next = ticket + 1
            self._condition.notify_all()

    def end(self) -> None:
        """Nobody gets a turn any more."""
        with self._condition:
            self._ended = True
            self._condition.notify_all()


class Lane:
    """The thread of one worker.  What it does is told through ``answers``; after an error it does nothing more."""

    def __init__(self, number: int, target: Target, delivery: Delivery, answers: SimpleQueue[Answer]) -> None:
        self.delivery = delivery
        self._number = number
        self._target = target
        self._answers = answers
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._count = 0
        self._ending = False
        self._thread = threading.Thread(target=self._run, name=f"lane-{number}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def put(self, job: Job) -> None:
        self._jobs.put(job)

    def end(self) -> None:
        """Let the thread end behind the job that it is at, leave to the target to undo what is not committed, and wait."""
        self._ending = True
        self._jobs.put(None)
        if self._thread.is_alive():
            self._thread.join()
        self._target.close()

    def _run(self) -> None:
        try:
            while (job := self._jobs.get()) is not None and not self._ending:
                self._do(job)
                self._count += 1
        except BaseException as error:  # noqa: BLE001 - the thread that waits for the answer raises it
            self._answers.put(Failed(error))

    def _do(self, job: Job) -> None:
        """Feed what there is; when nothing more is, commit."""
        for batch in job.batches:
            self.delivery.feed(batch)
        if self._jobs.empty():
            self.delivery.flush()
            self._answers.put(Rested(self._number, self._count + 1))


class NamingLane(Lane):
    """A lane of a parallel Replicat: it tells which transactions are committed, and may have to wait for its turn."""

    def __init__(
        self,
        number: int,
        target: NamingTarget,
        delivery: Delivery,
        answers: SimpleQueue[Answer],
        turns: Turns | None = None,
    ) -> None:
        super().__init__(number, target, delivery, answers)
        self._naming = target
        self._turns = turns

    def end(self) -> None:
        if self._turns is not None:
            self._turns.end()
        super().end()

    def _do(self, job: Job) -> None:
        self._naming.take_turn(job.ticket)
        for batch in job.batches:
            self.delivery.feed(batch)
        if job.ticket is not None or (self._turns is None and self._jobs.empty()):
            self.delivery.flush()
        ids, sequences = self._naming.committed()
        if ids:
            self._answers.put(Applied(self._number, ids, sequences))
        if self._turns is not None and job.ticket is not None:
            self._turns.done(job.ticket)
