"""Reports of connections that do not send HTTP: scans of ports must not fill a file, but an administrator may see them."""

from __future__ import annotations

import contextlib
from typing import Final

from ggshell.errors import GgsError
from ggshell.home.events import Severity
from ggshell.service.refused_sign_ins import RefusedSignIns
from ggshell.service.state import ServiceState

CODE: Final = "GGS-00943"


class InvalidRequests:
    """Writes what is not HTTP to ggserr.log: one line a minute for each address."""

    def __init__(self, state: ServiceState) -> None:
        self._state = state
        self._reported = RefusedSignIns(state.clock)

    def __call__(self, host: str) -> None:
        """Report bytes that are not an HTTP request, from an address."""
        more = self._reported.report("", host)
        if more is None:
            return
        others = f" ({more} more since the last message)" if more else ""
        with contextlib.suppress(GgsError):  # the log cannot be written: the connection ends all the same
            self._state.event(Severity.WARNING, CODE, f"{host} sent data that is not an HTTP request{others}")
