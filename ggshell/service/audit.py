"""The audit lines of the service in ggserr.log: who changed something or tried to, from where, with what outcome."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from typing import Final, NamedTuple

from ggshell.clock import Clock
from ggshell.errors import DiskError, GgsError
from ggshell.home.events import Severity, flat
from ggshell.language.redaction import masked
from ggshell.service.refusals import status_of
from ggshell.service.refused_sign_ins import RefusedSignIns

_FORBIDDEN: Final = 403
_LONGEST: Final = 300
"""Characters of an address or a statement in a line."""


class Attempt(NamedTuple):
    """What a user wants to do.

    ``verb``: the method of a request, or ``statement``. ``resource``: its path, or the statement without its secrets.
    """

    verb: str
    resource: str
    user: str
    host: str

    def __str__(self) -> str:
        shown = self.resource if len(self.resource) <= _LONGEST else f"{self.resource[:_LONGEST]}…"
        return f"{self.verb} {shown} by {self.user}@{self.host}"


class Audit:
    """Writes the lines. Any thread can use it. ``write``: adds an event to ggserr.log."""

    def __init__(self, write: Callable[[Severity, str, str], None], clock: Clock) -> None:
        self._write = write
        self._repeats = RefusedSignIns(clock)

    def done(self, attempt: Attempt, status: int) -> None:
        """Record a change."""
        self._line(Severity.INFO, f"{attempt}: {status}")

    def failed(self, attempt: Attempt, error: GgsError) -> None:
        """Record a change that was attempted and failed; what a role forbids is a refusal."""
        status = status_of(error)
        if status == _FORBIDDEN:
            self.refused(attempt, error)
        else:
            self._line(Severity.INFO, f"{attempt}: {status} {error.code}")

    def refused(self, attempt: Attempt, error: GgsError) -> None:
        """Record what was refused before anything was attempted: once a minute for each user, address and resource."""
        more = self._repeats.report(f"{attempt.user} {attempt.resource[:_LONGEST]}", attempt.host)
        if more is None:
            return
        others = f" ({more} more since the last message)" if more else ""
        text = f"{attempt}: {status_of(error)} {error.code} {masked(error.message)}{others}"
        self._line(Severity.WARNING, text)

    def _line(self, severity: Severity, text: str) -> None:
        """Write a line. The outcome of a request does not change if that fails; the line then goes to standard error."""
        try:
            self._write(severity, "GGS-00905", text)
        except DiskError as error:
            with contextlib.suppress(OSError):  # the same disk may be full
                sys.stderr.write(f"WARNING: not logged in ggserr.log: {flat(text)} ({error})\n")
