"""Parallel delivery: independent transactions run on several appliers at once, dependent ones in order.

The path of a transaction: its keys (``dependencies``) -> its applier (``scheduling``) -> its rows and a row with its id, in one
target transaction (``applier``) -> the watermarks (``watermarks``), which the checkpoint row follows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ggshell.clock import Clock, SystemClock
from ggshell.pipeline.apply.applier import Answers, Applied, ApplierJob, Failed, NamingApplier
from ggshell.pipeline.apply.ddl_barrier import DdlBarrier
from ggshell.pipeline.apply.ddl_parts import is_ddl
from ggshell.pipeline.apply.deduplication import AcceptedTransactions
from ggshell.pipeline.apply.dependencies import KeyFinder, Touched
from ggshell.pipeline.apply.groups import LARGE_BYTES
from ggshell.pipeline.apply.mapping import Mapper
from ggshell.pipeline.apply.scheduling import Entry, Part, Scheduler
from ggshell.pipeline.apply.target import CheckpointRow, TableMapping
from ggshell.pipeline.apply.watermarks import AppliedWatermarks, WatermarkState
from ggshell.record.change import ChangeBatch
from ggshell.record.transaction import TransactionPiece
from ggshell.types import TrailPosition

LONGEST_STRETCH = 200

SAVE_TRANSACTIONS = 5_000
"""Under load, the checkpoint row is saved at least once per this many transactions."""


STUCK_SECONDS = 0.5
"""An applier that has not answered for this long gets only transactions that depend on those it already has."""

WINDOW = 10
"""Up to this many times LOOK_AHEAD_TRANSACTIONS may be accepted after a transaction that cannot be applied yet."""


class ParallelSettings(NamedTuple):
    """The parallelism: up to ``look_ahead`` transactions may be pending.

    With ``full`` serialization, commits keep the source's order, ``chunk`` operations at a time."""

    look_ahead: int = 10_000
    full: bool = False
    chunk: int = 1000


class ParallelDelivery:
    """Applies batches on appliers.

    Guards, each tested by its number:

    1. a transaction that the checkpoint row counts as applied, or lists as applied above it, is skipped as a whole;
    2. a transaction is given to an applier only when everything that touches its keys is committed or queued before it there;
    3. a transaction's id is written to the transaction table by the target transaction that holds its rows;
    4. the checkpoint row moves only over committed transactions, and ids are deleted from the transaction table only after
       the row has moved over them;
    5. after any failure nothing more is sent; the tables show what was committed;
    6. a transaction with DDL is applied while no other one is, and its commit moves the checkpoint row over it;
    7. work that a stuck applier has not begun goes to other appliers, unless it depends on what the applier is processing.
    """

    def __init__(
        self,
        appliers: Sequence[NamingApplier],
        answers: Answers,
        mapper: Mapper,
        start: tuple[CheckpointRow, Sequence[str], Sequence[int]],
        barrier: DdlBarrier,
        save: Callable[[WatermarkState], None],
        settings: ParallelSettings = ParallelSettings(),  # noqa: B008 - a value
        clock: Clock | None = None,
    ) -> None:
        """``start``: the checkpoint row, the ids applied above it, the rows with these ids; ``save`` saves watermarks."""
        row, ids, sequences = start
        self._appliers = appliers
        self._answers = answers
        self._mapper = mapper
        self._barrier = barrier
        self._save = save
        self._settings = settings
        self._finder = KeyFinder()
        self._accepted = AcceptedTransactions(row)
        self._scheduler = Scheduler(len(appliers))
        self._watermarks = AppliedWatermarks(row, ids, sequences)
        self._waiting: list[Entry] = []
        self._held: list[Part] = []
        self._large: Entry | None = None
        self._stretch = 1
        self._ticket = 0
        self._unsaved = 0
        self._outgoing: list[list[Entry]] = [[] for _ in appliers]
        self._dependent = 0
        self._clock = clock or SystemClock()
        self._heard = [self._clock.steady()] * len(appliers)
        self.operations = 0
        """How many operations the appliers have applied."""

    @property
    def applied(self) -> CheckpointRow | None:
        """The low watermark."""
        return self._watermarks.low

    @property
    def pending(self) -> bool:
        """Whether there are rows that are not in a confirmed commit."""
        return bool(self._watermarks.open or self._held or self._large is not None or self._barrier.open)

    @property
    def threads(self) -> Sequence[int]:
        """No threads: the appliers record the transactions above the group's row by their ids."""
        return ()

    def activity(self) -> dict[str, Any]:
        """Return what the appliers do, for STATUS: the operations that each has to apply, and whether it is stuck.

        ``open_transactions`` are not confirmed as applied; ``waiting_transactions`` wait for others before they go to an
        applier; ``dependent_transactions`` touched the keys of an open one, since the process started.
        """
        loads, closed = self._scheduler.loads, self._scheduler.closed
        appliers = [{"applier": each, "operations": load, "stuck": each in closed} for each, load in enumerate(loads)]
        return {
            "appliers": appliers,
            "open_transactions": self._watermarks.open,
            "waiting_transactions": len(self._waiting),
            "dependent_transactions": self._dependent,
        }

    def feed(self, batch: ChangeBatch) -> None:
        """Hand a batch to the appliers; it may be applied later. Raises the error of a failed applier."""
        self._listen(wait=False)
        pieces = self._accepted.fresh(batch.pieces)
        if not pieces:
            return
        if is_ddl(batch):
            self._begin_barrier(pieces[0])
        if self._barrier.open:
            self._feed_barrier(replace(batch, pieces=(pieces.pop(0),)))
            if not pieces:
                return
        mappings = self._mappings(batch)
        if self._held or self._large is not None:
            self._continue(replace(batch, pieces=(pieces.pop(0),)), mappings)
        tail = pieces.pop() if pieces and not pieces[-1].ends else None
        self._whole(batch, pieces, mappings)
        if tail is not None:
            self._continue(replace(batch, pieces=(tail,)), mappings)
        most = self._settings.look_ahead
        while self._watermarks.open > most or self._watermarks.above > most * WINDOW:
            self._listen(wait=True)
        self._unstick()
        if self._unsaved >= SAVE_TRANSACTIONS:
            self.save()

    @property
    def oldest(self) -> int:
        """The commit time of the oldest transaction that is not confirmed as applied; 0 if there is none."""
        return self._watermarks.oldest or self._barrier.oldest

    def advance(self) -> None:
        """Process the appliers' answers without waiting for pending work."""
        self._listen(wait=False)
        self._unstick()
        if not self._watermarks.open and self._large is None:
            self.save()

    def wake(self) -> list[int]:
        """Return the descriptor that becomes readable when pending work is applied."""
        if not self._watermarks.open:
            return []
        self._answers.arm()
        return [self._answers.fileno()]

    def flush(self) -> None:
        """Wait until all whole transactions are applied, and move the checkpoint row."""
        if self._barrier.open:
            self._barrier.flush()
            return
        if self._large is None:
            self._drain()
        self.save()

    def save(self) -> None:
        """Save the low watermark to the checkpoint row."""
        self._watermarks.advance()
        if self._unsaved:
            self._save(self._watermarks.state())
            self._unsaved = 0

    def note(self) -> bool:
        return False

    @property
    def is_clear(self) -> bool:
        """Whether the checkpoint row alone says what is applied, once everything fed is applied."""
        return self._watermarks.is_clear(self._settings.look_ahead * WINDOW)

    def continue_at(self, row: CheckpointRow) -> None:
        """Continue after another delivery has moved the checkpoint row; nothing may be pending."""
        self._watermarks.passed(row)
        self._accepted = AcceptedTransactions(row)

    def abandon(self) -> None:
        """Roll back a transaction with DDL; when an applier ends, the target rolls back what it has not committed."""
        self._barrier.abandon()

    def end(self) -> None:
        for applier in self._appliers:
            applier.end()
        self._answers.close()

    def _mappings(self, batch: ChangeBatch) -> dict[int, TableMapping]:
        found = {number: self._mapper.resolve(table) for number, table in enumerate(batch.tables)}
        return {number: mapping for number, mapping in found.items() if mapping is not None}

    def _whole(self, batch: ChangeBatch, pieces: Sequence[TransactionPiece], mappings: dict[int, TableMapping]) -> None:
        """Accept whole transactions; with full serialization several per job, because each job waits for its turn."""
        self._stretch = min(LONGEST_STRETCH, -(-len(pieces) // len(self._appliers)))
        job: list[tuple[Entry, Touched]] = []
        operations = 0
        for piece, touched in zip(pieces, self._finder.touched(batch, pieces, mappings), strict=True):
            job.append((Entry(piece.header, _position_after(batch, piece), ((batch, piece),), piece.count), touched))
            operations += piece.count
            if not self._settings.full or operations >= self._settings.chunk:
                self._enter(job)
                job, operations = [], 0
        if job:
            self._enter(job)
        self._send()

    def _enter(self, job: list[tuple[Entry, Touched]]) -> None:
        """Schedule the transactions of one job; those that must run alone are applied one after the other."""
        if any(touched.alone for _, touched in job):
            for entry, _ in job:
                self._apply_alone(entry)
            return
        entries: list[Entry] = []
        for entry, touched in job:
            self._watermarks.add(entry)
            if entry.done:
                self._unsaved += 1
                continue
            self._scheduler.note(entry, touched)
            self._dependent += bool(entry.blockers)
            entries.append(entry)
        if not self._settings.full:
            for entry in entries:
                self._place(entry)
        elif entries:
            self._place_in_order(entries)

    def _place(self, entry: Entry) -> None:
        applier = self._scheduler.choose(entry, self._stretch)
        if applier is None:
            self._waiting.append(entry)
        else:
            self._dispatch(entry, applier)

    def _place_in_order(self, entries: list[Entry]) -> None:
        """Schedule transactions whose commits keep the source's order: wait until they can go to an applier."""
        first, mine = entries[0], {id(entry) for entry in entries}
        first.blockers = [each for entry in entries for each in entry.blockers if id(each) not in mine]
        while (applier := self._scheduler.choose(first)) is None:
            self._listen(wait=True)
        for entry in entries:
            self._dispatch(entry, applier)
        self._send()

    def _dispatch(self, entry: Entry, applier: int) -> None:
        if not self._scheduler.loads[applier]:
            self._heard[applier] = self._clock.steady()
        self._scheduler.dispatch(entry, applier)
        self._outgoing[applier].append(entry)

    def _send(self) -> None:
        """Send the scheduled transactions to their appliers."""
        for number, entries in enumerate(self._outgoing):
            if entries:
                self._outgoing[number] = []
                self._put(number, _joined(entries), () if self._settings.full else entries)

    def _put(
        self, applier: int, batches: Sequence[ChangeBatch], entries: Sequence[Entry] = (), *, ends: bool = True
    ) -> None:
        """Give an applier a job; if commits keep the source's order and the job ends with a commit, it gets a ticket."""
        takes_turn = self._settings.full and ends
        self._appliers[applier].put(ApplierJob(batches, self._ticket if takes_turn else None, entries))
        self._ticket += takes_turn

    def _unstick(self) -> None:
        """Move the work that a stuck applier has not begun to other appliers (guarantee 7)."""
        if self._settings.full or len(self._appliers) < 2 or self._large is not None:
            return
        now = self._clock.steady()
        for number, load in enumerate(self._scheduler.loads):
            if load and number not in self._scheduler.closed and now - self._heard[number] >= STUCK_SECONDS:
                self._scheduler.closed.add(number)
                self._recall(number)

    def _recall(self, number: int) -> None:
        entries = [entry for job in self._appliers[number].recall() for entry in job.entries]
        for entry in entries:
            self._scheduler.withdraw(entry)
        for entry in entries:
            self._place(entry)
        self._send()

    def _listen(self, *, wait: bool) -> None:
        """Process the appliers' answers, and schedule the transactions that waited for them."""
        heard = False
        while (wait and not heard) or not self._answers.empty():
            answer = self._answers.get(STUCK_SECONDS)
            if answer is None:
                self._unstick()
            if isinstance(answer, Failed):
                raise answer.error
            if isinstance(answer, Applied):
                self._heard[answer.applier] = self._clock.steady()
                self._scheduler.closed.discard(answer.applier)
                for entry in self._watermarks.take(answer.ids, answer.sequences):
                    self._scheduler.complete(entry)
                    self._unsaved += 1
                    self.operations += entry.operations
                heard = True
        if heard and self._waiting:
            self._release()
        if heard:
            self._watermarks.advance()

    def _release(self) -> None:
        waiting, self._waiting = self._waiting, []
        for entry in waiting:
            self._place(entry)
        self._send()

    def _drain(self) -> None:
        self._send()
        while self._watermarks.open:
            self._listen(wait=True)

    def _apply_alone(self, entry: Entry) -> None:
        """Apply a transaction while no other one is running."""
        self._drain()
        self._watermarks.add(entry)
        if not entry.done:
            self._dispatch(entry, 0)
        self._drain()

    def _begin_barrier(self, piece: TransactionPiece) -> None:
        """Wait until everything before a transaction with DDL is applied (guarantee 6)."""
        if self._barrier.open:
            return
        if self._large is not None:
            self._barrier.start_again(piece.header)
        self._drain()
        self.save()
        held, self._held = self._held, []
        self._barrier.begin(part for part, _ in held)

    def _feed_barrier(self, part: ChangeBatch) -> None:
        row = self._barrier.feed(part)
        if row is not None:
            self._watermarks.passed(row)

    def _continue(self, part: ChangeBatch, mappings: dict[int, TableMapping]) -> None:
        """Continue a transaction that arrives in pieces: hold it back until its end, or apply it alone if it is large."""
        piece = part.pieces[0]
        self._held.append((part, piece))
        if self._large is None and not piece.ends and self._held_bytes() < LARGE_BYTES:
            return
        if self._large is None and self._barrier.known(piece.header):
            self._held.pop()
            self._begin_barrier(piece)
            self._feed_barrier(part)
            return
        held, self._held = self._held, []
        if self._large is None and piece.ends:
            touched = Touched()
            for each, _ in held:
                found = mappings if each is part else self._mappings(each)
                touched.join(self._finder.touched(each, each.pieces, found)[0])
            operations = sum(each.count for _, each in held)
            self._enter([(Entry(piece.header, _position_after(part, piece), held, operations), touched)])
            self._send()
            return
        if self._large is None:
            self._drain()
            self._large = Entry(piece.header, _position_after(part, piece), (), 0)
            self._watermarks.add(self._large)
            self._scheduler.dispatch(self._large, 0)
        large = self._large
        if not large.done:
            self._put(0, [each for each, _ in held], ends=piece.ends)
        if piece.ends:
            large.end, self._large = _position_after(part, piece), None
            self._drain()
        else:
            self._listen(wait=False)

    def _held_bytes(self) -> int:
        return sum(int(batch.length[piece.first : piece.first + piece.count].sum()) for batch, piece in self._held)


def _position_after(batch: ChangeBatch, piece: TransactionPiece) -> TrailPosition:
    following = piece.first + piece.count
    return TrailPosition(batch.seqno, int(batch.rba[following]) if following < len(batch) else batch.end_rba)


def _joined(entries: Sequence[Entry]) -> list[ChangeBatch]:
    """Return the parts of entries as batches; consecutive parts of one batch become one batch with all their pieces."""
    parts = [part for entry in entries for part in entry.parts]
    result: list[ChangeBatch] = []
    first = 0
    for number in range(1, len(parts) + 1):
        batch = parts[first][0]
        if number == len(parts) or parts[number][0] is not batch:
            result.append(replace(batch, pieces=tuple(piece for _, piece in parts[first:number])))
            first = number
    return result
