"""The interfaces between an Extract and its source database, in addition to the log itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Container, Iterator, Mapping
from typing import NamedTuple, Protocol

from ggshell.clock import Clock
from ggshell.connectors.ddl_choice import DdlCounter
from ggshell.errors import CaptureError
from ggshell.home.checkpoint import Checkpoint, GroupOptions
from ggshell.home.events import Severity
from ggshell.home.home import Home
from ggshell.home.shown_place import PlacePart, ShownPlace
from ggshell.home.slot_facts import SlotFacts
from ggshell.pipeline.capture.bounded.objects import DefinitionCodec
from ggshell.pipeline.capture.cache import OpenTransaction
from ggshell.pipeline.capture.decisions import Cursor
from ggshell.pipeline.capture.source import LogSource, LogState
from ggshell.record.transaction import Completed
from ggshell.trail.fileheader import Producer
from ggshell.types import Csn, LogPosition


class EventReport(Protocol):
    """The report of a process."""

    def event(self, severity: Severity, code: str, text: str) -> None:
        """Write an event to the report and to ggserr.log."""
        ...


class SourceProcess(Protocol):
    """The process that a source belongs to: the part of it that a source uses."""

    @property
    def home(self) -> Home: ...

    @property
    def group(self) -> str: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def report(self) -> EventReport: ...

    @property
    def statistics(self) -> DdlCounter: ...

    @property
    def checkpoint(self) -> Checkpoint:
        """The group's checkpoint as last written."""
        ...


class Places(NamedTuple):
    """Log positions for the checkpoint: where reading must begin to rebuild open transactions, and how far it has got."""

    recovery: LogPosition
    current: LogPosition


class Unread(NamedTuple):
    """An open transaction that has changes but that the log has not sent yet.

    ``begin_time``: in microseconds since 1970. ``pid``: 0 for a prepared transaction.
    """

    xid: int
    begin_time: int
    pid: int
    user: str


class BoundedLog(LogSource, Protocol):
    """A log that can be read from any position, with the same result every time."""

    @property
    def time(self) -> int:
        """The time of the last record, in microseconds since 1970."""
        ...

    pause_time: int
    """Reading pauses at a record of this time or later, so that a checkpoint can be made."""

    @property
    def first_time(self) -> int:
        """The time of the first record that was read, in microseconds since 1970."""
        ...

    @property
    def bytes_read(self) -> int: ...

    def resume(self, xid: int, begin: LogPosition) -> None:
        """Register a restored transaction that began before the start position."""
        ...

    def expect_orphaned_rows(self, cursor: Cursor) -> None:
        """Expect, up to a cursor, records of unknown transactions, which ended before it."""
        ...

    def position(self, scn: int) -> LogPosition: ...

    def begin_of(self, transaction: OpenTransaction) -> LogPosition: ...


class SourceDatabase(ABC):
    """The source of an Extract. Its connections may be lost; ``open`` connects again.

    A kind implements the abstract methods. The others are for a database that retains its log as long as it is needed.
    """

    @property
    def facts(self) -> SlotFacts | None:
        """What INFO and STATUS show of the log that the database retains; None if it retains none or is not checked yet."""
        return None

    def noted(self, options: GroupOptions) -> GroupOptions:
        """Return a checkpoint's options with those of the source."""
        return options

    @property
    def not_captured(self) -> Mapping[str, str]:
        """What the TABLE lines select but the log does not contain, each with the reason."""
        return {}

    @property
    def end(self) -> int:
        """The end of the log at the last check, or 0 if it is unknown."""
        return 0

    def database_fact(self, detail: str) -> str | None:
        """Return @GETENV ('DBENVIRONMENT', detail), after a call of ``producer``; None if it is unknown."""
        return None

    @abstractmethod
    def producer(self, group: str) -> Producer:
        """Return the trail's producer, with information on the database. Raises ConnectionLostError, DatabaseError."""

    @property
    def bounded(self) -> BoundedLog | None:
        """The open log for Bounded Recovery; None while it is closed or for a source that retains its log."""
        return None

    @property
    def bounded_recovery_refusal(self) -> str:
        """Why this source has no Bounded Recovery; empty if it has."""
        return "the database retains its log from the oldest open transaction"

    @property
    def definitions(self) -> DefinitionCodec:
        """The codec for the definitions of cached rows in files."""
        raise CaptureError(f"open transactions are not kept in files: {self.bounded_recovery_refusal}")

    @abstractmethod
    def open(self, after: Completed, begin: Csn, start: LogPosition | None = None) -> LogSource:
        """Check the source, and start reading.

        ``after``: these transactions are in the trail. ``start``: the position at which a recovery must start.
        Raises CaptureError if the required log no longer exists.
        """

    def check(self) -> str | None:
        """Check the log that the database retains, and the end of the log; return a warning, or None."""
        return None

    def refused(self, read: int) -> str:
        """Switch to another form of reading, from the next ``open`` on, after the server ended the log with an error.

        ``read``: the last position before the error. Returns text that describes the change, or an empty text if there is
        no other form.
        """
        return ""

    @abstractmethod
    def places(self, state: LogState, oldest: OpenTransaction | None) -> Places:
        """Convert the state of reading to positions for the checkpoint."""

    def shown(self, place: int) -> ShownPlace:
        """Return the begin of a transaction as SHOWTRANS and warnings show it."""
        return ShownPlace(str(place), after=(PlacePart("csn", "CSN", str(place)),))

    def read_position(self, place: int) -> ShownPlace:
        """Return the position up to which the log was read, as STATUS shows it."""
        return self.shown(place)

    def restart_text(self, oldest: int, persisted: LogPosition | None) -> str:
        """Return what SHOWTRANS says of the oldest log that a restart needs; nothing if the server retains what is needed.

        ``oldest``: where the oldest open transaction begins. ``persisted``: from where on the log is read again, if files
        of Bounded Recovery have what is before it.
        """
        return ""

    def orphans(self, known: Collection[int]) -> Mapping[int, str]:
        """Return those of the open transactions that have ended without a record of it, each with the reason."""
        return {}

    def thread(self, transaction: OpenTransaction) -> int:
        """Return the thread of the log in which a transaction began."""
        return 1

    def transaction_id(self, xid: int) -> str:
        return str(xid)

    def transaction_number(self, text: str) -> int:
        """Return the number of a transaction from its id. Raises ValueError if the id is not valid."""
        return int(text)

    def unread(self, known: Container[int]) -> list[Unread]:
        """Return the open transactions of the source that are not ``known``, oldest first.

        The list is empty for a log that sends every change at once. Raises ConnectionLostError.
        """
        return []

    def changes(self, transaction: OpenTransaction) -> Iterator[str]:
        """Return the changes of an open transaction, one line per change."""
        return iter(())

    @abstractmethod
    def close(self) -> None: ...
