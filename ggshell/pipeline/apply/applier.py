"""Appliers: the workers of a parallel or coordinated Replicat; each has its own connection and applies its jobs in order."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Sequence
from queue import Empty, SimpleQueue
from typing import NamedTuple, Protocol

from ggshell.pipeline.apply.delivery import Delivery
from ggshell.pipeline.apply.scheduling import Entry
from ggshell.pipeline.apply.target import Target
from ggshell.record.change import ChangeBatch


class Applied(NamedTuple):
    """The ids of transactions that an applier's target has committed, and the transaction table's rows that hold these ids."""

    applier: int
    ids: Sequence[str]
    sequences: Sequence[int]


class Rested(NamedTuple):
    """An applier is idle: it has committed its first ``jobs`` jobs and has no others."""

    applier: int
    jobs: int


class Failed(NamedTuple):
    """An applier has ended with an error."""

    error: BaseException


class ApplierJob(NamedTuple):
    """Rows for an applier: batches whose pieces are applied in order.

    ``ticket``: the job's turn to commit, if commits keep the source's order; ``entries``: its transactions, if another applier
    may take over the job."""

    batches: Sequence[ChangeBatch]
    ticket: int | None = None
    entries: Sequence[Entry] = ()


Answer = Applied | Rested | Failed


class Answers:
    """The answers of appliers to the thread that gives them work; ``fileno`` becomes readable at the next one after ``arm``."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[Answer] = SimpleQueue()
        self._read_end, self._write_end = os.pipe()
        os.set_blocking(self._read_end, False)
        os.set_blocking(self._write_end, False)
        self._armed = False

    def put(self, answer: Answer) -> None:
        """Add an answer; called by appliers."""
        self._queue.put(answer)
        if self._armed:
            self._tell()

    def get(self, timeout: float | None = None) -> Answer | None:
        """Return the next answer; None if none arrives within the timeout in seconds."""
        try:
            return self._queue.get(timeout=timeout)
        except Empty:
            return None

    def empty(self) -> bool:
        return self._queue.empty()

    def fileno(self) -> int:
        return self._read_end

    def arm(self) -> None:
        """Make the descriptor readable at the next answer, or at once if there is an answer already."""
        with contextlib.suppress(BlockingIOError):
            os.read(self._read_end, 4096)
        self._armed = True
        if not self._queue.empty():
            self._tell()

    def _tell(self) -> None:
        self._armed = False
        with contextlib.suppress(BlockingIOError):  # the pipe is full, so it is readable already
            os.write(self._write_end, b"!")

    def close(self) -> None:
        """Close the pipe; call this only after all appliers have ended."""
        os.close(self._read_end)
        os.close(self._write_end)


class NamingTarget(Target, Protocol):
    """A target that records the ids of the transactions that it commits."""

    def committed(self) -> tuple[list[str], list[int]]:
        """Return the ids and transaction table rows of the commits confirmed since the last call."""
        ...

    def take_turn(self, ticket: int | None) -> None:
        """Assign the following commits to this turn."""
        ...


class Turns:
    """Makes jobs commit in the order of their tickets."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._next = 0
        self._ended = False

    def wait(self, ticket: int) -> bool:
        """Wait for a turn; False if it will never come because the run is ending."""
        with self._condition:
            self._condition.wait_for(lambda: self._next >= ticket or self._ended)
            return not self._ended

    def done(self, ticket: int) -> None:
        with self._condition:
            self._next = ticket + 1
            self._condition.notify_all()

    def end(self) -> None:
        """End all waits; no further turns are given."""
        with self._condition:
            self._ended = True
            self._condition.notify_all()


class Applier:
    """The thread of one worker. It reports through ``answers`` and stops after an error."""

    def __init__(self, number: int, target: Target, delivery: Delivery, answers: Answers) -> None:
        self.delivery = delivery
        self._number = number
        self._target = target
        self._answers = answers
        self._jobs: SimpleQueue[ApplierJob | None] = SimpleQueue()
        self._count = 0
        self._ending = False
        self._thread = threading.Thread(target=self._run, name=f"applier-{number}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def put(self, job: ApplierJob) -> None:
        self._jobs.put(job)

    def recall(self) -> list[ApplierJob]:
        """Remove and return the jobs that the applier has not begun.

        If it has just applied a job, it may have left the commit to one of these: a job without rows commits instead.
        """
        jobs: list[ApplierJob] = []
        with contextlib.suppress(Empty):
            while True:
                job = self._jobs.get_nowait()
                if job is not None:
                    jobs.append(job)
        self._jobs.put(ApplierJob(()))
        return jobs

    def forget_tables(self) -> None:
        """Forget what the target knows of tables; the applier must be idle."""
        self._target.forget_tables()

    def end(self) -> None:
        """Stop the thread after its current job, wait for it, and close the target, which rolls back uncommitted work."""
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

    def _do(self, job: ApplierJob) -> None:
        """Apply a job; commit if no other job is waiting."""
        for batch in job.batches:
            self.delivery.feed(batch)
        if self._jobs.empty():
            self.delivery.flush()
            self._answers.put(Rested(self._number, self._count + 1))


class NamingApplier(Applier):
    """An applier of a parallel Replicat: it reports which transactions are committed, and may wait for its turn to commit."""

    def __init__(
        self,
        number: int,
        target: NamingTarget,
        delivery: Delivery,
        answers: Answers,
        turns: Turns | None = None,
    ) -> None:
        super().__init__(number, target, delivery, answers)
        self._naming = target
        self._turns = turns

    def end(self) -> None:
        if self._turns is not None:
            self._turns.end()
        super().end()

    def _do(self, job: ApplierJob) -> None:
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
