"""What capture needs of a database: a log that feeds open transactions and says which of them committed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from ggshell.capture.cache import Chunk, Committed, TransactionCache
from ggshell.capture.decisions import Cursor
from ggshell.capture.messages import Messages
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
    """How far a log was read: ``read`` everything before it was seen, ``safe`` may be confirmed once what was handed out is
    durable, ``end`` the log's end as the server last told.  LSNs or SCNs."""

    read: int
    safe: int
    end: int


class LogSource(Protocol):
    """A database's log, read forward from where it was opened."""

    @property
    def state(self) -> LogState: ...

    @property
    def cursor(self) -> Cursor:
        """The last message that was taken."""
        ...

    @property
    def quiet(self) -> bool:
        """Whether the last ``feed`` ended since nothing more was there."""
        ...

    @property
    def more(self) -> bool:
        """Whether messages that came were not taken yet: ``wait`` would not see them."""
        ...

    def feed(self, cache: TransactionCache, most: int) -> Sequence[Committed]:
        """Take what is there without waiting, up to about ``most`` messages; the transactions that committed, in order.

        Raises ConnectionLostError when the database went away.
        """
        ...

    def wait(self, timeout: float) -> bool:
        """Wait until more can be read; False when the time is over."""
        ...

    def encode(self, runs: Iterable[MessageRun]) -> ChangeBatch | None:
        """The rows of the wanted tables in these messages; None when there is none."""
        ...

    def confirm(self, position: int) -> None:
        """Tell the database that it need not keep what lies before the position."""
        ...

    def fileno(self) -> int: ...

    def close(self) -> None: ...
