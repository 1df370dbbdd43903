"""Replicat: applies a trail to a database. This module connects reader and delivery and answers requests.

The checkpoint table decides where a run begins. The checkpoint file follows it, and is written only when its content would
survive a crash of the target.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from ggshell.connectors.login import connection_string
from ggshell.errors import (
    ApplyError,
    ConnectionLostError,
    GgsError,
    ParameterError,
    RowGoneError,
    TargetChangedError,
    TrailError,
)
from ggshell.groups.checkpoint_rows import Uncertain
from ggshell.groups.deferred_apply import DeferredApply
from ggshell.groups.deliveries import (
    ReplicatSetup,
    open_delivery,
    open_target,
    open_whole,
    replicat_setup,
)
from ggshell.groups.ending import Ending
from ggshell.groups.heartbeat_settings import load_heartbeats
from ggshell.groups.heartbeats import ReplicatHeartbeats
from ggshell.groups.left_out import LeftOut
from ggshell.groups.lifecycle import GroupContext, run_group
from ggshell.groups.load_tasks import TaskEnding, run_task
from ggshell.groups.progress import ReadingProgress
from ggshell.groups.reconnecting import Backoff, connected, run_sessions
from ggshell.groups.replicat_checkpoint import ReplicatCheckpoint
from ggshell.groups.requested_start import RequestedStart
from ggshell.groups.row_environment import row_environment
from ggshell.groups.row_stage import LeftTruncates, error_rules, map_rules, replicat_stage
from ggshell.groups.save_schedule import SaveSchedule
from ggshell.groups.start_position import StartPosition
from ggshell.groups.trail_forms import reader_keys
from ggshell.home.checkpoint import AddedAt, GroupKind, ReplicatKind
from ggshell.home.events import Severity
from ggshell.home.home import Home
from ggshell.parameters.loading import load_refusal_rules, load_replicat
from ggshell.parameters.process_parameters import ReplicatParameters
from ggshell.parameters.table_patterns import TableFilter
from ggshell.pipeline.apply.checkpoint_table import uncertain
from ggshell.pipeline.apply.ddl_parts import ddl_parts, is_ddl
from ggshell.pipeline.apply.discard import DiscardFile
from ggshell.pipeline.apply.group_delivery import GroupDelivery
from ggshell.pipeline.apply.mapping import Mapper
from ggshell.pipeline.apply.responses import Responses
from ggshell.pipeline.apply.target import CheckpointRow, GroupTarget
from ggshell.pipeline.transform.environment import Environment
from ggshell.pipeline.transform.stage import Stage
from ggshell.record.change import ChangeBatch
from ggshell.record.name_patterns import matches
from ggshell.trail.name import TrailName
from ggshell.trail.reach import require_reachable
from ggshell.trail.reader import TrailReader
from ggshell.types import TableName, TrailPosition

SAVE_SECONDS = 2.0


def run(home: Home, group: str) -> int:
    """Run a Replicat until it is stopped; return the exit code."""
    return run_group(home, group, GroupKind.REPLICAT, _body)


def _body(context: GroupContext) -> None:
    parameters = load_replicat(context.home.parameters(context.group), context.group)
    if context.checkpoint.options.special:
        ending = TaskEnding(context)
        run_task(context, ending, lambda: Replicat(context, parameters, ending).run())
        return
    if parameters.special:
        raise ParameterError(
            f"SPECIALRUN is valid only for a task, but {context.group} was added with a trail",
            where=str(context.home.parameters(context.group)),
            hint="use END RUNTIME instead, or ADD REPLICAT …, SPECIALRUN for an Extract with RMTTASK",
        )
    Replicat(context, parameters).run()


def _discard_file(context: GroupContext, parameters: ReplicatParameters) -> DiscardFile:
    rule = parameters.discard
    path = rule.path(context.home, context.group)
    return DiscardFile(path, context.group, context.clock, append=rule.append, megabytes=rule.megabytes)


def _responses(context: GroupContext, parameters: ReplicatParameters) -> Responses:
    found = load_refusal_rules(context.home.parameters(context.group), context.group)
    return Responses(
        error_rules(found.rules),
        switches=found.switches,
        own_switches=[(each.target, each.switches) for each in parameters.maps],
        own_rules=any(each.refusals for each in parameters.maps),
    )


class Replicat:
    """One run of a Replicat of any kind."""

    def __init__(self, context: GroupContext, parameters: ReplicatParameters, ending: Ending | None = None) -> None:
        """``ending``: when the run ends, if not as END says."""
        self._context = context
        self._parameters = parameters
        self._login = connection_string(context.home, parameters.login)
        checkpoint = context.checkpoint
        table = checkpoint.options.checkpoint_table
        if not table and not checkpoint.options.nodbcheckpoint:
            raise ParameterError(
                f"REPLICAT {context.group} has no checkpoint table",
                hint="ADD REPLICAT …, CHECKPOINTTABLE schema.table, or specify one in GLOBALS",
            )
        self._table = TableName.parse(table) if table else None
        self._left_out = LeftOut(context.report)
        self._trail = TrailName.parse(checkpoint.read.trail, context.home.root)
        self._progress = ReadingProgress(
            context.clock, checkpoint.record_time, checkpoint.caught_up, lambda: context.ahead
        )
        self._file = ReplicatCheckpoint(context, self._table, self._progress)
        self._start = RequestedStart(context, self._trail, self._file)
        self._discard = _discard_file(context, parameters)
        self._ending = ending or Ending(context, parameters.end)
        self._deferred = DeferredApply(context.clock, parameters.defer_seconds, lambda: context.ahead)
        self._responses = _responses(context, parameters)
        settings = load_heartbeats(context.home, context.home.parameters(context.group), "Replicat")
        self._heartbeats = ReplicatHeartbeats(context, settings)
        context.reporting.roll_discard(self._discard.roll)
        self._target: GroupTarget | None = None
        self._delivery: GroupDelivery | None = None
        self._reader: TrailReader | None = None
        self._environment: Environment | None = None
        self._stage: Stage | None = None
        self._look_for_truncates: Callable[[ChangeBatch], None] = lambda batch: None
        context.verb("GETLAG", lambda _: self._lag(), live=lambda _: self._progress.lag_answer(busy=True))
        context.answering.stalled = self._progress.stalled
        context.verb("STATUS", lambda _: self._status())
        context.verb("HANDLECOLLISIONS", lambda given: self._handle_collisions(True, given))
        context.verb("NOHANDLECOLLISIONS", lambda given: self._handle_collisions(False, given))
        context.verb("REPORTCOLLISIONS", lambda _: self._tell_collisions())

    def run(self) -> None:
        """Apply until stopped; if the target is unavailable, wait for it."""
        try:
            run_sessions(self._context, self._noted_session, self._lost)
        except RowGoneError as error:
            raise self._explained(error) from error
        except ApplyError as error:
            if error.place is not None:
                self._file.keep(refused=error.place)
            raise
        finally:
            self._heartbeats.close()
            self._close()
            self._start.forget_untaken()

    def _open(self) -> tuple[GroupDelivery, TrailReader]:
        """Connect to the target, and open the trail at the position in the checkpoint table."""
        begin = self._file.begin
        setup, target = self._open_target()
        self._target = target
        self._take_row(target, begin)
        self._heartbeats.open(target, target.database)
        mapper = self._mapper(target)
        self._delivery = delivery = open_delivery(setup, target, mapper)
        position = self._position(delivery.applied, begin)
        place = self._start.begin(position, delivery.applied)
        require_reachable(self._trail, place)
        self._reader = reader = TrailReader(self._trail, place, keys=reader_keys(self._context.home))
        self._file.opened(delivery)
        self._environment = row_environment(self._context, self._trail, target.database_facts, self._login)
        self._stage = replicat_stage(
            self._parameters.maps, mapper, delivery.flush, self._environment, self._responses, self._discard
        )
        return delivery, reader

    def _mapper(self, target: GroupTarget) -> Mapper:
        """Return the mapping of source tables to the target's, and report from now on what it leaves out."""
        parameters, left_out = self._parameters, self._left_out
        self._context.statistics.set_selection(
            TableFilter([each.source for each in parameters.maps], parameters.excludes)
        )
        mapper = Mapper(
            [*self._heartbeats.rules, *map_rules(parameters.maps)],
            target.describe,
            (*parameters.excludes, *self._heartbeats.excludes),
            left_out.mapping,
            left_out.missing if parameters.ddl_errors.ignores_missing else None,
            left_out.sequences_of(target),
        )
        self._look_for_truncates = LeftTruncates(mapper, left_out.truncate, applies=parameters.truncates).check
        return mapper

    def _position(self, applied: CheckpointRow | None, begin: TrailPosition) -> TrailPosition:
        """Return the position of the checkpoint table's row, or else of the checkpoint file.

        Raises TrailError if the trail was written again before that position.
        """
        context = self._context
        position = applied.position if applied is not None else begin
        if position < begin:
            text = f"The checkpoint table is at {position}, before the checkpoint file ({begin}): continuing from {position}."
            context.report.event(Severity.WARNING, "OGG-30200", text)
        if self._table is None and not context.checkpoint.options.special:
            text = (
                "NODBCHECKPOINT: after a crash, the last transactions may be applied again; use HANDLECOLLISIONS then."
            )
            context.report.event(Severity.WARNING, "GGS-00517", text)
        self._file.require_standing(self._trail, position, applied)
        return position

    def _open_target(self) -> tuple[ReplicatSetup, GroupTarget]:
        """Open the target; return it with what its delivery needs.

        If rows of the checkpoint table are lost, START may name the CSN from which on nothing is applied. Raises
        RowGoneError if START names no CSN or one that is not certain.
        """
        setup = self._setup()
        try:
            return setup, open_whole(setup)
        except RowGoneError as error:
            asked = StartPosition.of(self._context.checkpoint.options)
            asked = None if asked is None or asked.skip else asked
            range_ = self._uncertain(error)
            if asked is None:
                certain = error.low is not None and range_ is not None and range_.empty
            else:
                certain = range_ is None or range_.allows(asked.least)
            if not certain:
                raise
            row = asked.row(self._trail) if asked is not None else setup.target.begin
            again = setup._replace(target=replace(setup.target, begin=row, has_row=False))
            return again, open_target(again)

    def _setup(self) -> ReplicatSetup:
        """Return what the target is opened with."""
        row = self._file.first_row()
        return replicat_setup(
            self._context, self._parameters, self._login, self._table, row, self._discard, self._responses
        )

    def _uncertain(self, error: RowGoneError) -> Uncertain | None:
        """Return the range of CSNs in which it is unknown what is applied, as stored when the loss was detected.

        None for a classic group, which has applied everything up to one CSN.
        """
        checkpoint = self._context.checkpoint
        if checkpoint.options.replicat_kind is ReplicatKind.CLASSIC:
            return None
        found = Uncertain.of(checkpoint.options)
        if found is None:
            found = Uncertain.found(error, checkpoint.latest_csn, self._trail)
            self._file.keep(uncertain=tuple(found))
        return found

    def _explained(self, error: RowGoneError) -> RowGoneError:
        """Return the error with the text for this kind of group."""
        found = self._uncertain(error)
        return error if found is None else uncertain(self._context.group, error, *found)

    def _take_row(self, target: GroupTarget, begin: TrailPosition) -> None:
        """Adopt an existing row of the checkpoint table for a group that was added again.

        The group takes the row's position. If ADD named a position, it takes only the record of applied transactions.
        """
        added = self._context.checkpoint.options.added
        if added is None or not target.found:
            return
        if added is AddedAt.PLACED:
            target.move(begin)
        row = target.checkpoint()
        if row is None:
            return
        text = (
            f"The checkpoint table already contains a row of {self._context.group}: reading continues at {row.position};"
            f" transactions up to CSN {row.csn or 0} are already applied and are skipped."
        )
        self._context.report.event(Severity.WARNING, "GGS-00561", text)

    def _noted_session(self, backoff: Backoff) -> None:
        """Run a session; without a checkpoint table, write the checkpoint file before a changed table ends the session."""
        try:
            self._session(backoff)
        except TargetChangedError:
            if self._table is None and self._delivery is not None and self._delivery.note():
                self._save()
            raise

    def _session(self, backoff: Backoff) -> None:
        self._close()
        delivery, reader = self._open()
        gc.collect()
        gc.freeze()  # objects loaded so far are permanent: exclude them from garbage collection
        connected(self._context, backoff)
        try:
            self._follow(delivery, reader)
        except ConnectionLostError:
            if not self._context.runner.stop_requested:
                raise
            text = "The current statement was canceled because of a stop; its transaction is applied at the next start."
            self._context.report.event(Severity.INFO, "GGS-00403", text)
        except (ApplyError, TrailError) as error:
            if not isinstance(error, RowGoneError):
                self._save_applied()
            raise
        pending = delivery.pending
        if pending:  # stopped within a transaction: the next start applies it completely
            delivery.abandon()
        self._save(whole=not pending)

    def _follow(self, delivery: GroupDelivery, reader: TrailReader) -> None:
        """Apply the trail until stopped."""
        runner, clock = self._context.runner, self._context.clock
        wake = reader.fileno()
        schedule = SaveSchedule(clock, min(SAVE_SECONDS, self._parameters.checkpoint_seconds))
        while not runner.stop_requested:
            reader.drain()
            batch = self._deferred.read(lambda: self._start.read(reader))
            if batch is not None and (batch := self._ending.before(batch)) is None:
                break
            if batch is not None:
                self._progress.taken(batch.pieces[0].header.commit_time)
                self._look_for_truncates(batch)
                for part in ddl_parts(batch):
                    self._apply(delivery, part)
                if reader.caught_up():
                    delivery.advance()
                schedule.worked()
            else:
                delivery.advance()
                if not self._deferred.holds:
                    self._ending.trail_read()
            self._note_progress(delivery, read=batch is None)
            now = clock.steady()
            if schedule.is_due(now) or self._file.must_follow(delivery.applied):
                self._save()
                schedule.taken()
                schedule.saved(now)
            if batch is None:
                schedule.hasten(now)
                runner.wait([wake, *delivery.wake()], self._deferred.pause(schedule.pause(now)))
            else:
                runner.wait([], 0)
        delivery.flush()
        self._heartbeats.applied(delivery.applied)

    def _note_progress(self, delivery: GroupDelivery, *, read: bool) -> None:
        """Record how far the delivery is; ``read``: the trail has no further transaction that is due."""
        self._heartbeats.applied(delivery.applied)
        if delivery.applied is not None and delivery.applied.commit_time > self._progress.record_time:
            self._progress.processed(delivery.applied.commit_time)
        self._progress.waits(delivery.oldest)
        if self._deferred.holds:
            self._progress.behind()
        elif read and not delivery.pending:
            self._progress.reached_end()

    def _apply(self, delivery: GroupDelivery, part: ChangeBatch) -> None:
        """Apply rows, or one DDL statement, after which clauses are compiled again for tables that may have changed."""
        changes = is_ddl(part)
        if not changes:
            part = self._heartbeats.stamp(part)
            part = part if self._stage is None else self._stage.run(part)
        delivery.feed(self._start.left(part))
        if changes and self._stage is not None:
            self._stage.forget()

    def _save(self, *, whole: bool = False) -> None:
        """Write the checkpoint file; ``whole``: nothing is applied above the position of the delivery."""
        delivery, target = self._delivery, self._target
        if delivery is None or target is None or delivery.applied is None:
            return
        delivery.save()
        applied = delivery.applied
        start_passed = self._start.is_passed(applied.position)
        self._file.save(target, delivery, applied, whole=whole, start_passed=start_passed)

    def _save_applied(self) -> None:
        """Save the position of a classic Replicat before an error ends it, so that INFO shows what the target holds."""
        with contextlib.suppress(GgsError):  # the error that ends the process is the one to report
            if self._delivery is not None and self._delivery.note():
                self._save()

    def _lost(self) -> None:
        """Close the session after the target was lost; the checkpoint table will show what was committed."""
        self._close()
        self._progress.behind()

    def _close(self) -> None:
        if self._environment is not None and self._environment.queries is not None:
            self._environment.queries.close()
            self._environment = None
        self._deferred.forget()
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        if self._delivery is not None:
            self._delivery.end()
            self._delivery = None
        if self._target is not None:
            self._target.close()
            self._target = None

    def _handle_collisions(self, on: bool, given: dict[str, Any]) -> dict[str, Any]:
        tables = {str(pattern): partial(matches, str(pattern)) for pattern in given.get("tables", ())}
        self._responses.handle_collisions(on, tables)
        return self._tell_collisions()

    def _tell_collisions(self) -> dict[str, Any]:
        text = self._responses.collisions_told()
        self._context.report.event(Severity.INFO, "GGS-00538", f"{text}.")
        return {"collisions": text}

    def _lag(self) -> dict[str, Any]:
        read = self._reader is not None and self._reader.at_end() and not self._deferred.holds
        if not read or (self._delivery is not None and self._delivery.pending):
            self._progress.behind()
        return self._progress.lag_answer()

    def _status(self) -> dict[str, Any]:
        applied = self._delivery.applied if self._delivery is not None else None
        place = applied.position if applied is not None else TrailPosition(0, 0)
        reading = self._deferred.status(self._progress.reading)
        status = reading if self._target is not None else "Waiting for the database"
        read = self._progress.read_answer(str(self._trail), place)
        activity = self._delivery.activity() if self._delivery is not None else {}
        return {"status": status, "read": read, "write": [], **activity}
