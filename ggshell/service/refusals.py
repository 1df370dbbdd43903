"""HTTP statuses of errors, and the headers that go with them."""

from __future__ import annotations

import sys
import traceback
from typing import Final

from ggshell.errors import (
    ConflictError,
    ConnectionLostError,
    DatabaseError,
    DiskError,
    GgsError,
    HttpError,
    NotFoundError,
    ParameterError,
    ProcessError,
    StateError,
    StatementError,
    StoreError,
    UsageError,
)
from ggshell.language.redaction import masked
from ggshell.service.answers import Said

RETRY_SECONDS: Final = 5
"""The value of Retry-After: how soon a client should repeat a request that was refused for a temporary reason."""
_STATUSES: Final[tuple[tuple[type[GgsError], int], ...]] = (
    (NotFoundError, 404),
    (ConflictError, 409),
    (StateError, 409),
    (ParameterError, 400),
    (StatementError, 400),
    (UsageError, 400),
    (ConnectionLostError, 503),
    (DatabaseError, 422),
    (ProcessError, 503),
    (StoreError, 503),
    (DiskError, 503),
)
_CODES: Final = {"GGS-00999": 500, "GGS-00807": 503, "GGS-00306": 409}
"""Codes whose status differs from that of their class: a bug, not enough memory, a group without a parameter file."""


def status_of(error: GgsError) -> int:
    """Return the HTTP status of an error."""
    if isinstance(error, HttpError):
        return error.status
    if error.code in _CODES:
        return _CODES[error.code]
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)


def headers_of(error: GgsError) -> dict[str, str]:
    """Return the headers that an error adds to its answer."""
    if isinstance(error, HttpError) and error.headers:
        return error.headers
    return {"Retry-After": str(RETRY_SECONDS)} if status_of(error) in (429, 503) else {}


def not_here(what: str, instead: str) -> HttpError:
    """Return the error for a resource of the vendor's API that does not apply to ggshell."""
    return HttpError(404, f"{what} is not supported", code="GGS-00904", hint=instead)


def stored_only(what: str, instead: str) -> Said:
    """Return the message for a setting that is stored and shown but has no effect in ggshell."""
    return Said("GGS-00920", f"{what} is stored but has no effect: {instead}.", "WARNING")


def not_stored(what: str, instead: str) -> Said:
    """Return the message for a setting that is accepted and not stored, because it has no effect in ggshell."""
    return Said("GGS-00920", f"{what} has no effect and is not stored: {instead}.", "WARNING")


def bug(error: Exception) -> GgsError:
    """Return the error for an exception that only a mistake in ggshell can raise; its traceback goes to standard error."""
    sys.stderr.write(masked("".join(traceback.format_exception(error))))
    return GgsError(f"internal error: {type(error).__name__}: {masked(str(error))}", code="GGS-00999")
