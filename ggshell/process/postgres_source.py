"""PostgreSQL as an Extract's source: its slot, what that holds back, and what the tables must log."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ggshell.capture.bounded.objects import Definitions
from ggshell.capture.cache import OpenTransaction
from ggshell.capture.source import LogState
from ggshell.clock import SystemClock
from ggshell.databases.postgres import describe, session, slot, trandata
from ggshell.databases.postgres.history import History
from ggshell.databases.postgres.log import PostgresLog
from ggshell.errors import CaptureError
from ggshell.params.files import ExtractParameters
from ggshell.process.lifecycle import GroupContext
from ggshell.process.slot_watch import SlotWatch
from ggshell.process.source import Places
from ggshell.process.start_place import AT_CSN
from ggshell.process.tables import images_of, keycols_of
from ggshell.record.image_rules import ImageRules
from ggshell.store.events import Severity
from ggshell.trail.fileheader import Producer
from ggshell.types import Csn, LogPosition, TableName, format_lsn


class PostgresSource:
    """A database, reached through a replication slot."""

    def __init__(
        self, context: GroupContext, parameters: ExtractParameters, wanted: Callable[[TableName], bool], conninfo: str
    ) -> None:
        self._context = context
        self._parameters = parameters
        self._wanted = wanted
        self._conninfo = conninfo
        self._slot = str(context.checkpoint.options.get("slot") or slot.slot_name(context.group))
        self._watch = SlotWatch(context.clock)
        self._control: Any = None
        self._database: dict[str, str] = {}
        self._history = History(*context.checkpoint.options.get("history", ()))

    @property
    def facts(self) -> Mapping[str, Any]:
        return self._watch.facts

    @property
    def options(self) -> Mapping[str, Any]:
        return {"slot": self._slot, "watch": self._watch.facts, "history": list(self._history)}

    @property
    def end(self) -> int:
        return int(self._watch.facts.get("current", 0))

    def producer(self, group: str) -> Producer:
        with session.connect(self._conninfo) as connection:
            database, user, version = session.database_facts(connection)
        self._database = {"DBNAME": database, "DBUSER": user, "DBVERSION": version}
        return Producer(group, "ggshell Capture", "PostgreSQL", database, version)

    @property
    def bounded(self) -> None:
        return None

    @property
    def unbounded(self) -> str:
        return "a PostgreSQL server keeps its log for the slot from the oldest open transaction on"

    @property
    def definitions(self) -> Definitions:
        raise CaptureError(f"nothing of an open transaction is kept in files: {self.unbounded}")

    def database_fact(self, detail: str) -> str | None:
        return self._database.get(detail)

    def open(self, after: Csn, begin: Csn, start: LogPosition | None = None) -> PostgresLog:
        """Check the tables and the slot, and begin to read behind what the trail holds."""
        with session.connect(self._conninfo) as connection:
            self._check_tables(connection)
            status = slot.slot_status(connection, self._slot)
        read = self._context.checkpoint.read.current
        durable = max(after.value, read.csn if isinstance(read, LogPosition) else 0)
        if after == begin and self._context.checkpoint.options.get(AT_CSN) == str(begin):
            # The server leaves out what it is told lies behind us by the begin of commits, and a CSN is the end of one.
            durable = read.csn if isinstance(read, LogPosition) and read.csn else status.confirmed if status else 0
        now = self._context.checkpoint.begin.upper() == "NOW"
        if now and durable == begin.value and status is not None and status.confirmed > durable:
            # Nothing was captured yet: the slot, made after ADD EXTRACT, is where capture can begin.
            text = (
                f"The slot begins at {Csn(status.confirmed)}, behind BEGIN ({begin}): earlier changes are not captured."
            )
            self._context.report.event(
                Severity.WARNING, "GGS-00511", f"{text} REGISTER EXTRACT before ADD EXTRACT avoids it."
            )
            durable = status.confirmed
        log = PostgresLog.open(
            self._conninfo,
            self._slot,
            durable,
            self._wanted,
            SystemClock(),
            self._keys,
            self._images,
            holds=self._parameters.log_retention > 0,
            known=self._history,
        )
        self._goes_on(log.history)
        text = f"Capture begins behind CSN {after}, slot {self._slot}."
        self._context.report.event(Severity.INFO, "OGG-01515", text)
        return log

    def _goes_on(self, history: History) -> None:
        """Tell of a new timeline that leads on from what was captured."""
        former, self._history = self._history, history
        if former.timeline and former != history:
            text = f"The source went over from timeline {former.timeline} to {history.timeline}, behind all that was captured."
            self._context.report.event(Severity.WARNING, "GGS-00505", text)

    def look(self) -> str | None:
        """What the slot holds back; the log's present end is the yardstick of lag."""
        if self._control is None:
            self._control = session.connect(self._conninfo, program=f"ggshell extract {self._context.group}")
        status = slot.slot_status(self._control, self._slot)
        if status is None:
            return None
        return self._watch.look(status, slot.free_disk(self._control))

    def places(self, state: LogState, oldest: OpenTransaction | None) -> Places:
        current = LogPosition.of_lsn(state.safe)
        return Places(LogPosition.of_lsn(oldest.begin) if oldest is not None and oldest.begin else current, current)

    def shown(self, place: int) -> dict[str, Any]:
        return {"lsn": format_lsn(place)}

    def transaction_id(self, xid: int) -> str:
        return str(xid)

    def transaction_number(self, text: str) -> int:
        return int(text)

    def changes(self, transaction: OpenTransaction) -> Iterator[str]:
        """Nothing is decoded before the commit."""
        return iter(())

    def close(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None

    def _check_tables(self, connection: Any) -> None:
        found: list[TableName] = []
        for table in self._parameters.tables:
            found += describe.resolve(connection, table.pattern)
        for name in dict.fromkeys(found):
            if self._wanted(name):
                found_now = trandata.info(connection, name)
                trandata.require_capturable(found_now)
                trandata.require_logged(found_now, self._keys(name))

    def _images(self, name: TableName) -> ImageRules:
        return images_of(self._parameters.tables, name)

    def _keys(self, name: TableName) -> tuple[str, ...]:
        return keycols_of(self._parameters.tables, name)
