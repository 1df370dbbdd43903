"""Initial load: writes whole tables, as of one snapshot, to trails; then the process ends.

Each table is one transaction in the trail, and all of them have the CSN of the snapshot: the rows include the changes
up to that CSN and none after it. A Replicat that applies changes AFTERCSN this CSN therefore needs no HANDLECOLLISIONS.
After an interrupted load, the next START loads everything again from a new snapshot, and first removes what the
interrupted load wrote: a trail never has the rows of both. If the connection to another home is lost, the load restarts
automatically.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ggshell.clock import local_text
from ggshell.connectors.login import connection_string
from ggshell.connectors.registry import connector_for
from ggshell.connectors.table_source import LoadTable, TableSnapshot, TableSource
from ggshell.errors import ConnectionLostError, ParameterError
from ggshell.groups.connection_state import ConnectionState, written
from ggshell.groups.lifecycle import GroupContext
from ggshell.groups.load_state import LoadState
from ggshell.groups.outputs import Outputs, open_outputs, without_rollover
from ggshell.groups.receivers import receiver_of
from ggshell.groups.reconnecting import Backoff, connected, run_sessions
from ggshell.groups.row_environment import queries_login, row_environment
from ggshell.groups.statistics import tally
from ggshell.groups.table_stage import TableStage
from ggshell.groups.task_requests import LoadTasks
from ggshell.groups.trail_forms import TrailForms
from ggshell.home.checkpoint import ReadCheckpoint, SourceType, WriteCheckpoint
from ggshell.home.events import Severity
from ggshell.home.identity import ensure_identity
from ggshell.parameters.process_parameters import ExtractParameters
from ggshell.parameters.table_patterns import TableFilter, keycols_of
from ggshell.plurals import counted
from ggshell.record.change import ChangeBatch
from ggshell.record.name_patterns import matches
from ggshell.trail.fileheader import Producer
from ggshell.trail.name import TrailName
from ggshell.types import Csn, LogPosition, TableName, TrailPosition

SAVE_SECONDS = 2.0
WAIT_SECONDS = 1.0


def load(context: GroupContext, parameters: ExtractParameters, wanted: TableFilter, forms: TrailForms) -> None:
    """Run the load once. Raises ParameterError, DatabaseError, ConnectionLostError, DiskError."""
    path = str(context.home.parameters(context.group))
    login = connection_string(context.home, parameters.login)
    connector = connector_for(login)
    _require_host(parameters, path)
    purges = _purges(context, parameters)
    targets = _targets(context, parameters, purges)
    if not targets:
        hint = "use EXTFILE ./dirdat/la, or ADD EXTTRAIL ./dirdat/la, EXTRACT load1"
        raise ParameterError("an initial load requires a file or trail", where=path, hint=hint)
    start = LoadState(begins=tuple(purges.items()))
    context.save(
        context.checkpoint._replace(write=targets, options=context.checkpoint.options._replace(load=start._asdict()))
    )
    one = _InitialLoad(context, parameters, wanted, forms, purges)
    tasks = LoadTasks(context, forms, _tasks(parameters, targets))

    def session(backoff: Backoff) -> None:
        try:
            if not one.identity:
                tasks.prepare()
                one.run(connector.table_source(login), connector.vendor, backoff)
            if one.identity:
                tasks.finish(one.identity)
        except ConnectionLostError as error:
            one.receivers.lost_by(error)
            raise
        context.runner.stop()

    if all(target.is_elsewhere for target in targets):
        run_sessions(context, session, one.begin_again)
    else:
        session(Backoff())


def _require_host(parameters: ExtractParameters, path: str) -> None:
    """Raise ParameterError for an RMTTASK without RMTHOST."""
    if any(each.file is not None and each.file.task and each.host is None for each in parameters.trails):
        raise ParameterError(
            "RMTTASK requires RMTHOST", where=path, hint="add RMTHOST host, MGRPORT port above RMTTASK"
        )


def _tasks(parameters: ExtractParameters, targets: Sequence[WriteCheckpoint]) -> list[tuple[str, WriteCheckpoint]]:
    """Return the groups that RMTTASK names, each with the trail of its load."""
    named = {each.trail: each.file.task for each in parameters.trails if each.file is not None and each.file.task}
    return [(named[target.trail], target) for target in targets if target.trail in named]


def _purges(context: GroupContext, parameters: ExtractParameters) -> dict[str, int]:
    """Return the trails whose files are removed first, each from a sequence number on.

    PURGE removes all of them; otherwise those of a load that was not completed are removed.
    """
    last = LoadState.of(context.checkpoint)
    interrupted = dict(last.begins) if last is not None and not last.complete else {}
    purged = {item.trail: 0 for item in parameters.trails if item.file is not None and item.file.purge}
    return {**interrupted, **purged}


def _targets(
    context: GroupContext, parameters: ExtractParameters, purges: Mapping[str, int]
) -> tuple[WriteCheckpoint, ...]:
    """Return the trails of ADD EXTTRAIL and the files of EXTFILE and RMTFILE; those of ``purges`` are written again."""
    files = [item for item in parameters.trails if item.file is not None]
    names = {TrailName.parse(item.trail, context.home.root) for item in files}
    others = (each for each in context.checkpoint.write if TrailName.parse(each.trail, context.home.root) not in names)
    targets = list(others)
    for item in files:
        if item.file is None:
            continue
        receiver = receiver_of(context.home, item.host, item.trail) if item.file.remote else ""
        settings = (item.trail, item.file.remote, item.file.megabytes)
        targets.append(WriteCheckpoint(*settings, release=item.release, receiver=receiver))
    begin = TrailPosition(0, 0)
    return tuple(each._replace(current=begin) if each.trail in purges else each for each in targets)


class _InitialLoad:
    """The load of one group; ``run`` begins it again."""

    def __init__(
        self,
        context: GroupContext,
        parameters: ExtractParameters,
        wanted: TableFilter,
        forms: TrailForms,
        purges: Mapping[str, int],
    ) -> None:
        """``purges``: trails whose files are removed first, each from a sequence number on."""
        self._forms = forms
        self._purges = dict(purges)
        self._counted: Counter[tuple[TableName, int]] = Counter()
        self.receivers = ConnectionState(context.clock)
        self.identity = ""
        """The id of the load when it is complete."""
        self._context = context
        self._parameters = parameters
        self._wanted = wanted
        self._facts: dict[str, str] = {}
        login = queries_login(context.home, parameters)
        self._rows = TableStage(parameters.tables, row_environment(context, None, lambda: self._facts, login))
        self._outputs: Outputs | None = None
        self._state = LoadState()
        self._next_save = 0.0
        context.verb("STATUS", lambda _: self._status())

    def begin_again(self) -> None:
        """Prepare for another ``run`` after a line to another home was lost: what was loaded does not count.

        A complete load is not loaded again: only its tasks are waited for.
        """
        if self.identity:
            return
        for (table, io_type), count in self._counted.items():
            self._context.statistics.take_back(table, table, io_type, count)
        self._counted.clear()
        self._state = LoadState(begins=tuple(self._purges.items()))

    def run(self, source: TableSource, vendor: str, backoff: Backoff) -> None:
        """Load all tables, or stop early if a stop is requested."""
        database, user, version = source.facts()
        self._facts.update(DBNAME=database, DBUSER=user, DBVERSION=version)
        self._report("GGS-00550", "Initial load: waiting for a snapshot of the source.")
        copy = source.snapshot(self._context.group, self._wait)
        if copy is None:
            return
        try:
            producer = Producer(self._context.group, "ggshell Capture", vendor, database, version)
            self._outputs = outputs = open_outputs(self._context, producer, self._forms, purges=self._purges)
            connected(self._context, backoff)
            self.receivers.opened()
            self._purges.update(outputs.begin_new_files())
            wanted, ignored = self._rows.around(self._wanted, self._wanted.ignored)
            outputs.begin(wanted, None, ignored=ignored, repeats=True)
            self._load(copy, outputs)
        finally:
            copy.close()
            if self._outputs is not None:
                self._outputs.close()
                self._outputs = None

    def _load(self, copy: TableSnapshot, outputs: Outputs) -> None:
        tables = copy.tables(
            [table.pattern for table in self._parameters.tables],
            self._wanted,
            lambda name: keycols_of(self._parameters.tables, name),
        )
        for name in copy.left_out([table.pattern for table in self._parameters.tables], self._wanted):
            text = f"Table {name} is UNLOGGED and is not loaded: its later changes are not in the log."
            self._report(
                "GGS-00539", f"{text} Run ALTER TABLE {name} SET LOGGED, or copy it manually.", Severity.WARNING
            )
        first = next(iter(outputs.checkpoints())).trail
        file = f"{first}{self._purges[first]:09d}"
        self._state = LoadState(str(copy.csn), copy.time, len(tables), file=file, begins=tuple(self._purges.items()))
        self._save(copy.csn)
        text = f"Initial load: the snapshot contains every transaction up to CSN {copy.csn} ({local_text(copy.time)})."
        self._report("GGS-00551", f"{text} The load begins in trail file {self._state.file}.")
        for number, table in enumerate(tables, 1):
            if not self._one(copy, outputs, number, table):
                self._save(copy.csn)
                self._report(
                    "GGS-00553",
                    "Initial load: stopped before completion. START begins the load again.",
                    Severity.WARNING,
                )
                return
        self._state = self._state._replace(complete=True, table="", rows=0, about=0)
        self._save(copy.csn)
        home = ensure_identity(self._context.home.root).id
        self.identity = f"{home}/{self._context.group}/{self._context.clock.now()}"
        text = f"Initial load of CSN {copy.csn} is complete: {counted(self._state.all_rows, 'row')} of"
        text = f"{text} {counted(len(tables), 'table')}."
        self._report("GGS-00552", f"{text} START REPLICAT with AFTERCSN {copy.csn} applies later changes.")

    def _one(self, copy: TableSnapshot, outputs: Outputs, number: int, table: LoadTable) -> bool:
        """Load one table; False if a stop was requested before its end."""
        name = table.definition.name
        self._state = self._state._replace(table=str(name), rows=0, about=copy.about(name), seconds=0.0)
        began = self._context.clock.steady()
        if not table.definition.columns:
            self._report("GGS-00554", f"Table {name} has no columns: nothing to load.", Severity.WARNING)
        else:
            for batch in copy.read(number, table, self._predicate(name)):
                self._write(outputs, batch)
                self._state = self._state._replace(
                    rows=self._state.rows + len(batch),
                    all_rows=self._state.all_rows + len(batch),
                    seconds=self._context.clock.steady() - began,
                )
                self._context.runner.wait([], 0)
                if self._context.clock.steady() >= self._next_save:
                    self._save(copy.csn)
        if self._context.runner.stop_requested:
            return False
        outputs.flush()
        self._state = self._state._replace(done=number)
        self._report("GGS-00555", f"Table {name}: {counted(self._state.rows, 'row')}.")
        return True

    def _write(self, outputs: Outputs, batch: ChangeBatch) -> None:
        for part in outputs.write(self._rows.work(batch)):
            for table, io_type, count in tally(part):
                self._context.statistics.add(table, table, io_type, count)
                self._counted[table, io_type] += count

    def _predicate(self, name: TableName) -> str:
        """Return the SQLPREDICATE of the first TABLE line that selects a table."""
        found = (table.predicate for table in self._parameters.tables if matches(table.pattern, name))
        return next(found, "")

    def _wait(self, descriptor: int) -> bool:
        """Wait for the source while answering requests; False if a stop is requested."""
        runner = self._context.runner
        while not runner.stop_requested:
            if descriptor in runner.wait([descriptor], WAIT_SECONDS):
                return True
        return False

    def _save(self, csn: Csn) -> None:
        """Make the loaded rows durable, then write the checkpoint."""
        context, state = self._context, self._state
        if self._outputs is None:
            return
        self._outputs.flush()
        place = LogPosition.of_lsn(csn.value)
        context.save(
            context.checkpoint._replace(
                read=ReadCheckpoint(
                    SourceType.TABLE,
                    startup=place,
                    startup_time=state.time,
                    recovery=place,
                    recovery_time=state.time,
                    current=place,
                    current_time=state.time,
                ),
                write=self._outputs.checkpoints(),
                record_time=state.time,
                latest_csn=str(csn),
                options=without_rollover(context.checkpoint.options, self._outputs)._replace(load=state._asdict()),
            )
        )
        self._next_save = context.clock.steady() + SAVE_SECONDS

    def _status(self) -> dict[str, Any]:
        state = self._state
        read = {"table": state.table, "record": state.rows, "timestamp": state.time, "csn": state.csn}
        outputs, receivers = self._outputs, self.receivers
        places = ", ".join(each.receiver_place for each in self._context.checkpoint.write if each.is_elsewhere)
        waits = places and receivers.error and not receivers.connected
        return {
            "status": f"Waiting for the receiver at {places}" if waits else state.words,
            "read": read if state.csn else {},
            "write": written(outputs.checkpoints() if outputs is not None else ()),
            **(receivers.answer(outputs.transfers() if outputs is not None else ()) if places else {}),
        }

    def _report(self, code: str, text: str, severity: Severity = Severity.INFO) -> None:
        self._context.report.event(severity, code, text)
