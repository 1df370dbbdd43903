"""The one error tree: the class is the meaning, the code is the number an administrator looks up.

Vendor numbers (``OGG-nnnnn``) are used only with the meaning that the vendor's message pages and public logs give them;
every event of our own has a ``GGS-nnnnn`` number.  A code is never reused for another meaning.
"""

from __future__ import annotations


class GgsError(Exception):
    """Anything ggshell refuses or fails at, in words an administrator can act on.

    ``code`` names the kind, ``message`` says what happened, ``where`` the place (file:line:column, trail and RBA, table),
    ``hint`` what to do now.
    """

    code = "GGS-00001"

    def __init__(self, message: str, *, code: str | None = None, where: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint
        if code is not None:
            self.code = code

    def __str__(self) -> str:
        """One line: message, place and remedy, without the code."""
        parts = [self.message]
        if self.where:
            parts.append(f"({self.where})")
        if self.hint:
            parts.append(f"- {self.hint}")
        return " ".join(parts)


class UsageError(GgsError):
    """The command line or a statement asks for something that cannot be meant."""

    code = "GGS-00002"


class StatementError(GgsError):
    """A statement or a parameter that the grammar refuses, with its place."""

    code = "GGS-00101"

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
    """A parameter file with an unknown parameter, a wrong value, or a wrong combination."""

    code = "OGG-10143"


class NotFoundError(GgsError):
    """A named thing (group, trail, alias, table) does not exist."""

    code = "GGS-00201"


class ConflictError(GgsError):
    """A thing exists already, runs already, or is in use."""

    code = "GGS-00202"


class StateError(GgsError):
    """The command does not fit the present state (a stopped group is stopped again, no login)."""

    code = "GGS-00203"


class StoreError(GgsError):
    """A file of the home directory is missing, damaged or locked."""

    code = "GGS-00301"


class TrailError(GgsError):
    """A trail's bytes are not what they must be, or a file of it is missing."""

    code = "OGG-01028"


class DiskError(GgsError):
    """Writing failed: no space, no permission, an I/O error."""

    code = "GGS-00303"


class DatabaseError(GgsError):
    """A database refuses, or lacks a setting, a privilege or an object that replication needs."""

    code = "GGS-00401"


class ConnectionLostError(DatabaseError):
    """A database or a process went away; trying again may help."""

    code = "GGS-00402"


class CaptureError(GgsError):
    """Extract cannot go on without losing or doubling changes."""

    code = "GGS-00501"


class ApplyError(GgsError):
    """Replicat cannot apply an operation; ``place``: sequence number and RBA of the record, where it is one of the trail."""

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


class TransactionAbortedError(GgsError):
    """A transaction was rolled back and is to be begun anew, ``pause`` seconds from now."""

    code = "GGS-00563"

    def __init__(self, message: str, *, pause: float = 0.0) -> None:
        super().__init__(message)
        self.pause = pause


class ProcessError(GgsError):
    """A process cannot be started, reached, or ended."""

    code = "GGS-00601"
