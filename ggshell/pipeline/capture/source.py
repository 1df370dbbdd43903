"""The interface that capture needs of a database: a log that feeds open transactions and reports which committed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from ggshell.pipeline.capture.cache import Chunk, Committed, TransactionCache
from ggshell.pipeline.capture.decisions import Cursor
from ggshell.pipeline.capture.messages import Messages
from ggshell.record.change import ChangeBatch
from ggshell.record.transaction import TransactionHeader


class MessageRun(NamedTuple):
    """Messages of one transaction that go into one batch together."""

    header: TransactionHeader
    chunk: Chunk
    parts: Sequence[Messages]
    begins: bool
    ends: bool


class LogState(NamedTuple):
    """How far a log was read, as LSNs or SCNs.

    Everything before ``read`` was seen. ``safe`` may be confirmed once everything handed out is durable. ``end`` is the
    end of the log as the server last reported it.
    """

    read: int
    safe: int
    end: int


class LogSource(Protocol):
    """The log of a database, read forward from the position at which it was opened."""

    @property
    def state(self) -> LogState: ...

    @property
    def cursor(self) -> Cursor:
        """The position of the last message that was taken."""
        ...

    @property
    def quiet(self) -> bool:
        """Whether the last ``feed`` ended because nothing more was available."""
        ...

    @property
    def more(self) -> bool:
        """Whether received messages were not taken yet. ``wait`` would not notice them."""
        ...

    def feed(self, cache: TransactionCache, most: int) -> Sequence[Committed]:
        """Take what is available without waiting, up to about ``most`` messages.

        Returns the transactions that committed, in order. Raises ConnectionLostError when the database is no longer
        available.
        """
        ...

    def wait(self, timeout: float) -> bool:
        """Wait until more can be read. Returns False on timeout."""
        ...

    def encode(self, runs: Iterable[MessageRun]) -> ChangeBatch | None:
        """Encode the rows of the captured tables in these messages. None when there are none."""
        ...

    def confirm(self, position: int) -> None:
        """Inform the database that it no longer has to keep the log before the position."""
        ...

    def fileno(self) -> int: ...

    def close(self) -> None: ...
