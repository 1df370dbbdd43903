"""A lane: one worker of a parallel Replicat, with a connection of its own, applying what it is given in order."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from queue import SimpleQueue
from typing import NamedTuple, Protocol

from ggshell.apply.delivery import Delivery
from ggshell.apply.target import Target
from ggshell.record import ChangeBatch

GATHER_OPERATIONS = 10_000


class Applied(NamedTuple):
    """Transactions that a lane's target has committed, and the rows of the transaction table that name them."""

    lane: int
    ids: Sequence[str]
    sequences: Sequence[int]


class Failed(NamedTuple):
    """A lane has ended with an error."""

    error: BaseException


class Job(NamedTuple):
    """Rows for a lane: batches whose pieces are to be applied, in order; ``ticket``: the job's turn to commit, where commits
    keep the source's order.  ``last``: everything up to here must be committed now."""

    batches: Sequence[ChangeBatch]
    ticket: int | None = None


class LaneTarget(Target, Protocol):
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

    def __init__(
        self,
        number: int,
        target: LaneTarget,
        delivery: Delivery,
        answers: SimpleQueue[Applied | Failed],
        turns: Turns | None = None,
    ) -> None:
        self._number = number
        self._target = target
        self._delivery = delivery
        self._answers = answers
        self._turns = turns
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=f"lane-{number}", daemon=True)
        self._thread.start()

    def put(self, job: Job) -> None:
        self._jobs.put(job)

    def end(self) -> None:
        """Let the thread end behind the jobs that it has, undo what is not committed, and wait for it."""
        self._jobs.put(None)
        self._thread.join()
        self._target.close()

    def _run(self) -> None:
        try:
            while (job := self._jobs.get()) is not None:
                if self._turns is not None:
                    self._in_turn(job, self._turns)
                else:
                    self._as_they_come(job)
        except BaseException as error:  # noqa: BLE001 - the thread that waits for the answer raises it
            self._answers.put(Failed(error))

    def _as_they_come(self, job: Job) -> None:
        """Feed what there is; when nothing more is, commit."""
        for batch in job.batches:
            self._delivery.feed(batch)
        if self._jobs.empty():
            self._delivery.flush()
        self._tell()

    def _in_turn(self, job: Job, turns: Turns) -> None:
        self._target.take_turn(job.ticket)
        for batch in job.batches:
            self._delivery.feed(batch)
        if not self._delivery.large:
            self._delivery.flush()
        self._tell()
        if job.ticket is not None:
            turns.done(job.ticket)

    def _tell(self) -> None:
        ids, sequences = self._target.committed()
        if ids:
            self._answers.put(Applied(self._number, ids, sequences))
