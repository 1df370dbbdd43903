"""Extract: from a database's log to durable trails.  Wires capture to trail and answers for it; nothing else lives here.

The order that makes a crash harmless: rows -> trail (fdatasync) -> checkpoint file -> the database's own mark (a slot).
Each may be behind the one before it, never ahead: what the trail holds is recognised by CSN and not written again, what the
log brings again is dropped, and a slot that is ahead of the checkpoint file is refused, since the rows between would be lost
in silence.  What is special to a kind of database stands behind ``SourceDatabase``.
"""

from __future__ import annotations

import gc
from typing import Any

from ggshell.capture.cache import TransactionCache
from ggshell.capture.decisions import Decision
from ggshell.capture.stream import Capture
from ggshell.errors import ConnectionLostError, ParameterError
from ggshell.params.files import ExtractParameters, load_extract
from ggshell.process.backoff import Backoff
from ggshell.process.bounded_recovery import ExtractRecovery, refuse_bounded
from ggshell.process.bounded_requests import BoundedRequests
from ggshell.process.ending import Ending
from ggshell.process.heartbeats import extract_heartbeats
from ggshell.process.held_log import HeldLog
from ggshell.process.lifecycle import GroupContext, run_group
from ggshell.process.open_transactions import OpenTransactions
from ggshell.process.outputs import Outputs, open_outputs
from ggshell.process.progress import Progress
from ggshell.process.reconnecting import connected, run_sessions
from ggshell.process.row_environment import queries_login, row_environment
from ggshell.process.sources import source_of
from ggshell.process.table_stage import TableStage
from ggshell.process.tables import TableFilter
from ggshell.process.tally import tally
from ggshell.process.trail_forms import TrailForms
from ggshell.record.transaction import TransactionHeader
from ggshell.store.checkpoint import GroupType, SourceType
from ggshell.store.events import Severity
from ggshell.store.home import Home
from ggshell.trail.name import TrailName
from ggshell.types import Csn, LogPosition

IDLE_SECONDS = 1.0
FLUSH_PAUSE = 0.005
"""Under a steady stream one sync, behind our back, serves what came within this time; a lone transaction is synced at once."""
WATCH_SECONDS = 2.0
DECISIONS = "decisions"


def run(home: Home, group: str) -> int:
    """Run an Extract (or a pump, by its source) until it is told to stop; the exit code."""
    return run_group(home, group, GroupType.EXTRACT, _body)


def _body(context: GroupContext) -> None:
    parameters = load_extract(context.home.parameters(context.group))
    tables = TableFilter(
        [table.pattern for table in parameters.tables],
        parameters.excludes,
        [table.ignored for table in parameters.tables],
    )
    if context.checkpoint.read.source is SourceType.TRAIL:
        _pump(context, parameters, tables)
    elif context.checkpoint.read.source is SourceType.TABLE:
        from ggshell.process import initial_load

        initial_load.load(context, parameters, tables, _forms(context, parameters))
    else:
        _refuse_load(context, parameters)
        LogExtract(context, parameters, tables).run()


def _pump(context: GroupContext, parameters: ExtractParameters, tables: TableFilter) -> None:
    from ggshell.process import path

    refuse_bounded(context, parameters.bounded, "a trail holds committed transactions only")
    trail = TrailName.parse(context.checkpoint.read.trail, context.home.root)
    environment = row_environment(context, trail, None, queries_login(context.home, parameters))
    rows, ending = TableStage(parameters.tables, environment), Ending(context, parameters.end)
    path.forward(context, tables, parameters.checkpoint_seconds, _forms(context, parameters), rows, ending)


def _refuse_load(context: GroupContext, parameters: ExtractParameters) -> None:
    """What only an initial load can do.  Raises ParameterError."""
    asked = {
        "SOURCEISTABLE": parameters.reads_tables,
        "EXTFILE and RMTFILE": any(item.file for item in parameters.trails),
        "SQLPREDICATE": any(table.predicate for table in parameters.tables),
    }
    for name in [name for name, given in asked.items() if given]:
        raise ParameterError(
            f"{name}: for an initial load only, and {context.group} reads a log",
            where=str(context.home.parameters(context.group)),
            hint=f"ADD EXTRACT {context.group}, SOURCEISTABLE makes a group that loads",
        )


def _forms(context: GroupContext, parameters: ExtractParameters) -> TrailForms:
    return TrailForms(
        context.home, parameters.trails, decrypts=parameters.decrypts, restart_record=parameters.restart_record
    )


class LogExtract:
    """One run of an Extract on a database's log."""

    def __init__(self, context: GroupContext, parameters: ExtractParameters, wanted: TableFilter) -> None:
        self._context = context
        self._parameters = parameters
        self._heartbeats, never = extract_heartbeats(context, self._restart_time)
        self._wanted = self._heartbeats.wanting(wanted, never)
        self._ignored = wanted.ignored
        self._held = HeldLog(parameters.log_retention, context.clock)
        self._source = source_of(context, parameters, self._wanted)
        checkpoint = context.checkpoint
        self._progress = Progress(context.clock, checkpoint.record_time, checkpoint.caught_up)
        self._capture: Capture | None = None
        login = queries_login(context.home, parameters)
        self._rows = TableStage(parameters.tables, row_environment(context, None, self._database_facts, login))
        self._latest = (checkpoint.latest_csn, checkpoint.latest_xid)
        self._outputs: Outputs | None = None
        self._recovery = ExtractRecovery(context, parameters, self._source)
        self._ending = Ending(context, parameters.end)
        OpenTransactions(context, parameters, self._source, self._recovery, lambda: self._capture, self._save)
        BoundedRequests(context, self._source, self._recovery, lambda: self._capture, parameters.checkpoint_seconds)
        context.verb("GETLAG", lambda _: self._progress.lag_answer())
        context.verb("STATUS", lambda _: self._status())
        context.verb("ROLLOVER", lambda _: self._rollover())
        context.reporting.roll_trail(self._rollover)

    def run(self) -> None:
        """Capture until stopped; a database that goes away is waited for, with trail and checkpoint as they are."""
        try:
            run_sessions(self._context, self._session, self._close_capture)
        finally:
            self._close_capture()
            if self._outputs is not None:
                self._outputs.close()

    def _database_facts(self) -> dict[str, str]:
        """What @GETENV's DBENVIRONMENT tells."""
        found = {name: self._source.database_fact(name) for name in ("DBNAME", "DBUSER", "DBVERSION", "SERVERNAME")}
        return {name: value for name, value in found.items() if value}

    def _open(self) -> Capture:
        """Begin to read behind what the trail holds."""
        context, checkpoint = self._context, self._context.checkpoint
        if self._outputs is None:
            producer = self._source.producer(context.group)
            self._outputs = open_outputs(context, producer, _forms(context, self._parameters))
        begin = Csn.parse(checkpoint.begin_csn) if checkpoint.begin_csn else Csn(0)
        after = max(self._outputs.after or begin, begin)
        since = int(checkpoint.options.get("since", 0))
        wanted, ignored = self._rows.around(self._wanted, self._ignored)
        self._outputs.begin(wanted, begin, truncates=self._parameters.truncates, since=since, ignored=ignored)
        cache = TransactionCache(self._parameters.cache_size, context.home.root / "dirtmp")
        for fields in checkpoint.options.get(DECISIONS, ()):
            cache.decide(Decision.of_option(fields))
        log = self._source.open(after, begin, self._recovery.start(cache, begin))
        self._recovery.opened(cache)
        return Capture(log, cache, after, self._ending.moment)

    def _session(self, backoff: Backoff) -> None:
        """One connection's life: read, write, flush, again."""
        context, runner, clock = self._context, self._context.runner, self._context.clock
        self._close_capture()
        self._capture = capture = self._open()
        outputs = self._require_outputs()
        self._look()
        gc.collect()
        gc.freeze()  # what is loaded by now stays: no collection need look at it again
        connected(context, backoff)
        unsaved, next_flush = True, 0.0
        next_save = clock.steady()
        dirty = False
        while not runner.stop_requested:
            batch = capture.read()
            if batch is not None:
                for part in outputs.write(self._rows.work(self._heartbeats.carry(batch))):
                    for table, io_type, count in tally(part):
                        context.statistics.add(table, table, io_type, count)
                header = batch.pieces[-1].header
                self._latest = (str(header.csn), header.xid)
                self._progress.processed(header.commit_time)
                dirty = unsaved = True
            if self._has_ended(capture, idle=batch is None):
                self._ending.reached()
            self._recovery.turn(capture, self._save)
            now = clock.steady()
            if dirty and (batch is None or capture.quiet):
                outputs.flush()
                dirty = False
            elif dirty and now >= next_flush:
                outputs.flush_behind()
                next_flush = now + FLUSH_PAUSE
            if now >= next_save:
                self._look()
                self._save()
                unsaved, next_save = False, now + self._save_interval()
            if batch is None:
                self._note_end(capture)
                if unsaved and self._progress.at_end:
                    next_save = min(next_save, now + IDLE_SECONDS)
                pause = min(IDLE_SECONDS, max(0.0, next_save - now)) if capture.drained else 0.0
                runner.wait([capture.fileno()], pause)
            else:
                runner.wait([], 0)
        self._save()

    def _restart_time(self, header: TransactionHeader) -> int:
        """The log's time at a transaction's restart position."""
        oldest = self._capture.cache.oldest() if self._capture is not None else None
        earlier = oldest is not None and oldest.begin and oldest.begin <= header.restart
        return oldest.begin_time if oldest is not None and earlier else header.commit_time

    def _save_interval(self) -> float:
        return float(min(self._parameters.checkpoint_seconds, WATCH_SECONDS))

    def _note_end(self, capture: Capture) -> None:
        """Nothing is left when all the log that there was at the last look has been read."""
        end = self._source.end
        if capture.drained and capture.state.read >= end:
            self._progress.reached_end()
        elif capture.state.read < end:
            self._progress.behind()

    def _has_ended(self, capture: Capture, *, idle: bool) -> bool:
        """Whether END is reached: by a commit, or, at the log's end, by the time."""
        if capture.ended or not (idle and self._ending.passed):
            return capture.ended
        self._look()
        return capture.drained and capture.state.read >= self._source.end

    def _require_outputs(self) -> Outputs:
        if self._outputs is None:
            raise ConnectionLostError("the trail is not open")
        return self._outputs

    def _look(self) -> None:
        warning = self._source.look()
        if warning is not None:
            self._context.report.event(Severity.WARNING, "GGS-00510", warning)

    def _save(self) -> None:
        """Make the trail durable, write the checkpoint, then tell the database; never in another order."""
        capture, context = self._capture, self._context
        if capture is None or self._outputs is None:
            return
        self._outputs.flush()
        state = capture.state
        oldest = capture.cache.oldest()
        places = self._source.places(state, oldest)
        floor = self._recovery.restart_floor()
        restart = min(places.recovery.csn, floor) if floor is not None else places.recovery.csn
        decisions = capture.cache.decisions(state.read, restart, settled=capture.settled)
        first = context.checkpoint.read.startup
        read = context.checkpoint.read._replace(
            startup=first if isinstance(first, LogPosition) and first.csn else places.current,
            recovery=places.recovery,
            recovery_time=oldest.begin_time if oldest is not None else self._progress.record_time,
            current=places.current,
            current_time=self._progress.record_time,
        )
        context.save(
            context.checkpoint._replace(
                read=read,
                write=self._outputs.checkpoints(),
                record_time=self._progress.record_time,
                caught_up=self._progress.caught_up,
                latest_csn=self._latest[0],
                latest_xid=self._latest[1],
                options={
                    **context.checkpoint.options,
                    **self._source.options,
                    **self._recovery.options(capture),
                    DECISIONS: [item.as_option() for item in decisions],
                },
            )
        )
        free = self._held.released(state.safe)
        if free is not None:
            capture.confirm(free)

    def _close_capture(self) -> None:
        if self._capture is not None:
            self._capture.close()
            self._capture = None
        self._source.close()

    def _rollover(self) -> dict[str, Any]:
        if self._outputs is not None:  # else nothing was written yet
            self._outputs.rollover()
        return {}

    def _status(self) -> dict[str, Any]:
        state = self._capture.state if self._capture is not None else None
        reading = "At EOF" if self._progress.at_end else "Processing data"
        read = {
            **(self._source.shown(state.read if self._source.bounded else state.safe) if state else {}),
            "timestamp": self._progress.record_time,
        }
        write = [
            {"trail": item.trail, "seqno": item.current.seqno, "rba": item.current.rba, "timestamp": item.current_time}
            for item in (self._outputs.checkpoints() if self._outputs is not None else ())
        ]
        words = f"Recovery complete: {reading}" if state else "Waiting for the database"
        recovering = self._recovery.recovering
        if state and recovering is not None and not recovering.complete:
            words = f"In recovery[{1 if recovering.plan.checkpoint else 2}]: {recovering.words()}"
        return {
            "status": words,
            "read": read,
            "write": write,
            "slot": self._source.facts,
            "recovering": dict(recovering.facts()) if recovering is not None else None,
        }
