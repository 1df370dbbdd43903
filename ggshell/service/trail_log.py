"""The lines of ggserr.log about connections of trails: one when a connection is made, one when it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import Final, NamedTuple

from ggshell.home.events import Severity

AGAIN_SECONDS: Final = 60.0
"""How long a lost connection may take to be re-established before its end is written. Senders wait at most half as long."""
REPLACED: Final = 1012
"""The code of a connection that ends because the other side has connected again."""
_LOST: Final = frozenset({1005, 1006, REPLACED})
"""The codes of connections that ended without a goodbye."""
Tell = Callable[[Severity, str, str], None]


def is_lost(code: int) -> bool:
    """Whether a connection that ended with a code was lost, so that the other side connects again."""
    return code in _LOST


class _Lost(NamedTuple):
    code: str
    text: str
    timer: asyncio.TimerHandle


class TrailLog:
    """Writes the lines. A connection that is lost and soon re-established is one line, about both. Used in the server's
    loop."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._lost: dict[Hashable, _Lost] = {}

    def begun(self, key: Hashable, code: str, text: str, *, again: bool = False) -> None:
        """Write that a connection was made. ``again``: an earlier one has not ended yet."""
        lost = self._lost.pop(key, None)
        if lost is not None:
            lost.timer.cancel()
        more = " again, after the connection was lost" if again or lost is not None else ""
        self._tell(Severity.INFO, code, f"{text}{more}.")

    def ended(self, key: Hashable, code: str, text: str, *, lost: bool) -> None:
        """Write that a connection ended; after a lost line, only if it is not re-established soon."""
        if lost:
            timer = asyncio.get_running_loop().call_later(AGAIN_SECONDS, self._write, key)
            self._lost[key] = _Lost(code, text, timer)
        else:
            self._tell(Severity.INFO, code, f"{text}.")

    def close(self) -> None:
        """Write what waits."""
        for key in list(self._lost):
            self._write(key)

    def _write(self, key: Hashable) -> None:
        lost = self._lost.pop(key)
        lost.timer.cancel()
        self._tell(Severity.INFO, lost.code, f"{lost.text}.")
