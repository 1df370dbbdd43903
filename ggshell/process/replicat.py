"""Replicat: from a trail into a database.  Wires reader and delivery and answers for them.

The checkpoint table decides where a run begins; the checkpoint file follows it, and is written only when what it says would
survive a crash of the target.
"""

from __future__ import annotations

import gc
from typing import Any

from ggshell.apply.discard import DiscardFile
from ggshell.apply.mapping import Mapper
from ggshell.apply.responses import Responses
from ggshell.apply.target import CheckpointRow, GroupTarget
from ggshell.columns.environment import Environment
from ggshell.databases.duckdb.session import is_duckdb
from ggshell.errors import ApplyError, ParameterError, TrailError
from ggshell.params.files import ReplicatParameters, load_replicat
from ggshell.params.reperror import load_refusal_rules
from ggshell.process.backoff import Backoff
from ggshell.process.deliveries import AnyDelivery, Around, end_delivery, open_delivery, open_target
from ggshell.process.ending import Ending
from ggshell.process.heartbeat_settings import load_heartbeats
from ggshell.process.heartbeats import ReplicatHeartbeats
from ggshell.process.lifecycle import GroupContext, run_group
from ggshell.process.login import conninfo
from ggshell.process.progress import Progress
from ggshell.process.reconnecting import connected, run_sessions
from ggshell.process.row_environment import row_environment
from ggshell.process.row_stage import Work, error_rules, map_rules, replicat_stage
from ggshell.process.start_place import ADDED, ANYWHERE, OPTION, PLACED, REFUSED, StartPlace, from_csn, refused_place
from ggshell.process.trail_forms import reader_keys
from ggshell.record.change import ChangeBatch
from ggshell.store.checkpoint import GroupType
from ggshell.store.events import Severity
from ggshell.store.home import Home
from ggshell.trail.name import TrailName
from ggshell.trail.reader import TrailReader
from ggshell.types import Csn, TableName, TrailPosition

IDLE_SECONDS = 1.0
SAVE_SECONDS = 2.0


def run(home: Home, group: str) -> int:
    """Run a Replicat until it is told to stop; the exit code."""
    return run_group(home, group, GroupType.REPLICAT, _body)


def _body(context: GroupContext) -> None:
    Replicat(context, load_replicat(context.home.parameters(context.group))).run()


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
    found = load_refusal_rules(context.home.parameters(context.group))
    return Responses(
        error_rules(found.rules),
        collisions=found.collisions,
        override_duplicates=found.override_duplicates,
        insert_missing=found.insert_missing,
        own_rules=any(each.refusals for each in parameters.maps),
    )


class Replicat:
    """One run of a Replicat of any kind."""

    def __init__(self, context: GroupContext, parameters: ReplicatParameters) -> None:
        self._context = context
        self._parameters = parameters
        self._conninfo = conninfo(context.home, parameters.login)
        checkpoint = context.checkpoint
        table = str(checkpoint.options.get("checkpoint_table", ""))
        if not table and not checkpoint.options.get("nodbcheckpoint"):
            raise ParameterError(
                f"REPLICAT {context.group} has no checkpoint table",
                hint="ADD REPLICAT …, CHECKPOINTTABLE schema.table, or name one in GLOBALS",
            )
        self._table = TableName.parse(table) if table else None
        self._saved: CheckpointRow | None = None
        self._trail = TrailName.parse(checkpoint.read.trail, context.home.root)
        self._progress = Progress(context.clock, checkpoint.record_time, checkpoint.caught_up)
        self._discard = _discard_file(context, parameters)
        self._ending = Ending(context, parameters.end)
        self._responses = _responses(context, parameters)
        settings = load_heartbeats(context.home, context.home.parameters(context.group), "Replicat")
        self._heartbeats = ReplicatHeartbeats(context, settings)
        context.reporting.roll_discard(self._discard.roll)
        self._target: GroupTarget | None = None
        self._delivery: AnyDelivery | None = None
        self._reader: TrailReader | None = None
        self._environment: Environment | None = None
        self._work: Work = lambda batch: batch
        self._asked: TrailPosition | None = None
        self._least: Csn | None = None
        self._skipped: StartPlace | None = None
        context.verb("GETLAG", lambda _: self._lag())
        context.verb("STATUS", lambda _: self._status())
        context.verb("HANDLECOLLISIONS", lambda _: self._handle_collisions(True))
        context.verb("NOHANDLECOLLISIONS", lambda _: self._handle_collisions(False))

    def run(self) -> None:
        """Apply until stopped; a target that goes away is waited for."""
        try:
            run_sessions(self._context, self._session, self._lost)
        except ApplyError as error:
            if error.place is not None:
                self._keep_option(REFUSED, list(error.place))
            raise
        finally:
            self._heartbeats.close()
            self._close()

    def _open(self) -> tuple[AnyDelivery, TrailReader]:
        """Log in, and go to the place that the checkpoint table says."""
        context, parameters = self._context, self._parameters
        place = context.checkpoint.read.current
        begin = place if isinstance(place, TrailPosition) else TrailPosition(0, 0)
        around = Around(
            context, parameters, self._conninfo, self._table, self._begin(begin), self._discard, self._responses
        )
        self._target = target = open_target(around)
        self._take_row(target, begin)
        self._heartbeats.open(target, target.database)
        rules = map_rules(parameters.maps)
        excludes = (*parameters.excludes, *self._heartbeats.excludes)
        mapper = Mapper([*self._heartbeats.rules, *rules], target.describe, excludes)
        self._delivery = delivery = open_delivery(around, target, mapper)
        applied = delivery.applied
        position = applied.position if applied is not None else begin
        if applied is not None and position < begin:
            text = f"The checkpoint table stands at {position}, before the checkpoint file ({begin}): going back."
            context.report.event(Severity.WARNING, "OGG-30200", text)
        if self._table is None:
            text = "NODBCHECKPOINT: after a crash the last transactions may be applied again; HANDLECOLLISIONS allows for that."
            context.report.event(Severity.WARNING, "GGS-00517", text)
        place = self._asked_place(position)
        self._reader = reader = TrailReader(self._trail, place, keys=reader_keys(context.home))
        _require_reached(reader, place)
        queries = "" if is_duckdb(self._conninfo) else self._conninfo  # SQLEXEC wants a connection of its own
        self._environment = environment = row_environment(context, self._trail, target.database_facts, queries)
        self._work = replicat_stage(
            parameters.maps, mapper, delivery.flush, environment, self._responses, self._discard
        )
        return delivery, reader

    def _asked_place(self, position: TrailPosition) -> TrailPosition:
        """Where START wants it to go on, else where it stands."""
        asked, context = StartPlace.of(self._context.checkpoint.options), self._context
        if asked is not None and asked.skip and asked.base == ANYWHERE:
            # this transaction is skipped, and no other should the process be started again
            asked = asked._replace(base=position)
            refused = self._refused
            if refused is not None and refused >= position and self._context.checkpoint.options.get("kind"):
                asked = asked.with_transaction(self._trail, refused)
            self._keep_option(OPTION, asked.as_option())
        self._skipped = asked if asked is not None and asked.skipped else None
        self._least = None if asked is None or asked.skip else asked.least
        place = asked.position(self._trail, position) if asked is not None else position
        if place > position:
            text = f"START asked for another place: transactions between {position} and {place} are skipped."
            context.report.event(Severity.WARNING, "GGS-00518", text)
        if self._skipped is not None:
            csn, xid = self._skipped.skipped[-1]
            text = f"START asked to skip transaction {xid} (CSN {csn}), which ended a run."
            context.report.event(Severity.WARNING, "GGS-00518", text)
            self._asked = self._skipped.behind
        else:
            self._asked = place if asked is not None else None
        return place

    @property
    def _refused(self) -> TrailPosition | None:
        return refused_place(self._context.checkpoint.options)

    def _keep_option(self, name: str, value: object) -> None:
        context = self._context
        context.save(context.checkpoint._replace(options={**context.checkpoint.options, name: value}))

    def _take_row(self, target: GroupTarget, begin: TrailPosition) -> None:
        """A group that was added anew takes the row that the checkpoint table has: its place, or, where ADD named one, only
        what is known of the transactions that are applied."""
        added = self._context.checkpoint.options.get(ADDED)
        if added is None or not target.found:
            return
        if added == PLACED:
            target.move(begin)
        row = target.checkpoint()
        if row is None:
            return
        text = (
            f"The checkpoint table holds a row of {self._context.group} already: reading goes on at {row.position},"
            f" transactions up to CSN {row.csn or 0} are applied and left out."
        )
        self._context.report.event(Severity.WARNING, "GGS-00561", text)

    def _begin(self, position: TrailPosition) -> CheckpointRow:
        """The first row of the checkpoint table: what the checkpoint file knows, should the row be gone."""
        checkpoint = self._context.checkpoint
        csn = Csn.parse(checkpoint.latest_csn) if checkpoint.latest_csn else None
        return CheckpointRow(position, csn, checkpoint.latest_xid, checkpoint.record_time)

    def _session(self, backoff: Backoff) -> None:
        runner, clock = self._context.runner, self._context.clock
        self._close()
        delivery, reader = self._open()
        gc.collect()
        gc.freeze()  # what is loaded by now stays: no collection need look at it again
        connected(self._context, backoff)
        wake = reader.fileno()
        next_save, unsaved = clock.steady(), True
        while not runner.stop_requested:
            reader.drain()
            batch = self._read(reader)
            if batch is not None and (batch := self._ending.before(batch)) is None:
                break
            if batch is not None:
                batch = self._work(self._heartbeats.carry(batch))
                delivery.feed(batch if self._skipped is None else self._skipped.left(batch))
                if reader.caught_up():
                    delivery.flush()
                unsaved = True
            else:
                delivery.flush()
                self._ending.trail_read()
            self._heartbeats.applied(delivery.applied)
            if delivery.applied is not None and delivery.applied.commit_time > self._progress.record_time:
                self._progress.processed(delivery.applied.commit_time)
            if batch is None and not delivery.pending:
                self._progress.reached_end()
            now = clock.steady()
            alone = self._table is None and delivery.applied is not self._saved
            if now >= next_save or alone:  # where only the file knows, it must not stay behind
                self._save()
                unsaved, next_save = False, now + min(SAVE_SECONDS, self._parameters.checkpoint_seconds)
            if batch is None:
                if unsaved:
                    next_save = min(next_save, now + IDLE_SECONDS)
                runner.wait([wake], min(IDLE_SECONDS, max(0.0, next_save - now)))
            else:
                runner.wait([], 0)
        delivery.flush()
        self._heartbeats.applied(delivery.applied)
        if delivery.pending:  # stopped within a transaction: it comes whole at the next start
            delivery.abandon()
        self._save()

    def _read(self, reader: TrailReader) -> ChangeBatch | None:
        """What the trail has next; nothing below the CSN that START asked for, which it may not have reached yet."""
        while (batch := reader.read()) is not None and self._least is not None:
            if (kept := from_csn(batch, self._least)) is not None:
                self._least = None
                return kept
            self._context.runner.wait([], 0)
        return batch

    def _save(self) -> None:
        delivery, target, context = self._delivery, self._target, self._context
        if delivery is None or target is None or delivery.applied is None:
            return
        applied = self._saved = delivery.applied
        target.durable()
        options = dict(context.checkpoint.options)
        if self._asked is not None and applied.position > self._asked:
            options.pop(OPTION, None)
        if self._refused is not None and applied.position > self._refused:
            options.pop(REFUSED, None)
        options.pop(ADDED, None)
        context.save(
            context.checkpoint._replace(
                read=context.checkpoint.read.reached(applied.position, applied.commit_time),
                record_time=applied.commit_time or self._progress.record_time,
                caught_up=self._progress.caught_up,
                latest_csn=str(applied.csn or ""),
                latest_xid=applied.xid,
                options={
                    **options,
                    "checkpoint_table": str(self._table or ""),
                    "group_key": target.key,
                },
            )
        )

    def _lost(self) -> None:
        """The target went away; the checkpoint table will say what was committed."""
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
        if self._target is not None:
            self._target.close()
            self._target = None

    def _handle_collisions(self, on: bool) -> dict[str, Any]:
        self._responses.collisions = on
        text = f"HANDLECOLLISIONS is {'on' if on else 'off'} from now on."
        self._context.report.event(Severity.INFO, "GGS-00514", text)
        return {"collisions": on}

    def _lag(self) -> dict[str, Any]:
        if self._reader is None or not self._reader.at_end() or (self._delivery is not None and self._delivery.pending):
            self._progress.behind()
        return self._progress.lag_answer()

    def _status(self) -> dict[str, Any]:
        applied = self._delivery.applied if self._delivery is not None else None
        place = applied.position if applied is not None else TrailPosition(0, 0)
        status = self._progress.reading if self._target is not None else "Waiting for the database"
        return {"status": status, "read": self._progress.read_answer(str(self._trail), place), "write": []}


def _require_reached(reader: TrailReader, place: TrailPosition) -> None:
    """Raises TrailError for a place within a file that the trail has not reached: it is not the trail that was read."""
    end = reader.end()
    if place.rba and (end is None or end < place):
        reader.close()
        stands = f"ends at {end}" if end is not None else "has no file"
        raise TrailError(
            f"trail {reader.name} {stands}, before {place}, where the group stands: it was made anew, or restored",
            code="GGS-00562",
            hint="restore it; or, where it was made anew from the log, DELETE REPLICAT … ! and ADD it with EXTSEQNO 0:"
            " the checkpoint table's row tells what is applied already",
        )
