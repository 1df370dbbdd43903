"""The error classes of ggshell. The class gives the meaning; the code is the number that an administrator looks up.

Vendor codes (``OGG-nnnnn``) are used only with the meaning that the vendor's message pages and public logs document.
ggshell's own events use ``GGS-nnnnn`` codes. A code is never reused with another meaning.
"""

from __future__ import annotations

from typing import Final

OUT_OF_MEMORY = "not enough memory - raise the memory limit (ulimit -v), or process less data at a time"
"""The text of GGS-00807: Python or a library could not allocate memory."""
NO_TABLE: Final = "GGS-00211"
"""The code of the error for a table that does not exist."""


class GgsError(Exception):
    """The base class of all errors. Its text is written so that an administrator can act on it.

    ``code`` identifies the kind of error, ``message`` says what happened, ``where`` is the location (file:line:column,
    trail and RBA, or table), and ``hint`` is the action to take.
    """

    code = "GGS-00001"

    def __init__(self, message: str, *, code: str | None = None, where: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint
        if code is not None:
            self.code = code

    @property
    def located(self) -> str:
        """Message and location, without the code and the hint."""
        return f"{self.message} ({self.where})" if self.where else self.message

    def __str__(self) -> str:
        """Return message, location and hint on one line, without the code."""
        return f"{self.located} - {self.hint}" if self.hint else self.located


class UsageError(GgsError):
    """A command line or a statement is not valid."""

    code = "GGS-00002"


class StatementError(GgsError):
    """The grammar rejects a statement or a parameter; the error carries line and column."""

    code = "GGS-00101"
    spot = -1
    """The 0-based offset of the error in ``source``, set when ``line`` and ``column`` refer to the file instead."""

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        where: str = "",
        hint: str = "",
        line: int = 1,
        column: int = 1,
        source: str = "",
        page: str = "",
    ) -> None:
        super().__init__(message, code=code, where=where, hint=hint)
        self.line = line
        self.column = column
        self.source = source
        self.page = page


class ParameterError(StatementError):
    """A parameter file contains an unknown parameter, an invalid value, or an invalid combination."""

    code = "OGG-10143"


class NotFoundError(GgsError):
    """A named object (group, trail, alias, table) does not exist."""

    code = "GGS-00201"


class ConflictError(GgsError):
    """An object already exists, is already running, or is in use."""

    code = "GGS-00202"


class StateError(GgsError):
    """The command is not valid in the current state, for example STOP of a stopped group, or no login."""

    code = "GGS-00203"


class StoreError(GgsError):
    """A file of the home directory is missing, damaged or locked."""

    code = "GGS-00301"


class TrailError(GgsError):
    """A trail is damaged or not valid, or one of its files is missing."""

    code = "OGG-01028"


class DiskError(GgsError):
    """A write failed: no space, no permission, or an I/O error."""

    code = "GGS-00303"


class DatabaseError(GgsError):
    """A database refuses a request, or lacks a setting, a privilege or an object that replication requires."""

    code = "GGS-00401"


class ConnectionLostError(DatabaseError):
    """The connection to a database or a process was lost; a retry may succeed."""

    code = "GGS-00402"


class WaitingDdlError(DatabaseError):
    """DDL of another session waits for the locks of a snapshot: it must run first, and a load needs another snapshot."""

    code = "GGS-00735"


class LogRefusedError(ConnectionLostError):
    """The server ended the log stream with an error: it cannot decode what comes next, at least not in this form."""

    code = "GGS-00507"


class StoppedError(ConnectionLostError):
    """A statement was canceled because its process is stopping; the connection is still open."""

    code = "GGS-00403"


class CaptureError(GgsError):
    """Extract cannot continue without losing or duplicating changes."""

    code = "GGS-00501"


class ApplyError(GgsError):
    """Replicat cannot apply an operation.

    ``place``: the sequence number and RBA of the record, or None if the operation is not from a trail.
    """

    code = "OGG-01296"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        where: str = "",
        hint: str = "",
        place: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(message, code=code, where=where, hint=hint)
        self.place = place


class RowGoneError(ApplyError):
    """The checkpoint table lacks rows that a group needs, so it no longer shows what the group has applied.

    ``low``: the CSN up to which everything is known to be applied, or None if no row records it.
    """

    code = "GGS-00516"

    def __init__(self, message: str, *, hint: str = "", low: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.low = low


class TransactionAbortedError(GgsError):
    """A transaction was rolled back and must be started again after ``pause`` seconds."""

    code = "GGS-00563"

    def __init__(self, message: str, *, pause: float = 0.0) -> None:
        super().__init__(message)
        self.pause = pause


class TargetChangedError(GgsError):
    """A target table no longer matches the prepared statements.

    The transaction is rolled back completely and applied again.
    """

    code = "GGS-00571"


class ProcessError(GgsError):
    """A process cannot be started, reached or stopped."""

    code = "GGS-00601"


class HomeMovedError(ProcessError):
    """The home directory is no longer at the path where the process was started.

    Files that the process wrote there now would belong to no home or to another home.
    """

    code = "GGS-00805"


class HttpError(GgsError):
    """A request that HTTP itself refuses. ``status``: its status code; ``headers`` are added to the answer."""

    code = "GGS-00902"

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        hint: str = "",
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message, code=code, hint=hint)
        self.status = status
        self.headers = headers or {}
