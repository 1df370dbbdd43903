"""Pump and distribution path: copies a trail to other trails. This module connects reader, selection and writer."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from ggshell.errors import ConnectionLostError
from ggshell.groups.connection_state import ConnectionState, Unacknowledged, answer_while_waiting, written
from ggshell.groups.ending import Ending
from ggshell.groups.heartbeats import path_heartbeats
from ggshell.groups.lifecycle import GroupContext, run_group
from ggshell.groups.outputs import Outputs, open_outputs, roll, without_rollover
from ggshell.groups.progress import ReadingProgress, completed_of, with_completed
from ggshell.groups.reconnecting import Backoff, connected, run_sessions
from ggshell.groups.save_schedule import IDLE_SECONDS, SaveSchedule
from ggshell.groups.statistics import tally
from ggshell.groups.table_stage import UNTOUCHED, TableStage
from ggshell.groups.trail_forms import TrailForms, reader_keys
from ggshell.home.checkpoint import Checkpoint, GroupKind, WriteCheckpoint
from ggshell.home.events import Severity
from ggshell.home.home import Home
from ggshell.parameters.process_parameters import RunEnd
from ggshell.parameters.table_patterns import TableFilter
from ggshell.record.change import ChangeBatch
from ggshell.record.transaction import Completed
from ggshell.trail.copying import CopySource
from ggshell.trail.fileheader import FileHeader, Producer
from ggshell.trail.misplaced import require_placed
from ggshell.trail.name import TrailName
from ggshell.trail.opened import open_file
from ggshell.trail.reach import require_reachable
from ggshell.trail.reader import TrailReader
from ggshell.types import Csn, TrailPosition

SAVE_SECONDS = 2.0
FLUSH_PAUSE = 0.02
"""Seconds between two background flushes under a steady load."""


def run(home: Home, group: str) -> int:
    """Run a distribution path until it is stopped; return the exit code."""
    return run_group(
        home, group, GroupKind.PATH, lambda context: forward(context, wanted_tables(context), 10, TrailForms(home))
    )


def wanted_tables(context: GroupContext) -> TableFilter:
    """Return the tables that a path sends: by the rule of ALTER DISTPATH or RECVPATH, or all."""
    options = context.checkpoint.options
    if not options.rule_objects:
        return TableFilter(["*.*"])
    return TableFilter(["*.*"], options.rule_objects) if options.rule_excludes else TableFilter(options.rule_objects)


def forward(
    context: GroupContext,
    wanted: TableFilter,
    checkpoint_seconds: int,
    forms: TrailForms,
    rows: TableStage = UNTOUCHED,
    ending: Ending | None = None,
    complete: Callable[[], bool] = lambda: True,
    source: Callable[[], dict[str, Any]] = dict,
) -> None:
    """Copy a group's source trail to its target trails until stopped; a lost receiver is connected again.

    ``complete``: whether the trail has everything that there is now, which only a copy of another home's trail may not.
    ``source``: what STATUS says about the connection to that home."""
    _require_source(context)
    end = ending or Ending(context, RunEnd())
    state = ConnectionState(context.clock)
    answer_while_waiting(context, state)

    def session(backoff: Backoff) -> None:
        try:
            connect(backoff)
        except ConnectionLostError as error:
            state.failed(error)
            raise
        finally:
            answer_while_waiting(context, state)

    def connect(backoff: Backoff) -> None:
        first = _first_header(context)
        outputs = open_outputs(context, _producer(context, first), forms, first, forwards=True)
        with contextlib.closing(outputs):
            connected(context, backoff)
            state.opened()
            worker = Forwarder(context, wanted, outputs, min(SAVE_SECONDS, checkpoint_seconds), rows, state, complete)

            def status(_: dict[str, Any]) -> dict[str, Any]:
                return {**worker.status(), **source()}

            context.verb("STATUS", status, live=status)
            worker.run(end)

    run_sessions(context, session, lambda: None)


def _producer(context: GroupContext, source: FileHeader | None) -> Producer:
    """The producer of the target trails: the database is that of the source trail."""
    database = (source.database_vendor, source.database_name, source.database_version) if source is not None else ()
    return Producer(context.group, f"ggshell {context.type}", *database)


def _require_source(context: GroupContext) -> None:
    """Check the group's position in the source trail before anything is written.

    Raises TrailError if the trail has lost the position, or was written again before it.
    """
    read, done = context.checkpoint.read, completed_of(context.checkpoint)
    if isinstance(read.current, TrailPosition):
        trail = TrailName.parse(read.trail, context.home.root)
        require_reachable(trail, read.current)
        name = f"{context.type} {context.group}"
        is_path = context.type.is_path
        place = " BEGIN SEQNO {seqno} RBA {rba}" if is_path else ", EXTSEQNO {seqno}, EXTRBA {rba}"
        remedy = f"ALTER {name}{place}, then START: transactions already in its target trail are skipped"
        require_placed(trail, read.current, done.csn if done is not None else None, name, remedy)


def _first_header(context: GroupContext) -> FileHeader | None:
    """Return the header of the file that will be read first, or None if there is no file yet."""
    place, read = context.checkpoint.read.current, context.checkpoint.read
    name = TrailName.parse(read.trail, context.home.root)
    known = name.sequences()
    seqno = place.seqno if isinstance(place, TrailPosition) else 0
    if not known:
        return None
    first = max(seqno, known[0])
    for number in (first, *(each for each in reversed(known) if each < first)):
        with contextlib.suppress(FileNotFoundError):  # not created yet: the previous file has the same format
            file = open_file(name, number)
            file.close()
            return file.header
    return None


class Forwarder:
    """One run of a pump or a path."""

    def __init__(
        self,
        context: GroupContext,
        wanted: TableFilter,
        outputs: Outputs,
        save_seconds: float,
        rows: TableStage,
        state: ConnectionState,
        complete: Callable[[], bool] = lambda: True,
    ) -> None:
        self._context = context
        self._outputs = outputs
        self._state = state
        self._complete = complete
        self._unacknowledged = Unacknowledged()
        self._eof_delay = context.checkpoint.options.path.eof_delay / 100
        checkpoint = context.checkpoint
        place = checkpoint.read.current
        self._start = place if isinstance(place, TrailPosition) else None
        self._trail = TrailName.parse(checkpoint.read.trail, context.home.root)
        self._reader = TrailReader(self._trail, self._start, keys=reader_keys(context.home))
        self._header: FileHeader | None = None
        self._progress = ReadingProgress(
            context.clock, checkpoint.record_time, checkpoint.caught_up, lambda: context.ahead
        )
        self._done = self._reader.position
        self._latest_xid = checkpoint.latest_xid
        self._completed = completed_of(checkpoint)
        self._heartbeats = path_heartbeats(context)
        self._rows = rows
        self._schedule = SaveSchedule(context.clock, save_seconds)
        self._unsent = self._unflushed = False
        """Whether rows were written that are not on their way, or not durable in every target."""
        self._next_flush = 0.0
        self._behind: Checkpoint | None = None
        wants, ignored = rows.around(self._heartbeats.wanting(wanted), wanted.ignored)
        outputs.begin(wants, None, ignored=ignored, sequences=wanted.sequence)
        self._source: CopySource | None = None
        if wanted.is_everything and rows.changes_nothing:
            self._source = CopySource(self._reader)
            outputs.copy_from(self._source)
        held = self._held = outputs.after
        self._last_read: Csn | None = None
        if held is not None:  # after a kill, the trail is ahead of the checkpoint
            self._completed = held.joined(self._completed) if self._completed is not None else held
        context.verb("GETLAG", lambda _: self._lag(), live=lambda _: self._progress.lag_answer(busy=True))
        context.verb("ROLLOVER", lambda _: self._rollover())
        context.reporting.roll_trail(self._rollover)

    def run(self, ending: Ending) -> None:
        runner, clock, reader = self._context.runner, self._context.clock, self._reader
        wake = reader.fileno()
        try:
            while not runner.stop_requested:
                reader.drain()
                batch = reader.read()
                self._note(batch)
                if batch is not None and (batch := ending.before(batch)) is None:
                    break
                if batch is not None:
                    self._copy(batch)
                else:
                    ending.trail_read()
                    self._outputs.check()
                    self._tell_skipped()
                now, at = clock.steady(), clock.now()
                self._flush(now, at_end=batch is None or reader.caught_up())
                self._save_when_due(now)
                if batch is not None:
                    runner.wait([], 0)
                    continue
                if self._complete() and not self._unflushed:
                    self._progress.reached_end(at)
                else:
                    self._progress.behind()
                self._schedule.hasten(now)
                self._rest(wake, now)
            self._save()
        finally:
            reader.close()
            if self._source is not None:
                self._source.close()

    def _rest(self, wake: int, now: float) -> None:
        """Wait at the end of the source trail for new data; with EOFDELAY for that time, even if data is written to it."""
        clock, runner = self._context.clock, self._context.runner
        if not self._eof_delay:
            pause = IDLE_SECONDS if self._behind is not None else self._schedule.pause(now)
            runner.wait([wake, *self._outputs.wake()], pause)
            return
        end = now + self._eof_delay
        while not runner.stop_requested and (left := end - clock.steady()) > 0:
            if self._schedule.unsaved or self._behind is not None:
                self._save_when_due(clock.steady())
            runner.wait(self._outputs.wake(), min(IDLE_SECONDS, left))
            self._outputs.check()

    def _note(self, batch: ChangeBatch | None) -> None:
        """Note, for copying, what was read; at the end of the trail, copy what stands after the last row."""
        if self._source is None:
            return
        if batch is not None:
            self._source.take(batch)
        elif self._outputs.copy_rest(self._source.idle()):
            self._unsent = self._unflushed = True

    def _copy(self, batch: ChangeBatch) -> None:
        """Write the rows of a batch that the trails do not contain yet."""
        self._follow()
        changed = self._rows.work(self._heartbeats.stamp_heartbeats(batch))
        parts = self._outputs.write(changed, changed=changed is not batch)  # a heartbeat was stamped
        if self._reader.caught_up():
            self._outputs.send()  # it is on its way while this process takes notes
        for part in parts:
            for table, io_type, count in tally(part):
                self._context.statistics.add(table, table, io_type, count)
        last = batch.pieces[-1]
        self._last_read = last.header.csn
        self._progress.processed(last.header.commit_time)
        self._unacknowledged.wrote(batch.pieces[0].header.commit_time)
        self._completed = (self._completed or Completed(last.header.csn, frozenset())).along(batch.pieces)
        if last.ends:
            self._done = TrailPosition(batch.seqno, batch.end_rba)
            self._latest_xid = last.header.xid
        self._schedule.worked()
        self._unsent = self._unflushed = True

    def _tell_skipped(self) -> None:
        """Warn once, at the end of the source trail, if all of it is skipped because the target trail goes further."""
        read, held = self._last_read, self._held
        if read is None or held is None or held.csn <= read:
            return
        self._held = None
        text = (
            f"trail {self._trail} ends at CSN {read}, but the target trail contains transactions up to CSN {held.csn}:"
            " every transaction up to that CSN is skipped"
        )
        self._context.report.event(Severity.WARNING, "GGS-00964", text)

    def _flush(self, now: float, *, at_end: bool) -> None:
        """Make durable what was written: at the end of the trail at once, otherwise in the background.

        Never waits for a receiver: one that stalls must not keep the rows from the others."""
        if not self._unflushed:
            return
        if at_end and self._unsent:
            self._outputs.flush_here()
            self._unsent = False
        elif not at_end and now >= self._next_flush:
            self._outputs.flush_behind()
            self._next_flush = now + FLUSH_PAUSE
        else:
            self._note_waiting()
            return
        self._unacknowledged.sent(self._outputs.transfers())
        self._note_waiting()

    def _note_waiting(self) -> None:
        """Note whether every target has what was written, and otherwise since when it waits."""
        if not self._unsent and self._outputs.are_durable():
            self._flushed()
        else:
            transfers = self._outputs.transfers()
            self._progress.waits(self._unacknowledged.oldest(transfers) if transfers else 0)

    def _flushed(self) -> None:
        self._unsent = self._unflushed = False
        self._unacknowledged.clear()
        self._progress.waits(0)

    def _follow(self) -> None:
        """Write in the format of the source file that is being read."""
        header = self._reader.header
        if header is not None and header is not self._header:
            self._header = header
            self._outputs.follow(header)

    def _save(self) -> None:
        """Make everything durable in the target, then write the checkpoint, never in another order."""
        self._outputs.flush()
        self._flushed()
        self._behind = None
        self._context.save(self._checkpoint(self._outputs.checkpoints()))

    def _save_when_due(self, now: float) -> None:
        """Write the checkpoint of what was read when it became due, as soon as every target is durable up to it.

        Neither a steady stream of rows nor the end of the trail waits for a target."""
        if not self._schedule.is_due(now):
            return
        if self._behind is None:
            self._behind = self._checkpoint(self._outputs.checkpoints_behind())
            self._schedule.taken()
            self._outputs.flush_behind()
        if self._outputs.hold(self._behind.write):
            self._context.save(self._behind)
            self._behind = None
            self._schedule.saved(now)

    def _checkpoint(self, write: tuple[WriteCheckpoint, ...]) -> Checkpoint:
        """Return the checkpoint of what has been read until now."""
        checkpoint, time = self._context.checkpoint, self._progress.record_time
        return checkpoint._replace(
            read=checkpoint.read.reached(self._done, time, recovery_time=time),
            write=write,
            record_time=time,
            caught_up=self._progress.caught_up,
            latest_csn=str(self._completed.csn) if self._completed is not None else "",
            latest_xid=self._latest_xid,
            options=without_rollover(with_completed(checkpoint.options, self._completed), self._outputs),
        )

    def _lag(self) -> dict[str, Any]:
        if not self._reader.at_end() or not self._complete():
            self._progress.behind()
        return self._progress.lag_answer()

    def _rollover(self) -> dict[str, Any]:
        self._behind = None  # it does not have the request
        return roll(self._context, self._outputs)

    def status(self) -> dict[str, Any]:
        """Return the answer to STATUS. Any thread can call this: a path may wait long for acknowledgments."""
        read = self._progress.read_answer(str(self._trail), self._done)
        transfers = self._outputs.transfers()
        return {
            "status": f"Recovery complete: {self._progress.reading}",
            "read": read,
            "write": written(self._outputs.checkpoints()),
            "slot": {},
            **(self._state.answer(transfers) if transfers else {}),
        }
