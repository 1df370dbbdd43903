"""Extract: captures from a database log into durable trails. This module connects capture and trail and answers requests.

The order of writes makes crashes harmless: rows -> trail (fdatasync) -> checkpoint file -> replication slot. A later step
never covers more than an earlier one. After a restart the log sends some transactions again: those that the trail already
contains are recognized by CSN and transaction id, and dropped. A slot that is ahead of both the trail and the checkpoint
file is refused, because the rows in between would be lost silently. ``SourceDatabase`` hides the differences between
databases.
"""

from __future__ import annotations

import gc
from typing import Any

from ggshell.connectors.login import connection_string
from ggshell.connectors.registry import connector_for
from ggshell.connectors.source import Places
from ggshell.errors import CaptureError, ConnectionLostError, LogRefusedError, ParameterError
from ggshell.groups.bounded_recovery import BoundedRequests, ExtractRecovery, refuse_bounded
from ggshell.groups.connection_state import ConnectionState, written
from ggshell.groups.ending import Ending
from ggshell.groups.heartbeats import extract_heartbeats
from ggshell.groups.held_log import HeldLog
from ggshell.groups.lifecycle import GroupContext, run_group
from ggshell.groups.open_transactions import OpenTransactions
from ggshell.groups.outputs import Outputs, open_outputs, roll, without_rollover
from ggshell.groups.progress import ReadingProgress, completed_of, with_completed
from ggshell.groups.reconnecting import Backoff, StuckLog, connected, run_sessions
from ggshell.groups.row_environment import queries_login, row_environment
from ggshell.groups.save_schedule import SaveSchedule
from ggshell.groups.statistics import tally
from ggshell.groups.table_stage import TableStage
from ggshell.groups.trail_forms import TrailForms
from ggshell.home.checkpoint import GroupKind, GroupOptions, SourceType
from ggshell.home.events import Severity
from ggshell.home.home import Home
from ggshell.home.typed_fields import plain
from ggshell.parameters.loading import load_extract
from ggshell.parameters.process_parameters import ExtractParameters
from ggshell.parameters.table_patterns import TableFilter
from ggshell.parameters.trail_statements import IDLE, IDLE_CODE, IDLE_HINT
from ggshell.pipeline.capture.cache import TransactionCache
from ggshell.pipeline.capture.decisions import Decision
from ggshell.pipeline.capture.source import LogState
from ggshell.pipeline.capture.stream import Capture
from ggshell.record.change import ChangeBatch
from ggshell.record.transaction import Completed, TransactionHeader
from ggshell.trail.name import TrailName
from ggshell.types import Csn, LogPosition, TableName

FLUSH_PAUSE = 0.005
"""Seconds between two background syncs under a steady load; a single transaction is synced at once."""
WATCH_SECONDS = 2.0


def run(home: Home, group: str) -> int:
    """Run an Extract, a pump or an initial load, depending on the group's source, until it stops; return the exit code."""
    return run_group(home, group, GroupKind.EXTRACT, _body)


def _body(context: GroupContext) -> None:
    if context.checkpoint.options.alias_of:
        from ggshell.groups import alias_extract

        alias_extract.run_alias(context)
        return
    path = context.home.parameters(context.group)
    parameters = load_extract(path, context.group)
    if context.checkpoint.options.passive:
        from ggshell.groups.passive_extract import require_passive_parameters

        require_passive_parameters(parameters, str(path))
    tables = TableFilter(
        [table.pattern for table in parameters.tables],
        parameters.excludes,
        [table.ignored for table in parameters.tables],
        parameters.sequences,
    )
    context.statistics.set_selection(tables)
    for place in parameters.idle_encryption:
        context.report.event(Severity.WARNING, IDLE_CODE, f"{IDLE} ({place}). {IDLE_HINT[0].upper()}{IDLE_HINT[1:]}.")
    if context.checkpoint.read.source is SourceType.TRAIL:
        _pump(context, parameters, tables)
    elif context.checkpoint.read.source is SourceType.TABLE:
        from ggshell.groups import initial_load

        initial_load.load(context, parameters, tables, _forms(context, parameters))
    else:
        _refuse_load(context, parameters)
        LogExtract(context, parameters, tables).run()


def _pump(context: GroupContext, parameters: ExtractParameters, tables: TableFilter) -> None:
    from ggshell.groups import path

    refuse_bounded(context, parameters.bounded, "a trail contains only committed transactions")
    trail = TrailName.parse(context.checkpoint.read.trail, context.home.root)
    environment = row_environment(context, trail, None, queries_login(context.home, parameters))
    rows, ending = TableStage(parameters.tables, environment), Ending(context, parameters.end)
    path.forward(context, tables, parameters.checkpoint_seconds, _forms(context, parameters), rows, ending)


def _refuse_load(context: GroupContext, parameters: ExtractParameters) -> None:
    """Refuse the parameters that are valid only for an initial load. Raises ParameterError."""
    asked = {
        "SOURCEISTABLE": parameters.reads_tables,
        "EXTFILE and RMTFILE": any(item.file for item in parameters.trails),
        "SQLPREDICATE": any(table.predicate for table in parameters.tables),
    }
    for name in [name for name, given in asked.items() if given]:
        raise ParameterError(
            f"{name} is valid only for an initial load, but {context.group} reads a log",
            where=str(context.home.parameters(context.group)),
            hint=f"use ADD EXTRACT {context.group}, SOURCEISTABLE to add a group for an initial load",
        )


def _forms(context: GroupContext, parameters: ExtractParameters) -> TrailForms:
    trails = parameters.trails
    if context.checkpoint.options.passive:  # its alias in another home connects to this one
        trails = tuple(each._replace(host=None) for each in trails)
    return TrailForms(context.home, trails, decrypts=parameters.decrypts, restart_record=parameters.restart_record)


class _Flushing:
    """Makes the rows of one session durable: at once when no more follow, and otherwise in the background."""

    def __init__(self, outputs: Outputs) -> None:
        self._outputs = outputs
        self._unflushed = False
        self._next = 0.0

    def wrote(self) -> None:
        self._unflushed = True

    def flush(self, now: float, *, at_end: bool) -> None:
        """Flush what was written; ``at_end``: the source has no more rows at the moment."""
        if not self._unflushed:
            return
        if at_end:
            self._outputs.flush()
            self._unflushed = False
        elif now >= self._next:
            self._outputs.flush_behind()
            self._next = now + FLUSH_PAUSE


class LogExtract:
    """One run of an Extract on a database log."""

    def __init__(self, context: GroupContext, parameters: ExtractParameters, wanted: TableFilter) -> None:
        self._context = context
        self._parameters = parameters
        self._heartbeats, never = extract_heartbeats(context, self._restart_time)
        self._wanted = self._heartbeats.wanting(wanted, never)
        self._ignored, self._sequence = wanted.ignored, wanted.sequence
        self._held = HeldLog(parameters.log_retention, context.clock)
        source = connection_string(context.home, parameters.login)
        self._source = connector_for(source).source(context, parameters, self._wanted, source)
        checkpoint = context.checkpoint
        self._progress = ReadingProgress(
            context.clock, checkpoint.record_time, checkpoint.caught_up, lambda: context.ahead
        )
        self._capture: Capture | None = None
        login = queries_login(context.home, parameters)
        self._rows = TableStage(parameters.tables, row_environment(context, None, self._database_facts, login))
        self._latest_xid = checkpoint.latest_xid
        self._startup: tuple[LogPosition, int] | None = None
        self._completed = completed_of(checkpoint)
        self._outputs: Outputs | None = None
        self._receivers = ConnectionState(context.clock)
        self._unfinished: list[tuple[TableName, int, int]] = []
        self._stuck = StuckLog()
        self._recovery = ExtractRecovery(context, parameters, self._source)
        self._ending = Ending(context, parameters.end)
        OpenTransactions(context, parameters, self._source, self._recovery, lambda: self._capture, self._save)
        BoundedRequests(context, self._source, self._recovery, lambda: self._capture, parameters.checkpoint_seconds)
        progress = self._progress
        context.verb("GETLAG", lambda _: progress.lag_answer(), live=lambda _: progress.lag_answer(busy=True))
        context.verb("STATUS", lambda _: self._status())
        context.verb("ROLLOVER", lambda _: self._rollover())
        context.reporting.roll_trail(self._rollover)

    def run(self) -> None:
        """Capture until stopped. While the database is unavailable, trail and checkpoint do not change."""
        try:
            run_sessions(self._context, self._watched_session, self._lost)
        finally:
            self._close_capture()
            if self._outputs is not None:
                self._outputs.close()

    def _database_facts(self) -> dict[str, str]:
        """Return the values of @GETENV's DBENVIRONMENT."""
        found = {name: self._source.database_fact(name) for name in ("DBNAME", "DBUSER", "DBVERSION", "SERVERNAME")}
        return {name: value for name, value in found.items() if value}

    def _open(self) -> Capture:
        """Start reading after the last transaction in the trail."""
        context, checkpoint = self._context, self._context.checkpoint
        if self._outputs is not None and self._outputs.is_broken:
            self._outputs.close()
            self._outputs = None
            self._completed = completed_of(checkpoint)  # what a receiver did not acknowledge is not completed
        if self._outputs is None:
            producer = self._source.producer(context.group)
            self._outputs = open_outputs(context, producer, _forms(context, self._parameters))
            self._receivers.opened()
            for trail in self._outputs.no_longer_encrypted:
                text = f"Trail {trail} was encrypted, but is now written unencrypted"
                context.report.event(
                    Severity.WARNING, "GGS-00576", f"{text}: to encrypt it again, add ENCRYPTTRAIL before EXTTRAIL."
                )
        self._clean_up(self._outputs)
        begin = Csn.parse(checkpoint.begin_csn) if checkpoint.begin_csn else Csn(0)
        self._outputs.set_completed(self._completed)
        floor = Completed(begin)
        held = self._outputs.after
        after = floor if held is None else held.joined(floor)
        if held is not None:  # after a kill, the trail is ahead of the checkpoint
            self._completed = held.joined(self._completed) if self._completed is not None else held
        since = checkpoint.options.since
        wanted, ignored = self._rows.around(self._wanted, self._ignored)
        truncates = self._parameters.truncates
        self._outputs.begin(wanted, floor, truncates=truncates, since=since, ignored=ignored, sequences=self._sequence)
        cache = TransactionCache(self._parameters.cache_size, context.home.root / "dirtmp")
        for fields in checkpoint.options.decisions:
            cache.decide(Decision.of_option(fields))
        log = self._source.open(after, begin, self._recovery.start(cache, begin))
        self._recovery.opened(cache)
        return Capture(log, cache, after, self._ending.moment)

    def _clean_up(self, outputs: Outputs) -> None:
        """Clean up after the previous session: complete transactions are kept; the incomplete one will be sent again."""
        outputs.remove_unfinished()
        for table, io_type, count in self._unfinished:
            self._context.statistics.take_back(table, table, io_type, count)
        self._unfinished.clear()

    def _count(self, part: ChangeBatch) -> None:
        """Count rows that are written to the trail; the rows of an incomplete transaction may be subtracted again."""
        for table, io_type, count in tally(part):
            self._context.statistics.add(table, table, io_type, count)
            self._unfinished.append((table, io_type, count))
        if part.pieces[-1].ends:
            self._unfinished.clear()

    def _watched_session(self, backoff: Backoff) -> None:
        try:
            self._session(backoff)
        except ConnectionLostError as error:
            self._receivers.lost_by(error)
            raise

    def _session(self, backoff: Backoff) -> None:
        """Run one connection: read, write and flush until stopped or disconnected."""
        context, runner, clock = self._context, self._context.runner, self._context.clock
        self._close_capture()
        self._capture = capture = self._open()
        outputs = self._require_outputs()
        self._check()
        gc.collect()
        gc.freeze()  # objects loaded so far are permanent: exclude them from garbage collection
        if not self._stuck.times:
            connected(context, backoff)
        flushing = _Flushing(outputs)
        schedule = SaveSchedule(clock, min(self._parameters.checkpoint_seconds, WATCH_SECONDS))
        while not runner.stop_requested:
            batch = self._read(capture, backoff)
            if batch is not None:
                self._write(batch, outputs)
                flushing.wrote()
                schedule.worked()
            if self._has_ended(capture, idle=batch is None):
                self._ending.reached()
            self._recovery.turn(capture, self._save)
            now = clock.steady()
            flushing.flush(now, at_end=batch is None or capture.quiet)
            if schedule.is_due(now):
                self._check()
                self._save()
                schedule.taken()
                schedule.saved(now)
            if batch is not None:
                runner.wait([], 0)
                continue
            outputs.check()
            self._note_end(capture)
            if self._progress.at_end:
                schedule.hasten(now)
            runner.wait([capture.fileno(), *outputs.wake()], schedule.pause(now) if capture.drained else 0.0)
        self._save()

    def _write(self, batch: ChangeBatch, outputs: Outputs) -> None:
        """Write the rows of a batch to the trails, and record the last transaction."""
        for part in outputs.write(self._rows.work(self._heartbeats.stamp_heartbeats(batch))):
            self._count(part)
        header = batch.pieces[-1].header
        self._latest_xid = header.xid
        self._completed = (self._completed or Completed(header.csn, frozenset())).along(batch.pieces)
        self._progress.processed(header.commit_time)

    def _read(self, capture: Capture, backoff: Backoff) -> ChangeBatch | None:
        """Read the next batch.

        Raises CaptureError if the log cannot be read any further, after everything before that point is in the trail.
        Raises LogRefusedError if a retry, possibly in another form, can succeed.
        """
        try:
            batch = capture.read()
        except CaptureError:
            self._save()
            raise
        except LogRefusedError as error:
            self._save()
            self._stuck.refused(error, capture.state.safe)
            change = self._source.refused(capture.state.safe)
            if change:
                self._context.report.event(Severity.WARNING, "GGS-00509", change)
            raise
        if self._stuck.times and self._stuck.passed(capture.state.safe):
            connected(self._context, backoff)
        return batch

    def _restart_time(self, header: TransactionHeader) -> int:
        """Return the log's time at a transaction's restart position."""
        oldest = self._capture.cache.oldest() if self._capture is not None else None
        earlier = oldest is not None and oldest.begin and oldest.begin <= header.restart
        return oldest.begin_time if oldest is not None and earlier else header.commit_time

    def _note_end(self, capture: Capture) -> None:
        """Record whether the log was read up to the end that was seen at the last check."""
        end = self._source.end
        if capture.drained and capture.state.read >= end:
            self._progress.reached_end()
        elif capture.state.read < end:
            self._progress.behind()

    def _has_ended(self, capture: Capture, *, idle: bool) -> bool:
        """Whether END is reached: by a commit, or by the time at the end of the log."""
        if capture.ended or not (idle and self._ending.passed):
            return capture.ended
        self._check()
        return capture.drained and capture.state.read >= self._source.end

    def _require_outputs(self) -> Outputs:
        if self._outputs is None:
            raise ConnectionLostError("the trail is not open")
        return self._outputs

    def _check(self) -> None:
        warning = self._source.check()
        self._context.statistics.not_captured = self._source.not_captured
        if warning is not None:
            self._context.report.event(Severity.WARNING, "GGS-00510", warning)

    def _save(self) -> None:
        """Make the trail durable, write the checkpoint, then confirm to the database; never in another order."""
        capture, context = self._capture, self._context
        if capture is None or self._outputs is None:
            return
        self._outputs.flush()
        state = capture.state
        oldest = capture.cache.oldest()
        places = self._source.places(state, oldest)
        floor = self._recovery.restart_floor()
        restart = min(places.recovery.csn, floor) if floor is not None else places.recovery.csn
        decisions = capture.cache.decisions(state.read, restart, handed_out=capture.handed_out)
        moment = self._read_time(places, state)
        if self._startup is None and places.current.csn and (places.current.sequence or not self._source.bounded):
            self._startup = places.current, moment
        started, started_at = self._startup or (context.checkpoint.read.startup, context.checkpoint.read.startup_time)
        read = context.checkpoint.read._replace(
            startup=started,
            startup_time=started_at,
            recovery=places.recovery,
            recovery_time=oldest.begin_time if oldest is not None else moment,
            current=places.current,
            current_time=moment,
        )
        context.save(
            context.checkpoint._replace(
                read=read,
                write=self._outputs.checkpoints(),
                record_time=self._progress.record_time,
                caught_up=self._progress.caught_up,
                latest_csn=str(self._completed.csn) if self._completed is not None else "",
                latest_xid=self._latest_xid,
                options=without_rollover(self._noted(capture), self._outputs)._replace(
                    decisions=tuple(item.as_option() for item in decisions)
                ),
            )
        )
        free = self._held.released(state.safe)
        if free is not None:
            capture.confirm(free)

    def _noted(self, capture: Capture) -> GroupOptions:
        """Return the checkpoint's options with what is known of the source and the last transactions now."""
        options = with_completed(self._context.checkpoint.options, self._completed)
        return self._recovery.noted(self._source.noted(options), capture)

    def _read_time(self, places: Places, state: LogState) -> int:
        """Return the time of the last record read, from the log's own times if it has them."""
        log, before = self._source.bounded, self._context.checkpoint.read.current_time
        if log is None:
            return self._progress.record_time
        read_again = places.current.csn > state.read  # during a recovery, keep the position that was read before
        return before if read_again else log.time or before or self._progress.record_time

    def _lost(self) -> None:
        """Close the session after a connection was lost; whether the log has more is unknown until the next one."""
        self._close_capture()
        self._progress.behind()

    def _close_capture(self) -> None:
        if self._capture is not None:
            self._capture.close()
            self._capture = None
        self._source.close()

    def _rollover(self) -> dict[str, Any]:
        outputs = self._outputs
        return roll(self._context, None if outputs is None or outputs.is_broken else outputs)

    def _status(self) -> dict[str, Any]:
        state = self._capture.state if self._capture is not None else None
        reading = "At EOF" if self._progress.at_end else "Processing data"
        read = {
            "place": plain(
                self._source.read_position(state.read if self._source.bounded else state.safe) if state else {}
            ),
            "timestamp": self._progress.record_time,
        }
        outputs = self._outputs
        remote = [each.receiver_place for each in self._context.checkpoint.write if each.is_elsewhere]
        words = f"Recovery complete: {reading}" if state else "Waiting for the database"
        if remote and not self._receivers.connected and self._receivers.error:
            words = f"Waiting for the receiver at {', '.join(remote)}"
        words = self._stuck.words or words
        recovering = self._recovery.recovering
        if state and recovering is not None and not recovering.complete:
            words = f"In recovery[{1 if recovering.recovery.manifest else 2}]: {recovering.words()}"
        return {
            "status": words,
            "read": read,
            "write": written(outputs.checkpoints() if outputs is not None else self._context.checkpoint.write),
            "slot": plain(self._source.facts) or {},
            **(self._receivers.answer(outputs.transfers() if outputs is not None else ()) if remote else {}),
            "recovering": plain(recovering.state()) if recovering is not None else None,
        }
