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
    DiskError,
    GgsError,
    ParameterError,
    RowGoneError,
    TargetChangedError,
    TrailError,
)
from ggshell.groups.checkpoint_rows import Uncertain, keys_in_use
from ggshell.groups.deliveries import (
    AnyDelivery,
    ReplicatSetup,
    activity_of,
    end_delivery,
    open_delivery,
    open_target,
    open_whole,
    replicat_setup,
    with_additional_rows,
)
from ggshell.groups.ending import Ending
from ggshell.groups.heartbeat_settings import load_heartbeats
from ggshell.groups.heartbeats import ReplicatHeartbeats
from ggshell.groups.lifecycle import GroupContext, run_group
from ggshell.groups.load_tasks import TaskEnding, run_task
from ggshell.groups.progress import ReadingProgress
from ggshell.groups.reconnecting import Backoff, connected, run_sessions
from ggshell.groups.row_environment import row_environment
from ggshell.groups.row_stage import LeftTruncates, error_rules, map_rules, replicat_stage
from ggshell.groups.save_schedule import SaveSchedule
from ggshell.groups.start_position import (
    ANYWHERE,
    BEYOND_TRAIL,
    Skipped,
    StartPosition,
    beyond_text,
    from_csn,
    undo_text,
    without_untaken,
)
from ggshell.groups.trail_forms import reader_keys
from ggshell.home.checkpoint import AddedAt, GroupKind, ReplicatKind
from ggshell.home.events import Severity
from ggshell.home.home import Home
from ggshell.parameters.loading import load_refusal_rules, load_replicat
from ggshell.parameters.process_parameters import ReplicatParameters
from ggshell.parameters.table_patterns import TableFilter
from ggshell.pipeline.apply.adaptive import AdaptiveDelivery
from ggshell.pipeline.apply.checkpoint_table import uncertain
from ggshell.pipeline.apply.ddl_parts import ddl_parts, is_ddl
from ggshell.pipeline.apply.delivery import Delivery
from ggshell.pipeline.apply.discard import DiscardFile
from ggshell.pipeline.apply.mapping import Mapper
from ggshell.pipeline.apply.parallel import ParallelDelivery
from ggshell.pipeline.apply.responses import Responses
from ggshell.pipeline.apply.target import CheckpointRow, GroupTarget, TableMapping
from ggshell.pipeline.heartbeat.hops import ARRIVED_NAME
from ggshell.pipeline.transform.environment import Environment
from ggshell.pipeline.transform.stage import Stage
from ggshell.record.change import ChangeBatch
from ggshell.record.name_patterns import matches
from ggshell.trail.misplaced import require_placed
from ggshell.trail.name import TrailName
from ggshell.trail.reach import require_reachable
from ggshell.trail.reader import TrailReader
from ggshell.types import Csn, TableName, TrailPosition

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
    home = context.home
    return DiscardFile(
        home.resolve(parameters.discard) if parameters.discard else home.discard(context.group),
        context.group,
        context.clock,
        append=parameters.discard_append,
        megabytes=parameters.discard_megabytes,
    )


def _responses(context: GroupContext, parameters: ReplicatParameters) -> Responses:
    found = load_refusal_rules(context.home.parameters(context.group), context.group)
    return Responses(
        error_rules(found.rules),
        collisions=found.collisions,
        override_duplicates=found.override_duplicates,
        insert_missing=found.insert_missing,
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
        self._saved: CheckpointRow | None = None
        self._left_out: set[str] = set()
        self._trail = TrailName.parse(checkpoint.read.trail, context.home.root)
        self._progress = ReadingProgress(
            context.clock, checkpoint.record_time, checkpoint.caught_up, lambda: context.ahead
        )
        self._discard = _discard_file(context, parameters)
        self._ending = ending or Ending(context, parameters.end)
        self._responses = _responses(context, parameters)
        settings = load_heartbeats(context.home, context.home.parameters(context.group), "Replicat")
        self._heartbeats = ReplicatHeartbeats(context, settings)
        context.reporting.roll_discard(self._discard.roll)
        self._target: GroupTarget | None = None
        self._delivery: AnyDelivery | None = None
        self._reader: TrailReader | None = None
        self._environment: Environment | None = None
        self._stage: Stage | None = None
        self._look_for_truncates: Callable[[ChangeBatch], None] = lambda batch: None
        self._asked: TrailPosition | None = None
        self._least: Csn | None = None
        self._skipped: StartPosition | None = None
        self._counted: Skipped | None = None
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
                self._keep(refused=error.place)
            raise
        finally:
            self._heartbeats.close()
            self._close()
            self._forget_untaken()

    def _open(self) -> tuple[AnyDelivery, TrailReader]:
        """Connect to the target, and open the trail at the position in the checkpoint table."""
        context, parameters = self._context, self._parameters
        place = context.checkpoint.read.current
        begin = place if isinstance(place, TrailPosition) else TrailPosition(0, 0)
        setup, target = self._open_target(begin)
        self._target = target
        self._take_row(target, begin)
        self._heartbeats.open(target, target.database)
        rules = map_rules(parameters.maps)
        sources = [each.source for each in parameters.maps]
        self._context.statistics.set_selection(TableFilter(sources, parameters.excludes))
        excludes = (*parameters.excludes, *self._heartbeats.excludes)
        mapper = Mapper(
            [*self._heartbeats.rules, *rules],
            target.describe,
            excludes,
            self._note_mapping,
            self._missing,
            lambda name: self._takes_sequence(target, name),
        )
        self._look_for_truncates = LeftTruncates(
            mapper, partial(self._note_left_out, "GGS-00574"), applies=parameters.truncates
        ).check
        self._delivery = delivery = open_delivery(setup, target, mapper)
        applied = delivery.applied
        position = applied.position if applied is not None else begin
        if applied is not None and position < begin:
            text = f"The checkpoint table is at {position}, before the checkpoint file ({begin}): continuing from {position}."
            context.report.event(Severity.WARNING, "OGG-30200", text)
        if self._table is None and not context.checkpoint.options.special:
            text = (
                "NODBCHECKPOINT: after a crash, the last transactions may be applied again; use HANDLECOLLISIONS then."
            )
            context.report.event(Severity.WARNING, "GGS-00517", text)
        self._require_standing(position, applied)
        place = self._asked_place(position)
        require_reachable(self._trail, place)
        self._reader = reader = TrailReader(self._trail, place, keys=reader_keys(context.home))
        self._note_opened(delivery)
        self._environment = environment = row_environment(context, self._trail, target.database_facts, self._login)
        self._stage = replicat_stage(
            parameters.maps, mapper, delivery.flush, environment, self._responses, self._discard
        )
        return delivery, reader

    def _open_target(self, begin: TrailPosition) -> tuple[ReplicatSetup, GroupTarget]:
        """Open the target; return it with what its delivery needs.

        If rows of the checkpoint table are lost, START may name the CSN from which on nothing is applied. Raises
        RowGoneError if START names no CSN or one that is not certain.
        """
        setup = self._setup(begin)
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

    def _setup(self, begin: TrailPosition) -> ReplicatSetup:
        """Return what the target is opened with."""
        row = self._begin(begin)
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
            self._keep(uncertain=tuple(found))
        return found

    def _explained(self, error: RowGoneError) -> RowGoneError:
        """Return the error with the text for this kind of group."""
        found = self._uncertain(error)
        return error if found is None else uncertain(self._context.group, error, *found)

    def _note_opened(self, delivery: AnyDelivery) -> None:
        """Update the checkpoint file before anything is applied.

        Records that transactions above the group's row may be applied from now on, and that START's position is in use.
        """
        options = with_additional_rows(self._context.checkpoint.options, delivery, whole=False)
        options = options._replace(uncertain=None)
        asked = StartPosition.of(options)
        if asked is not None:
            options = options._replace(start=asked._replace(taken=True).as_option())
        if options != self._context.checkpoint.options:
            self._context.save(self._context.checkpoint._replace(options=options))

    def _forget_untaken(self) -> None:
        """Remove START's position from the checkpoint if this run could not use it, so that no later run uses it."""
        options = self._context.checkpoint.options
        asked = StartPosition.of(options)
        if asked is not None and not asked.taken:
            text = f"START … {asked} had no effect; a later START does not use it."
            with contextlib.suppress(DiskError):  # the next START also removes it
                self._context.report.event(Severity.WARNING, "GGS-00518", text)
                self._context.save(self._context.checkpoint._replace(options=without_untaken(options)))

    def _note_mapping(self, mapping: TableMapping, text: str) -> None:
        """Report what a mapping does not apply."""
        if mapping.source.name != ARRIVED_NAME:
            self._note_left_out("GGS-00572", text)

    @property
    def _missing(self) -> Callable[[TableName, TableName], None] | None:
        """Report a target table that does not exist; None if its rows are an error."""
        if not self._parameters.ddl_errors.ignores_missing:
            return None
        text = "Target table {1} does not exist: the rows of {0} are skipped (IGNOREMISSINGOBJECTS)."
        return lambda source, target: self._note_left_out("GGS-00584", text.format(source, target))

    def _takes_sequence(self, target: GroupTarget, name: TableName) -> bool:
        """Whether the target takes the values of sequences; report it if not."""
        if not target.takes_sequences:
            text = f"The values of sequence {name} are not applied: the target database does not take them."
            self._note_left_out("GGS-00599", text)
        return target.takes_sequences

    def _note_left_out(self, code: str, text: str) -> None:
        """Report what is not applied to a table, once per run."""
        if text not in self._left_out:
            self._left_out.add(text)
            self._context.report.event(Severity.WARNING, code, text)

    def _asked_place(self, position: TrailPosition) -> TrailPosition:
        """Return the position that START asked for, or else the current position."""
        asked, context = StartPosition.of(self._context.checkpoint.options), self._context
        if asked is not None and asked.skip and asked.base == ANYWHERE:
            # skip this transaction, but no other one if the process is started again
            asked = asked._replace(base=position)
            options = self._context.checkpoint.options
            refused, parallel = options.refused, options.replicat_kind is not ReplicatKind.CLASSIC
            if refused is not None and refused >= position and parallel:
                asked = asked.with_transaction(self._trail, refused)
            self._keep(start=asked.as_option())
        self._skipped = asked if asked is not None and asked.skipped else None
        self._least = None if asked is None or asked.skip else asked.least
        place = asked.position(self._trail, position) if asked is not None else position
        if place > position:
            text = f"START specified another position: transactions between {position} and {place} are skipped."
            context.report.event(Severity.WARNING, "GGS-00518", text)
        if self._skipped is not None:
            csn, xid = self._skipped.skipped[-1]
            text = f"START skips transaction {xid} (CSN {csn}), at which an earlier run abended."
            context.report.event(Severity.WARNING, "GGS-00518", text)
            self._asked = self._skipped.behind
        else:
            self._asked = place if asked is not None else None
        if asked is not None:
            self._note_beyond(asked, place)
        return place

    def _note_beyond(self, asked: StartPosition, place: TrailPosition) -> None:
        """Report a CSN that the trail has not reached, and count what is skipped until then, also in later runs."""
        context = self._context
        text = beyond_text(asked, self._trail, context.checkpoint.read.trail)
        if text:
            applied = self._delivery.applied if self._delivery is not None else None
            undo = undo_text(context.group, asked, applied.csn if applied is not None else None)
            context.report.event(Severity.WARNING, BEYOND_TRAIL, f"{text} {undo}")
            if asked.end == ANYWHERE:
                asked = asked._replace(end=place)
                self._keep(start=asked.as_option())
        self._counted = Skipped(asked, context.report.event) if asked.end != ANYWHERE else None

    def _keep(self, **changes: Any) -> None:
        """Save some options in the checkpoint file."""
        context = self._context
        context.save(context.checkpoint._replace(options=context.checkpoint.options._replace(**changes)))

    def _require_standing(self, position: TrailPosition, applied: CheckpointRow | None) -> None:
        """Check that the row's position still follows its CSN in the trail.

        Raises TrailError if the trail was written again before that position.
        """
        if applied is None or self._context.checkpoint.options.added is AddedAt.PLACED:
            return
        group = self._context.group
        place = "EXTSEQNO {seqno}, EXTRBA {rba}"
        remedy = f"ALTER REPLICAT {group}, {place}, FILTERDUPTRANSACTIONS, then START: applied transactions are skipped"
        require_placed(self._trail, position, applied.csn, f"REPLICAT {group}", remedy)

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

    def _begin(self, position: TrailPosition) -> CheckpointRow:
        """Return the first row for the checkpoint table, with the content of the checkpoint file."""
        checkpoint = self._context.checkpoint
        csn = Csn.parse(checkpoint.latest_csn) if checkpoint.latest_csn else None
        same = checkpoint.options.completed if csn is not None else ()
        return CheckpointRow(position, csn, checkpoint.latest_xid, checkpoint.record_time, same_csn=same)

    def _noted_session(self, backoff: Backoff) -> None:
        """Run a session; without a checkpoint table, write the checkpoint file before a changed table ends the session."""
        try:
            self._session(backoff)
        except TargetChangedError:
            if self._table is None and isinstance(self._delivery, Delivery):
                self._delivery.note()
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

    def _follow(self, delivery: AnyDelivery, reader: TrailReader) -> None:
        """Apply the trail until stopped."""
        runner, clock = self._context.runner, self._context.clock
        wake = reader.fileno()
        schedule = SaveSchedule(clock, min(SAVE_SECONDS, self._parameters.checkpoint_seconds))
        while not runner.stop_requested:
            reader.drain()
            batch = self._read(reader)
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
                self._ending.trail_read()
            self._heartbeats.applied(delivery.applied)
            if delivery.applied is not None and delivery.applied.commit_time > self._progress.record_time:
                self._progress.processed(delivery.applied.commit_time)
            self._progress.waits(delivery.oldest)
            if batch is None and not delivery.pending:
                self._progress.reached_end()
            now = clock.steady()
            alone = self._table is None and delivery.applied is not self._saved
            if schedule.is_due(now) or alone:  # without a checkpoint table, the file must be current
                self._save()
                schedule.taken()
                schedule.saved(now)
            if batch is None:
                schedule.hasten(now)
                runner.wait([wake, *delivery.wake()], schedule.pause(now))
            else:
                runner.wait([], 0)
        delivery.flush()
        self._heartbeats.applied(delivery.applied)

    def _apply(self, delivery: AnyDelivery, part: ChangeBatch) -> None:
        """Apply rows, or one DDL statement, after which clauses are compiled again for tables that may have changed."""
        changes = is_ddl(part)
        if not changes:
            part = self._heartbeats.stamp(part)
            part = part if self._stage is None else self._stage.run(part)
        delivery.feed(part if self._skipped is None else self._skipped.left(part))
        if changes and self._stage is not None:
            self._stage.forget()

    def _read(self, reader: TrailReader) -> ChangeBatch | None:
        """Read the next batch; skip transactions below the CSN that START asked for, which may not be in the trail yet."""
        while (batch := reader.read()) is not None and self._least is not None:
            if self._counted is not None:
                self._counted.see(batch, self._least)
            if (kept := from_csn(batch, self._least)) is not None:
                self._least = None
                return kept
            self._context.runner.wait([], 0)
        return batch

    def _save(self, *, whole: bool = False) -> None:
        """Write the checkpoint file; ``whole``: nothing is applied above the position of the delivery."""
        delivery, target, context = self._delivery, self._target, self._context
        if delivery is None or target is None or delivery.applied is None:
            return
        if isinstance(delivery, ParallelDelivery | AdaptiveDelivery):
            delivery.save()
        applied = self._saved = delivery.applied
        target.durable()
        options = with_additional_rows(context.checkpoint.options, delivery, whole=whole)
        if self._asked is not None and applied.position > self._asked:
            options = options._replace(start={})
        if options.refused is not None and applied.position > options.refused:
            options = options._replace(refused=None)
        context.save(
            context.checkpoint._replace(
                read=context.checkpoint.read.reached(applied.position, applied.commit_time),
                record_time=applied.commit_time or self._progress.record_time,
                caught_up=self._progress.caught_up,
                latest_csn=str(applied.csn or ""),
                latest_xid=applied.xid,
                options=options._replace(
                    added=None,
                    completed=tuple(applied.same_csn),
                    checkpoint_table=str(self._table or ""),
                    group_key=target.key,
                    row_keys=keys_in_use(context.home, context.checkpoint),
                ),
            )
        )

    def _save_applied(self) -> None:
        """Save the position of a classic Replicat before an error ends it, so that INFO shows what the target holds."""
        if isinstance(self._delivery, Delivery):
            with contextlib.suppress(GgsError):  # the error that ends the process is the one to report
                self._delivery.note()
                self._save()

    def _lost(self) -> None:
        """Close the session after the target was lost; the checkpoint table will show what was committed."""
        self._close()
        self._progress.behind()

    def _close(self) -> None:
        if self._environment is not None and self._environment.queries is not None:
            self._environment.queries.close()
            self._environment = None
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        if self._delivery is not None:
            end_delivery(self._delivery)
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
        if self._reader is None or not self._reader.at_end() or (self._delivery is not None and self._delivery.pending):
            self._progress.behind()
        return self._progress.lag_answer()

    def _status(self) -> dict[str, Any]:
        applied = self._delivery.applied if self._delivery is not None else None
        place = applied.position if applied is not None else TrailPosition(0, 0)
        status = self._progress.reading if self._target is not None else "Waiting for the database"
        read = self._progress.read_answer(str(self._trail), place)
        return {"status": status, "read": read, "write": [], **activity_of(self._delivery)}
