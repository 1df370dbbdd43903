"""Parallel delivery: independent transactions on several lanes at once, dependent ones in order.

The way of a transaction: its keys (``dependencies``) -> its lane (``scheduling``) -> its rows and a row that names it, in one
target transaction (``lane``) -> the watermarks (``watermarks``), which the checkpoint row follows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from queue import SimpleQueue
from typing import NamedTuple

from ggshell.apply.dependencies import KeyFinder, Touched
from ggshell.apply.groups import LARGE_BYTES
from ggshell.apply.known import Known
from ggshell.apply.lane import Answer, Applied, Failed, Job, NamingLane
from ggshell.apply.mapping import Mapper
from ggshell.apply.scheduling import Entry, Part, Scheduler
from ggshell.apply.target import CheckpointRow, TableMapping
from ggshell.apply.watermarks import Marks, Watermarks
from ggshell.record.change import ChangeBatch
from ggshell.record.transaction import TransactionPiece
from ggshell.types import TrailPosition

LONGEST_STRETCH = 200

SAVE_TRANSACTIONS = 5_000
"""The checkpoint row follows at least so often under load."""


class Ways(NamedTuple):
    """How parallel: ``look_ahead`` transactions may be on their way; with ``full`` serialization commits keep the source's
    order, ``chunk`` operations at a time."""

    look_ahead: int = 10_000
    full: bool = False
    chunk: int = 1000


class ParallelDelivery:
    """Applies batches on lanes.

    Guards, each tested by its number:

    1. a transaction that the checkpoint row counts as applied, or names as applied above it, is skipped whole;
    2. a transaction never begins on a lane before everything that touches its keys is committed, or stands before it there;
    3. a transaction is named in the transaction table by the target transaction that holds its rows;
    4. the row of the checkpoint table is moved only over transactions that are committed, and names of the transaction table
       go only when the row has moved over them;
    5. after any failure nothing more is sent; the table tells what was committed.
    """

    def __init__(
        self,
        lanes: Sequence[NamingLane],
        answers: SimpleQueue[Answer],
        mapper: Mapper,
        start: tuple[CheckpointRow, Sequence[str], Sequence[int]],
        save: Callable[[Marks], None],
        ways: Ways = Ways(),  # noqa: B008 - a value
    ) -> None:
        """``start``: the checkpoint row, the ids applied above it, the rows that name them; ``save`` writes watermarks."""
        row, ids, sequences = start
        self._lanes = lanes
        self._answers = answers
        self._mapper = mapper
        self._save = save
        self._ways = ways
        self._finder = KeyFinder()
        self._known = Known(row)
        self._scheduler = Scheduler(len(lanes))
        self._marks = Watermarks(row, ids, sequences)
        self._waiting: list[Entry] = []
        self._held: list[Part] = []
        self._large: Entry | None = None
        self._stretch = 1
        self._ticket = 0
        self._unsaved = 0
        self._outgoing: list[list[Entry]] = [[] for _ in lanes]

    @property
    def applied(self) -> CheckpointRow | None:
        """The low watermark."""
        return self._marks.low

    @property
    def pending(self) -> bool:
        """Whether there are rows that no confirmed commit holds."""
        return bool(self._marks.open or self._held or self._large is not None)

    @property
    def large(self) -> bool:
        return self._large is not None

    def feed(self, batch: ChangeBatch) -> None:
        """Apply a batch, sooner or later.  Raises what a lane raised."""
        self._listen(wait=False)
        pieces = self._known.fresh(batch.pieces)
        if not pieces:
            return
        mappings = self._mappings(batch)
        if self._held or self._large is not None:
            self._continue(replace(batch, pieces=(pieces.pop(0),)), mappings)
        tail = pieces.pop() if pieces and not pieces[-1].ends else None
        self._whole(batch, pieces, mappings)
        if tail is not None:
            self._continue(replace(batch, pieces=(tail,)), mappings)
        while self._marks.open > self._ways.look_ahead:
            self._listen(wait=True)
        if self._unsaved >= SAVE_TRANSACTIONS:
            self.save()

    def flush(self) -> None:
        """Wait until all whole transactions are applied, and move the checkpoint row."""
        if self._large is None:
            self._drain()
        self.save()

    def save(self) -> None:
        """Have the checkpoint row follow the low watermark."""
        self._marks.advance()
        if self._unsaved:
            self._save(self._marks.marks())
            self._unsaved = 0

    def abandon(self) -> None:
        """Nothing is undone here: a lane that ends leaves what it has not committed to the target to undo."""

    def end(self) -> None:
        for lane in self._lanes:
            lane.end()

    def _mappings(self, batch: ChangeBatch) -> dict[int, TableMapping]:
        found = {number: self._mapper.resolve(table) for number, table in enumerate(batch.tables)}
        return {number: mapping for number, mapping in found.items() if mapping is not None}

    def _whole(self, batch: ChangeBatch, pieces: Sequence[TransactionPiece], mappings: dict[int, TableMapping]) -> None:
        """Whole transactions of a batch; in full serialization some at a time, since each job waits for its turn."""
        self._stretch = min(LONGEST_STRETCH, -(-len(pieces) // len(self._lanes)))
        job: list[tuple[Entry, Touched]] = []
        operations = 0
        for piece, touched in zip(pieces, self._finder.touched(batch, pieces, mappings), strict=True):
            job.append((Entry(piece.header, _behind(batch, piece), ((batch, piece),), piece.count), touched))
            operations += piece.count
            if not self._ways.full or operations >= self._ways.chunk:
                self._enter(job)
                job, operations = [], 0
        if job:
            self._enter(job)
        self._send()

    def _enter(self, job: list[tuple[Entry, Touched]]) -> None:
        """Transactions that go to one lane together."""
        if any(touched.alone for _, touched in job):
            for entry, _ in job:
                self._alone(entry)
            return
        entries: list[Entry] = []
        for entry, touched in job:
            self._marks.add(entry)
            if entry.done:
                self._unsaved += 1
                continue
            self._scheduler.note(entry, touched)
            entries.append(entry)
        if not self._ways.full:
            for entry in entries:
                self._place(entry)
        elif entries:
            self._place_in_order(entries)

    def _place(self, entry: Entry) -> None:
        lane = self._scheduler.choose(entry, self._stretch)
        if lane is None:
            self._waiting.append(entry)
        else:
            self._dispatch(entry, lane)

    def _place_in_order(self, entries: list[Entry]) -> None:
        """Commits keep an order, so nothing may overtake what has to wait."""
        first, mine = entries[0], {id(entry) for entry in entries}
        first.blockers = [each for entry in entries for each in entry.blockers if id(each) not in mine]
        while (lane := self._scheduler.choose(first)) is None:
            self._listen(wait=True)
        for entry in entries:
            self._dispatch(entry, lane)
        self._send()

    def _dispatch(self, entry: Entry, lane: int) -> None:
        self._scheduler.dispatch(entry, lane)
        self._outgoing[lane].append(entry)

    def _send(self) -> None:
        """Hand to each lane what was chosen for it."""
        for number, entries in enumerate(self._outgoing):
            if entries:
                self._outgoing[number] = []
                self._put(number, _joined(entries))

    def _put(self, lane: int, batches: Sequence[ChangeBatch], *, ends: bool = True) -> None:
        """Give a lane a job, with a turn of its own where commits keep an order and this one ends with a commit."""
        takes_turn = self._ways.full and ends
        self._lanes[lane].put(Job(batches, self._ticket if takes_turn else None))
        self._ticket += takes_turn

    def _listen(self, *, wait: bool) -> None:
        """Take in what lanes tell; what waited for it goes out."""
        heard = False
        while (wait and not heard) or not self._answers.empty():
            answer = self._answers.get()
            if isinstance(answer, Failed):
                raise answer.error
            if isinstance(answer, Applied):
                for entry in self._marks.take(answer.ids, answer.sequences):
                    self._scheduler.complete(entry)
                    self._unsaved += 1
                heard = True
        if heard and self._waiting:
            self._release()
        if heard:
            self._marks.advance()

    def _release(self) -> None:
        waiting, self._waiting = self._waiting, []
        for entry in waiting:
            self._place(entry)
        self._send()

    def _drain(self) -> None:
        self._send()
        while self._marks.open:
            self._listen(wait=True)

    def _alone(self, entry: Entry) -> None:
        """A transaction that no other may run beside."""
        self._drain()
        self._marks.add(entry)
        if not entry.done:
            self._dispatch(entry, 0)
        self._drain()

    def _continue(self, part: ChangeBatch, mappings: dict[int, TableMapping]) -> None:
        """A transaction that comes in pieces: held back until its end, or applied as it comes, and alone, when it is large."""
        piece = part.pieces[0]
        self._held.append((part, piece))
        if self._large is None and not piece.ends and self._held_bytes() < LARGE_BYTES:
            return
        held, self._held = self._held, []
        if self._large is None and piece.ends:
            touched = Touched()
            for each, _ in held:
                found = mappings if each is part else self._mappings(each)
                touched.join(self._finder.touched(each, each.pieces, found)[0])
            operations = sum(each.count for _, each in held)
            self._enter([(Entry(piece.header, _behind(part, piece), held, operations), touched)])
            self._send()
            return
        if self._large is None:
            self._drain()
            self._large = Entry(piece.header, _behind(part, piece), (), 0)
            self._marks.add(self._large)
            self._scheduler.dispatch(self._large, 0)
        large = self._large
        if not large.done:
            self._put(0, [each for each, _ in held], ends=piece.ends)
        if piece.ends:
            large.end, self._large = _behind(part, piece), None
            self._drain()
        else:
            self._listen(wait=False)

    def _held_bytes(self) -> int:
        return sum(int(batch.length[piece.first : piece.first + piece.count].sum()) for batch, piece in self._held)


def _behind(batch: ChangeBatch, piece: TransactionPiece) -> TrailPosition:
    following = piece.first + piece.count
    return TrailPosition(batch.seqno, int(batch.rba[following]) if following < len(batch) else batch.end_rba)


def _joined(entries: Sequence[Entry]) -> list[ChangeBatch]:
    """The parts of entries as batches: neighbours out of one batch as that batch with all their pieces."""
    parts = [part for entry in entries for part in entry.parts]
    result: list[ChangeBatch] = []
    first = 0
    for number in range(1, len(parts) + 1):
        batch = parts[first][0]
        if number == len(parts) or parts[number][0] is not batch:
            result.append(replace(batch, pieces=tuple(piece for _, piece in parts[first:number])))
            first = number
    return result
