"""Pump and distribution path: a trail carried on to another trail.  Wires reader, selection and writer."""

from __future__ import annotations

from typing import Any

from ggshell.params.run_end import RunEnd
from ggshell.process.ending import Ending
from ggshell.process.heartbeats import path_heartbeats
from ggshell.process.lifecycle import GroupContext, run_group
from ggshell.process.outputs import Outputs, open_outputs
from ggshell.process.progress import Progress
from ggshell.process.table_stage import UNTOUCHED, TableStage
from ggshell.process.tables import TableFilter
from ggshell.process.tally import tally
from ggshell.process.trail_forms import TrailForms, reader_keys
from ggshell.store.checkpoint import GroupType
from ggshell.store.home import Home
from ggshell.trail.fileheader import FileHeader, Producer
from ggshell.trail.name import TrailName
from ggshell.trail.opened import open_file
from ggshell.trail.reader import TrailReader
from ggshell.types import TrailPosition

SAVE_SECONDS = 2.0
IDLE_SECONDS = 1.0


def run(home: Home, group: str) -> int:
    """Run a distribution path until it is told to stop; the exit code."""
    return run_group(
        home, group, GroupType.PATH, lambda context: forward(context, TableFilter(["*.*"]), 10, TrailForms(home))
    )


def forward(
    context: GroupContext,
    wanted: TableFilter,
    checkpoint_seconds: int,
    forms: TrailForms,
    rows: TableStage = UNTOUCHED,
    ending: Ending | None = None,
) -> None:
    """Carry a group's source trail to its targets until stopped."""
    producer = Producer(context.group, f"ggshell {context.type}")
    outputs = open_outputs(context, producer, forms, _first_header(context))
    try:
        Forwarder(context, wanted, outputs, min(SAVE_SECONDS, checkpoint_seconds), rows).run(
            ending or Ending(context, RunEnd())
        )
    finally:
        outputs.close()


def _first_header(context: GroupContext) -> FileHeader | None:
    """The header of the file that will be read first, None while there is none."""
    place, read = context.checkpoint.read.current, context.checkpoint.read
    name = TrailName.parse(read.trail, context.home.root)
    known = name.sequences()
    seqno = place.seqno if isinstance(place, TrailPosition) else 0
    if not known:
        return None
    file = open_file(name, max(seqno, known[0]) if seqno in known or seqno < known[0] else known[-1])
    file.close()
    return file.header


class Forwarder:
    """One run of a pump or path."""

    def __init__(
        self,
        context: GroupContext,
        wanted: TableFilter,
        outputs: Outputs,
        save_seconds: float,
        rows: TableStage,
    ) -> None:
        self._context = context
        self._outputs = outputs
        self._save_seconds = save_seconds
        checkpoint = context.checkpoint
        place = checkpoint.read.current
        self._start = place if isinstance(place, TrailPosition) else None
        self._trail = TrailName.parse(checkpoint.read.trail, context.home.root)
        self._reader = TrailReader(self._trail, self._start, keys=reader_keys(context.home))
        self._header: FileHeader | None = None
        self._progress = Progress(context.clock, checkpoint.record_time, checkpoint.caught_up)
        self._done = self._reader.position
        self._latest = (checkpoint.latest_csn, checkpoint.latest_xid)
        self._heartbeats = path_heartbeats(context)
        self._rows = rows
        wants, ignored = rows.around(self._heartbeats.wanting(wanted), wanted.ignored)
        outputs.begin(wants, None, ignored=ignored)
        context.verb("GETLAG", lambda _: self._lag())
        context.verb("STATUS", lambda _: self._status())
        context.verb("ROLLOVER", lambda _: self._rollover())
        context.reporting.roll_trail(self._rollover)

    def run(self, ending: Ending) -> None:
        context, runner, clock, reader = self._context, self._context.runner, self._context.clock, self._reader
        wake = reader.fileno()
        next_save, unsaved = clock.steady(), True
        try:
            while not runner.stop_requested:
                reader.drain()
                batch = reader.read()
                if batch is not None and (batch := ending.before(batch)) is None:
                    break
                if batch is not None:
                    self._follow()
                    for part in self._outputs.write(self._rows.work(self._heartbeats.carry(batch))):
                        for table, io_type, count in tally(part):
                            context.statistics.add(table, table, io_type, count)
                    last = batch.pieces[-1]
                    self._progress.processed(last.header.commit_time)
                    if last.ends:
                        self._outputs.flush()
                        self._done = TrailPosition(batch.seqno, batch.end_rba)
                        self._latest = (str(last.header.csn), last.header.xid)
                    unsaved = True
                else:
                    self._progress.reached_end()
                    ending.trail_read()
                now = clock.steady()
                if now >= next_save:
                    self._save()
                    unsaved, next_save = False, now + self._save_seconds
                if batch is None:
                    if unsaved:
                        next_save = min(next_save, now + IDLE_SECONDS)
                    runner.wait([wake], min(IDLE_SECONDS, max(0.0, next_save - now)))
                else:
                    runner.wait([], 0)
            self._save()
        finally:
            reader.close()

    def _follow(self) -> None:
        """Write as the file says that the rows come from."""
        header = self._reader.header
        if header is not None and header is not self._header:
            self._header = header
            self._outputs.follow(header)

    def _save(self) -> None:
        context = self._context
        time = self._progress.record_time
        read = context.checkpoint.read.reached(self._done, time, recovery_time=time)
        context.save(
            context.checkpoint._replace(
                read=read,
                write=self._outputs.checkpoints(),
                record_time=time,
                caught_up=self._progress.caught_up,
                latest_csn=self._latest[0],
                latest_xid=self._latest[1],
            )
        )

    def _lag(self) -> dict[str, Any]:
        if not self._reader.at_end():
            self._progress.behind()
        return self._progress.lag_answer()

    def _rollover(self) -> dict[str, Any]:
        self._outputs.rollover()
        return {}

    def _status(self) -> dict[str, Any]:
        read = self._progress.read_answer(str(self._trail), self._done)
        write = [
            {"trail": item.trail, "seqno": item.current.seqno, "rba": item.current.rba, "timestamp": item.current_time}
            for item in self._outputs.checkpoints()
        ]
        return {"status": f"Recovery complete: {self._progress.reading}", "read": read, "write": write, "slot": {}}
