"""What an Extract needs of the kind of database that it captures from, beside the log itself; and which kind it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from ggshell.capture.bounded.objects import Definitions
from ggshell.capture.cache import OpenTransaction
from ggshell.capture.decisions import Cursor
from ggshell.capture.source import LogSource, LogState
from ggshell.trail.fileheader import Producer
from ggshell.types import Csn, LogPosition


class Places(NamedTuple):
    """For the checkpoint: where reading must begin to rebuild what is open, and how far reading came."""

    recovery: LogPosition
    current: LogPosition


class BoundedLog(LogSource, Protocol):
    """A log that begins where it is told to, and of which each reading is the same."""

    @property
    def time(self) -> int:
        """Of the last record, in microseconds since 1970."""
        ...

    pause_time: int
    """A feed ends at a record of this time or a later one: something is to be done there."""

    @property
    def first_time(self) -> int:
        """The same of the first record that was read."""
        ...

    @property
    def bytes_read(self) -> int: ...

    @property
    def waiting(self) -> tuple[OpenTransaction, ...]:
        """What has committed and was not given on."""
        ...

    def resume(self, xid: int, begin: LogPosition) -> None:
        """A transaction was restored that began before where reading begins."""
        ...

    def expect_strangers(self, cursor: Cursor) -> None:
        """Up to a cursor there are records of transactions that ended before it."""
        ...

    def position(self, scn: int) -> LogPosition: ...

    def begin_of(self, transaction: OpenTransaction) -> LogPosition: ...


class SourceDatabase(Protocol):
    """One source of one Extract; its connections may break, and are opened again by ``open``."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """What INFO and STATUS show of what the database keeps for us; empty where it keeps nothing."""
        ...

    @property
    def options(self) -> Mapping[str, Any]:
        """What the checkpoint's options keep of the source."""
        ...

    @property
    def end(self) -> int:
        """The log's end at the last look."""
        ...

    def database_fact(self, detail: str) -> str | None:
        """What @GETENV ('DBENVIRONMENT', detail) gives, once ``producer`` was asked; None for what is not known."""
        ...

    def producer(self, group: str) -> Producer:
        """Who writes the trail, with the database's facts.  Raises ConnectionLostError, DatabaseError."""
        ...

    @property
    def bounded(self) -> BoundedLog | None:
        """The log as Bounded Recovery needs it, while it is open; None for a source that keeps its log for us."""
        ...

    @property
    def unbounded(self) -> str:
        """Why there is no Bounded Recovery for this source; empty where there is."""
        ...

    @property
    def definitions(self) -> Definitions:
        """How the definitions of cached rows are written down."""
        ...

    def open(self, after: Csn, begin: Csn, start: LogPosition | None = None) -> LogSource:
        """Check what can be checked, and begin to read: transactions up to ``after`` are in the trail; ``start``: from
        there, as a recovery needs it.

        Raises CaptureError when the log that is needed is gone.
        """
        ...

    def look(self) -> str | None:
        """Look at what the database keeps, and at the log's end; a warning when it is worth one."""
        ...

    def places(self, state: LogState, oldest: OpenTransaction | None) -> Places:
        """A state of reading as positions."""
        ...

    def shown(self, place: int) -> dict[str, Any]:
        """A place in the log as answers show it: LSN, or SCN with the log's number."""
        ...

    def transaction_id(self, xid: int) -> str: ...

    def transaction_number(self, text: str) -> int:
        """The number behind a transaction's id.  Raises ValueError for what is none."""
        ...

    def changes(self, transaction: OpenTransaction) -> Iterator[str]:
        """What an open transaction has done, a line for each change."""
        ...

    def close(self) -> None: ...
