"""Initial load: whole tables, as they stand at one commit, into trails; then the process ends by itself.

Each table is one transaction of the trail, and all have the CSN of the snapshot: changes up to that CSN are in the rows, those
above it are not.  So a Replicat that applies changes AFTERCSN this one needs no HANDLECOLLISIONS.  A load that was broken off
is loaded anew by the next START, from another snapshot.
"""

from __future__ import annotations

from typing import Any

from ggshell.clock import local_text
from ggshell.databases.postgres import session
from ggshell.databases.postgres.table_copy import LoadTable, TableCopy
from ggshell.errors import ParameterError
from ggshell.files import locked
from ggshell.params.files import ExtractParameters
from ggshell.process.lifecycle import GroupContext
from ggshell.process.load_state import OPTION, LoadState
from ggshell.process.login import conninfo, redo_login
from ggshell.process.outputs import Outputs, open_outputs
from ggshell.process.row_environment import queries_login, row_environment
from ggshell.process.table_stage import TableStage
from ggshell.process.tables import TableFilter, keycols_of, matches
from ggshell.process.tally import tally
from ggshell.process.trail_forms import TrailForms
from ggshell.record.change import ChangeBatch
from ggshell.store.checkpoint import ReadCheckpoint, SourceType, WriteCheckpoint
from ggshell.store.events import Severity
from ggshell.trail.fileheader import Producer
from ggshell.trail.name import TrailName
from ggshell.types import Csn, LogPosition, TableName

SAVE_SECONDS = 2.0
WAIT_SECONDS = 1.0


def load(context: GroupContext, parameters: ExtractParameters, wanted: TableFilter, forms: TrailForms) -> None:
    """Load once.  Raises ParameterError, DatabaseError, ConnectionLostError, DiskError."""
    path = str(context.home.parameters(context.group))
    if redo_login(context.home, parameters.login):
        raise ParameterError("tables are read from a database, and redo is a log", where=path)
    targets = _targets(context, parameters)
    if not targets:
        hint = "EXTFILE ./dirdat/la, or ADD EXTTRAIL ./dirdat/la, EXTRACT load1"
        raise ParameterError("an initial load needs a file to write", where=path, hint=hint)
    context.save(
        context.checkpoint._replace(
            write=targets, options={**context.checkpoint.options, OPTION: LoadState()._asdict()}
        )
    )
    _InitialLoad(context, parameters, wanted).run(conninfo(context.home, parameters.login), forms)


def _targets(context: GroupContext, parameters: ExtractParameters) -> tuple[WriteCheckpoint, ...]:
    """The trails of ADD EXTTRAIL, and the files of EXTFILE and RMTFILE, purged where they are to be."""
    files = [item for item in parameters.trails if item.file is not None]
    names = {TrailName.parse(item.trail, context.home.root) for item in files}
    others = (each for each in context.checkpoint.write if TrailName.parse(each.trail, context.home.root) not in names)
    targets = list(others)
    for item in files:
        if item.file is None:
            continue
        if item.file.purge:
            _purge(TrailName.parse(item.trail, context.home.root))
        targets.append(WriteCheckpoint(item.trail, item.file.remote, item.file.megabytes, release=item.release))
    return tuple(targets)


def _purge(name: TrailName) -> None:
    """Remove a trail's files, the newest first, so that what is left is always a trail.  Raises ConflictError while another
    process writes it."""
    name.folder.mkdir(parents=True, exist_ok=True)
    with locked(name.folder / f".{name.prefix}.lock", f"trail {name}"):
        (name.folder / f".{name.prefix}.durable").unlink(missing_ok=True)
        for seqno in reversed(name.sequences()):
            name.file(seqno).unlink(missing_ok=True)


class _InitialLoad:
    """One load of one group."""

    def __init__(self, context: GroupContext, parameters: ExtractParameters, wanted: TableFilter) -> None:
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

    def run(self, login: str, forms: TrailForms) -> None:
        """Read all tables, or as many as a stop leaves time for."""
        with session.connect(login) as connection:
            database, user, version = session.database_facts(connection)
        self._facts.update(DBNAME=database, DBUSER=user, DBVERSION=version)
        self._tell("GGS-00550", "Initial load: waiting for a snapshot of the source.")
        copy = TableCopy.open(login, self._context.group, self._wait)
        if copy is None:
            return
        try:
            producer = Producer(self._context.group, "ggshell Capture", "PostgreSQL", database, version)
            self._outputs = outputs = open_outputs(self._context, producer, forms)
            if outputs.after is not None:
                outputs.rollover()
            wanted, ignored = self._rows.around(self._wanted, self._wanted.ignored)
            outputs.begin(wanted, None, ignored=ignored, anew=True)
            self._load(copy, outputs)
        finally:
            copy.close()
            if self._outputs is not None:
                self._outputs.close()

    def _load(self, copy: TableCopy, outputs: Outputs) -> None:
        tables = copy.tables(
            [table.pattern for table in self._parameters.tables],
            self._wanted,
            lambda name: keycols_of(self._parameters.tables, name),
        )
        self._state = LoadState(str(copy.csn), copy.time, len(tables), file=self._first_file(outputs))
        self._save(copy.csn)
        text = f"Initial load: the snapshot holds every transaction up to CSN {copy.csn} ({local_text(copy.time)})."
        self._tell("GGS-00551", f"{text} The load begins in trail file {self._state.file}.")
        for number, table in enumerate(tables, 1):
            if not self._one(copy, outputs, number, table):
                self._save(copy.csn)
                self._tell("GGS-00553", "Initial load: stopped before its end. START loads anew.", Severity.WARNING)
                return
        self._state = self._state._replace(complete=True, table="", rows=0, about=0)
        self._save(copy.csn)
        text = f"Initial load of CSN {copy.csn} is complete: {self._state.all_rows} rows of {len(tables)} tables."
        self._tell("GGS-00552", f"{text} Changes that follow it begin AFTERCSN {copy.csn}.")

    def _one(self, copy: TableCopy, outputs: Outputs, number: int, table: LoadTable) -> bool:
        """Load one table; False when a stop came before its end."""
        name = table.definition.name
        self._state = self._state._replace(table=str(name), rows=0, about=copy.about(name))
        if not table.definition.columns:
            self._tell("GGS-00554", f"Table {name} has no columns, and nothing to load.", Severity.WARNING)
        else:
            for batch in copy.read(number, table, self._predicate(name)):
                self._write(outputs, batch)
                self._state = self._state._replace(
                    rows=self._state.rows + len(batch), all_rows=self._state.all_rows + len(batch)
                )
                self._context.runner.wait([], 0)
                if self._context.clock.steady() >= self._next_save:
                    self._save(copy.csn)
        if self._context.runner.stop_requested:
            return False
        outputs.flush()
        self._state = self._state._replace(done=number)
        self._tell("GGS-00555", f"Table {name}: {self._state.rows} rows.")
        return True

    def _write(self, outputs: Outputs, batch: ChangeBatch) -> None:
        for part in outputs.write(self._rows.work(batch)):
            for table, io_type, count in tally(part):
                self._context.statistics.add(table, table, io_type, count)

    def _predicate(self, name: TableName) -> str:
        """The SQLPREDICATE of the first TABLE line that takes a table."""
        found = (table.predicate for table in self._parameters.tables if matches(table.pattern, name))
        return next(found, "")

    def _first_file(self, outputs: Outputs) -> str:
        """The first trail's file in which the load begins: the next one, or the one that holds nothing yet."""
        target = outputs.checkpoints()[0]
        return f"{target.trail}{target.current.seqno + (outputs.after is not None):09d}"

    def _wait(self, descriptor: int) -> bool:
        """Wait for the source, answering requests; False once a stop is asked for."""
        runner = self._context.runner
        while not runner.stop_requested:
            if descriptor in runner.wait([descriptor], WAIT_SECONDS):
                return True
        return False

    def _save(self, csn: Csn) -> None:
        """Make whole tables durable, then say so in the checkpoint."""
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
                options={**context.checkpoint.options, OPTION: state._asdict()},
            )
        )
        self._next_save = context.clock.steady() + SAVE_SECONDS

    def _status(self) -> dict[str, Any]:
        state = self._state
        read = {"table": state.table, "record": state.rows, "timestamp": state.time, "csn": state.csn}
        write = [
            {"trail": item.trail, "seqno": item.current.seqno, "rba": item.current.rba}
            for item in (self._outputs.checkpoints() if self._outputs is not None else ())
        ]
        return {"status": state.words, "read": read if state.csn else {}, "write": write}

    def _tell(self, code: str, text: str, severity: Severity = Severity.INFO) -> None:
        self._context.report.event(severity, code, text)
