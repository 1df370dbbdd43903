"""The log of a kind of database as commands see it: start positions, what is retained, and how INFO shows it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from ggshell.connectors.logged_in import LoggedIn
    from ggshell.home.checkpoint import Checkpoint, GroupOptions
    from ggshell.home.slot_facts import SlotFacts
    from ggshell.types import Csn, LogPosition


class AskedPosition(NamedTuple):
    """The position in a log that a statement names; empty or None for what it does not name.

    ``moment``: the time of BEGIN in microseconds since 1970, also for NOW.
    """

    begin: str = ""
    moment: int = 0
    lsn: str = ""
    scn: str = ""
    seqno: int | None = None
    rba: int | None = None
    lognum: int | None = None
    logpos: int | None = None
    gtid: str = ""

    @property
    def in_binary_log(self) -> bool:
        """Whether it is a position in a binary log, which other logs refuse."""
        return self.lognum is not None or self.logpos is not None or bool(self.gtid)

    @property
    def in_log(self) -> bool:
        """Whether it names a position in a database log in the log's own numbers."""
        return bool(self.lsn or self.scn) or self.in_binary_log


class LogStart(NamedTuple):
    """Where a new Extract begins: capture starts after ``csn``, which has the time ``moment`` (0: unknown).

    ``options``: the options of its checkpoint.
    """

    csn: Csn
    moment: int
    options: GroupOptions


class AlteredLog(NamedTuple):
    """The checkpoint of an Extract that was moved, and its new position as text.

    ``goes_back``: the position is before changes that were captured.
    """

    checkpoint: Checkpoint
    position: str
    goes_back: bool = False


class Registration(NamedTuple):
    """The result of REGISTER EXTRACT: messages with their codes, and the position from which changes are kept."""

    messages: tuple[tuple[str, str], ...]
    kept_from: Csn


class BlockingTransaction(Protocol):
    """A transaction that a statement waits for. ``name`` identifies it; ``text`` describes it in a message."""

    @property
    def name(self) -> str: ...

    @property
    def text(self) -> str: ...


Waiting = Callable[[list[Any]], None]
"""Called about once a second with each ``BlockingTransaction`` that a statement still waits for."""


class SourceLog(ABC):
    """What commands ask of a log. ``login`` is the login of the shell, of any kind, or None.

    Methods that only check or show something do without a login; those that need one raise StateError.
    """

    title = ""
    """The log's name in INFO … SHOWCH."""

    @abstractmethod
    def start(self, login: LoggedIn | None, group: str, asked: AskedPosition) -> LogStart:
        """Return where a new Extract begins. Raises UsageError, StateError, DatabaseError, CaptureError."""

    @abstractmethod
    def alter(self, login: LoggedIn | None, group: Checkpoint, asked: AskedPosition) -> AlteredLog:
        """Set a stopped Extract to another position. Raises UsageError, StateError, DatabaseError, CaptureError."""

    @abstractmethod
    def start_text(self, csn: str) -> str:
        """The text for the position after which capture begins: ``at LSN 00000000/050056B8``."""

    @abstractmethod
    def source_name(self, options: GroupOptions) -> str:
        """The Extract Source in INFO … DETAIL."""

    @abstractmethod
    def read_position(self, group: Checkpoint) -> list[tuple[str, str]]:
        """The lines of INFO that show how far a group has read: label and text."""

    @abstractmethod
    def position_facts(self, options: GroupOptions, position: LogPosition) -> list[str]:
        """The lines of INFO … SHOWCH that show a position in the database's own numbering."""

    def uncaptured(self, login: LoggedIn | None, group: Checkpoint) -> tuple[str, str] | None:
        """The code and text of a warning if the log holds changes before the start position, which would be skipped."""
        return None

    def register(self, login: LoggedIn, group: str, waiting: Waiting) -> Registration:
        """Have the database keep its log for an Extract. Raises StateError for a log that is never removed."""
        raise login.refused()

    def unregister(self, login: LoggedIn, group: str) -> str:
        """Release the log, and return what was done. Raises NotFoundError, ConflictError."""
        raise login.refused()

    def registered(self, login: LoggedIn | None, group: Checkpoint) -> bool:
        """Whether the database is known to keep its log for an Extract."""
        return False

    def slot(self, login: LoggedIn | None, group: Checkpoint) -> SlotFacts | None:
        """How much log the database retains for an Extract; None if that is unknown."""
        return None
