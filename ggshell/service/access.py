"""Which connections the service accepts: the rules of ACCESSRULE in mgr.prm, as they are now."""

from __future__ import annotations

import contextlib
from typing import Final

from ggshell.errors import DiskError, GgsError, HttpError
from ggshell.home.events import EventLog, Severity
from ggshell.home.home import Home
from ggshell.language.redaction import masked
from ggshell.parameters.access_rules import AccessRules, Program
from ggshell.parameters.loading import load_manager
from ggshell.service.refused_sign_ins import RefusedSignIns

_PROGRAM: Final = "Service"
_NOTHING: Final = (0, 0, 0)


class AccessControl:
    """Applies the access rules of a home. It reads them again when mgr.prm changes. Call it in the server's thread.

    Raises ParameterError, StoreError if mgr.prm is not valid when the service starts: it may contain rules that deny.
    """

    def __init__(self, home: Home, reports: RefusedSignIns, events: EventLog) -> None:
        self._path = home.parameters("mgr")
        self._reports = reports
        self._events = events
        self._version = self._version_of_file()
        self._rules = load_manager(self._path).access

    def allows(self, program: Program, host: str, login: str | None = None) -> bool:
        """Whether a program may connect from an address. ``login``: see AccessRules.allows."""
        return self._current().allows(program, host, login)

    def require(self, host: str, *programs: Program, login: str | None = None) -> None:
        """Raise HttpError 403, and report it once a minute for each address, unless one of the programs may connect.

        ``programs``: what the client may be; ``login``: see AccessRules.allows.
        """
        rules = self._current()
        if any(rules.allows(program, host, login) for program in programs):
            return
        user = f" as {login}" if login else ""
        text = f"ACCESSRULE denies program {programs[0]} from {host}{user}"
        more = self._reports.report("", host)
        if more is not None:
            others = f" ({more} more refused since the last message)" if more else ""
            self._report("GGS-00941", f"{text}{others}")
        raise HttpError(
            403,
            text,
            code="GGS-00941",
            hint="ask the administrator of this home to change ACCESSRULE in dirprm/mgr.prm",
            headers={"Connection": "close"},
        )

    def _current(self) -> AccessRules:
        """Return the rules of the file; if it is no longer valid, report it and keep the rules that were read last.

        They are also kept without the file, and while it is empty: some editors save it so.
        """
        version = self._version_of_file()
        if version in (self._version, _NOTHING):
            return self._rules
        self._version = version
        try:
            self._rules = load_manager(self._path).access
        except GgsError as error:
            text = (
                f"The access rules of mgr.prm were not read again, and the previous ones still apply: {error.located}"
            )
            self._report("GGS-00942", text)
        return self._rules

    def _report(self, code: str, text: str) -> None:
        with contextlib.suppress(DiskError):  # a disk that is full must not change who may connect
            self._events.write(Severity.WARNING, code, _PROGRAM, masked(text))

    def _version_of_file(self) -> tuple[int, int, int]:
        """Return a value that changes with every change of the file."""
        try:
            status = self._path.stat()
        except OSError:
            return _NOTHING
        return (status.st_mtime_ns, status.st_ino, status.st_size) if status.st_size else _NOTHING
