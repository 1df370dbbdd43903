"""What an Extract needs of the kind of database that it captures from, beside the log itself; and which kind it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from ggshell.capture.cache import OpenTransaction
from ggshell.capture.source import LogSource, LogState
from ggshell.trail import Producer
from ggshell.types import Csn, LogPosition


class Places(NamedTuple):
    """For the checkpoint: where reading must begin to rebuild what is open, and how far reading came."""

    recovery: LogPosition
    current: LogPosition


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

    def open(self, after: Csn, begin: Csn) -> LogSource:
        """Check what can be checked, and begin to read: transactions up to ``after`` are in the trail.

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

    def close(self) -> None: ...
