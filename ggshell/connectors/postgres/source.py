"""PostgreSQL as an Extract's source: the replication slot, the WAL that it retains, and the required table logging."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any

from ggshell.clock import SystemClock
from ggshell.connectors.ddl_choice import DdlChoice
from ggshell.connectors.postgres import session, slot, trandata
from ggshell.connectors.postgres.ddl_watch import DdlWatch
from ggshell.connectors.postgres.history import History
from ggshell.connectors.postgres.log import CapturedRows, LogWatches, PostgresLog, SlotStart
from ggshell.connectors.postgres.open_transactions import open_transactions
from ggshell.connectors.postgres.replicated import Replicated
from ggshell.connectors.postgres.sequence_watch import SequenceWatch
from ggshell.connectors.postgres.slot import UNCAPTURED_CODE, uncaptured
from ggshell.connectors.postgres.slot_watch import SlotWatch
from ggshell.connectors.postgres.table_watch import TableWatch
from ggshell.connectors.postgres.truncate_watch import TruncateWatch
from ggshell.connectors.source import Places, SourceDatabase, SourceProcess, Unread
from ggshell.home.checkpoint import GroupOptions
from ggshell.home.events import Severity
from ggshell.home.shown_place import PlacePart, ShownPlace
from ggshell.home.slot_facts import SlotFacts
from ggshell.parameters.process_parameters import ExtractParameters
from ggshell.parameters.table_patterns import TableFilter, images_of, keycols_of
from ggshell.pipeline.capture.cache import OpenTransaction
from ggshell.pipeline.capture.source import LogState
from ggshell.record.image_rules import ImageRules
from ggshell.record.transaction import Completed
from ggshell.trail.fileheader import Producer
from ggshell.types import Csn, LogPosition, TableName, format_lsn


class PostgresSource(SourceDatabase):
    """A database that is captured through a replication slot."""

    def __init__(
        self, context: SourceProcess, parameters: ExtractParameters, wanted: Callable[[TableName], bool], conninfo: str
    ) -> None:
        self._context = context
        self._parameters = parameters
        self._wanted = wanted
        self._conninfo = conninfo
        self._slot = context.checkpoint.options.slot or slot.slot_name(context.group)
        self._watch = SlotWatch(context.clock)
        self._tables = TableWatch(
            [table.pattern for table in parameters.tables],
            wanted,
            context.report.event,
            context.clock,
            adds=parameters.adds_trandata,
            abends=parameters.needs_trandata,
            truncates=parameters.truncates,
        )
        choice = DdlChoice(parameters, wanted, context.statistics, context.report.event)
        self._ddl = None if parameters.ddl is None else DdlWatch(choice, context.report.event)
        takes = TableFilter(parameters.sequences, parameters.excludes)
        self._sequences = SequenceWatch(takes, context.report.event, context.clock) if parameters.sequences else None
        rows = parameters.replicates
        ddl = rows if parameters.ddl is None else parameters.ddl_options.replicates
        self._replicated = Replicated(rows, ddl)
        self._streams, self._whole_until = True, -1
        self._control: Any = None
        self._database: dict[str, str] = {}
        self._history = History(*(context.checkpoint.options.history or ()))

    @property
    def facts(self) -> SlotFacts | None:
        found = self._watch.facts
        return found._replace(database=self._database.get("DBNAME", "")) if found is not None else None

    def noted(self, options: GroupOptions) -> GroupOptions:
        return options._replace(
            source_kind="postgres",
            slot=self._slot,
            watch=self.facts,
            history=(self._history.system, self._history.timeline),
            not_captured=self._tables.shown,
        )

    @property
    def not_captured(self) -> Mapping[str, str]:
        return self._tables.shown

    @property
    def end(self) -> int:
        return self._watch.facts.current if self._watch.facts is not None else 0

    def producer(self, group: str) -> Producer:
        with session.connect(self._conninfo) as connection:
            database, user, version = session.database_facts(connection)
        self._database = {"DBNAME": database, "DBUSER": user, "DBVERSION": version}
        return Producer(group, "ggshell Capture", "PostgreSQL", database, version)

    @property
    def bounded_recovery_refusal(self) -> str:
        return "a PostgreSQL server retains its log for the slot from the oldest open transaction"

    def database_fact(self, detail: str) -> str | None:
        return self._database.get(detail)

    def open(self, after: Completed, begin: Csn, start: LogPosition | None = None) -> PostgresLog:
        """Check the tables and the slot, and start reading after the last transaction in the trail."""
        with session.connect(self._conninfo) as connection:
            self._check_tables(connection)
            if self._ddl is not None:
                self._ddl.begin(connection)
            if self._sequences is not None:
                self._sequences.begin(connection)
            status = slot.slot_status(connection, self._slot)
            read = self._context.checkpoint.read.current
            first = not (isinstance(read, LogPosition) and read.csn) and self._context.checkpoint.options.at_csn is None
            held = uncaptured(connection, self._slot, after.csn.value) if first and after.csn == begin else None
        if held is not None:
            self._context.report.event(Severity.WARNING, UNCAPTURED_CODE, f"{held.text(self._context.group)}.")
        durable = self._durable_position(after, begin, status)
        self._streams = durable > self._whole_until
        log = PostgresLog.open(
            self._conninfo,
            SlotStart(
                self._slot,
                durable,
                begin=begin.value if after.csn == begin else None,
                known=self._history,
                holds=self._parameters.log_retention > 0,
                streams=self._streams,
            ),
            CapturedRows(self._wanted, self._keys, self._images, self._replicated),
            SystemClock(),
            LogWatches(self._tables, self._ddl, self._sequences, TruncateWatch(self._context.report.event)),
        )
        self._report_timeline(log.history)
        text = f"Capture begins after CSN {after.csn}, slot {self._slot}."
        self._context.report.event(Severity.INFO, "OGG-01515", text)
        return log

    def _durable_position(self, after: Completed, begin: Csn, status: slot.SlotStatus | None) -> int:
        """Return the LSN up to which the trail and the checkpoint hold everything, so that the server may skip it.

        ``after``: the last transaction in the trail. Reports that capture can only begin at the slot, if it was created
        after the position at which capture should begin.
        """
        read = self._context.checkpoint.read.current
        durable = max(after.csn.value, read.csn if isinstance(read, LogPosition) else 0)
        confirmed = status.confirmed if status is not None else 0
        if after.csn == begin and self._context.checkpoint.options.at_csn == str(begin):
            # The server skips transactions by the start of their commit records, but a CSN is the end of a commit record.
            durable = read.csn if isinstance(read, LogPosition) and read.csn else confirmed
        now = self._context.checkpoint.begin.upper() == "NOW"
        if not (now and durable == begin.value and confirmed > durable):
            return durable
        text = f"The slot begins at {Csn(confirmed)}, after BEGIN ({begin}): earlier changes are not captured."
        self._context.report.event(
            Severity.WARNING, "GGS-00537", f"{text} To avoid this, run REGISTER EXTRACT before ADD EXTRACT."
        )
        return confirmed

    def _report_timeline(self, history: History) -> None:
        """Report a new timeline that continues after everything that was captured."""
        former, self._history = self._history, history
        if former.timeline and former != history:
            text = f"The source is now on timeline {history.timeline} (was {former.timeline}). All captured changes precede it."
            self._context.report.event(Severity.WARNING, "GGS-00505", text)

    def check(self) -> str | None:
        """Check the slot, the tables and the log's end, against which lag is measured; return a warning, or None."""
        if self._control is None:
            self._control = session.connect(self._conninfo, program=f"ggshell extract {self._context.group}")
        status = slot.slot_status(self._control, self._slot)
        if status is None:
            return None
        self._tables.check_again(self._control)
        if self._ddl is not None:
            self._ddl.check(self._control)
        if self._sequences is not None:
            self._sequences.check(self._control)
        return self._watch.check(status, slot.free_disk(self._control))

    def refused(self, read: int) -> str:
        """Turn off streaming up to the current end of the log.

        Transactions are then decoded at their commit, when their rolled-back parts are known. Returns the text to report,
        or an empty text if streaming was already off.
        """
        if not self._streams:
            return ""
        self._whole_until = max(self.end, read)
        until = format_lsn(self._whole_until)
        return f"The server cannot stream an open transaction: up to LSN {until}, transactions are read at commit."

    def places(self, state: LogState, oldest: OpenTransaction | None) -> Places:
        current = LogPosition.of_lsn(state.safe)
        return Places(LogPosition.of_lsn(oldest.begin) if oldest is not None and oldest.begin else current, current)

    def shown(self, place: int) -> ShownPlace:
        lsn = format_lsn(place)
        return ShownPlace(lsn, after=(PlacePart("lsn", "LSN", lsn),))

    def unread(self, known: Container[int]) -> list[Unread]:
        """Return the open transactions that the server has not sent yet; it sends them at commit or when they grow large."""
        if self._control is None:
            return []
        return [item for item in open_transactions(self._control) if item.xid not in known]

    def close(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None

    def _check_tables(self, connection: Any) -> None:
        for name, state in self._tables.begin(connection).items():
            if state.enabled:
                trandata.require_logged(state, self._keys(name))

    def _images(self, name: TableName) -> ImageRules:
        return images_of(self._parameters.tables, name)

    def _keys(self, name: TableName) -> tuple[str, ...]:
        return keycols_of(self._parameters.tables, name)
