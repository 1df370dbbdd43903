"""The events of ggserr.log as records, and the changes of status that they report."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from ggshell.clock import EPOCH
from ggshell.errors import UsageError
from ggshell.groups.lifecycle import RUN_CODES
from ggshell.home.home import Home
from ggshell.service.answers import Said

_LINE: Final = re.compile(rb"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)  (INFO|WARNING|ERROR) +((?:OGG|GGS)-\d{5})  (.*?):  (.*)")
_PROCESS: Final = re.compile(r", ([^,]+)\.prm$")
_DOWN: Final = re.compile(r"(?:EXTRACT|REPLICAT|DISTPATH|RECVPATH|PATH) (\S+) is down \((\w+)\)")
_DOWN_CODE: Final = "OGG-00979"
_DOWN_STATES: Final = {"gracefully": "Stopped", "killed": "Killed", "abended": "Abend"}
_RUN_STATES: Final = ("Starting", "Running", "Stopped")
_STATES: Final[dict[str, str]] = {
    **{code: state for codes in RUN_CODES.values() for code, state in zip(codes, _RUN_STATES, strict=True)},
    "OGG-00983": "Running",
    "OGG-00938": "Stopping",
    "OGG-01668": "Abend",
}
MOST: Final = 10_000
_SLACK: Final = timedelta(minutes=1)
_USUAL: Final = 1000


class LoggedEvent(NamedTuple):
    """A line of ggserr.log. ``number``: its place in the file, from 1. ``issued``: ISO 8601, UTC. ``process``: MGR, EXT1, …"""

    number: int
    issued: str
    severity: str
    code: str
    program: str
    text: str

    @property
    def process(self) -> str:
        found = _PROCESS.search(self.program)
        if found is None:
            return "GGSCI" if "Command Interpreter" in self.program else self.program.upper()[:16]
        return found[1].upper()

    @property
    def said(self) -> Said:
        return Said(self.code, self.text, self.severity)

    @property
    def change(self) -> tuple[str, str] | None:
        """The process whose status changed and its new status, None if the event is about something else."""
        if self.code == _DOWN_CODE:
            found = _DOWN.match(self.text)
            return (found[1], _DOWN_STATES[found[2]]) if found and found[2] in _DOWN_STATES else None
        state = _STATES.get(self.code)
        return (self.process, state) if state else None


class Wanted(NamedTuple):
    """Which records a client wants: numbers from ``first`` to ``last``, without the first ``offset``, at most ``limit``.

    Without ``first`` and ``offset``, they are the newest ones.
    """

    first: int | None = None
    last: int | None = None
    offset: int = 0
    limit: int = _USUAL


EVENT_QUERY: Final = {
    "fromID": "the number of the first message",
    "toID": "the number of the last message",
    "offset": "the number of matching messages to skip",
    "limit": (
        f"the maximum number of messages in the response: {_USUAL} by default, at most {MOST};"
        " without fromID and offset, the newest"
    ),
}
"""What the parameters that ``wanted`` reads mean."""


def wanted(query: Mapping[str, str]) -> Wanted:
    """Read the parameters of an address: fromID, toID, offset, limit. Raises UsageError."""
    first, last, offset, limit = (_number(query, name) for name in ("fromID", "toID", "offset", "limit"))
    return Wanted(first, last, offset or 0, min(_USUAL if limit is None else limit, MOST))


def _number(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name, "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise UsageError(f"{name} is {text[:40]!a}, not a number")
    return int(text)


def events(home: Home, which: Wanted, fits: Callable[[LoggedEvent], bool] = lambda _: True) -> list[LoggedEvent]:
    """Return the events that a client wants and that fit, oldest first."""
    found = (event for event in _numbered(home, which) if fits(event))
    if which.first is None and not which.offset:
        return list(deque(found, which.limit))
    chosen = []
    for index, event in enumerate(found):
        if index >= which.offset + which.limit:
            break
        if index >= which.offset:
            chosen.append(event)
    return chosen


def _numbered(home: Home, which: Wanted) -> Iterator[LoggedEvent]:
    before = EPOCH
    try:
        with home.event_log.open("rb") as file:
            for number, line in enumerate(file, 1):
                if which.last is not None and number > which.last:
                    return
                if number >= (which.first or 0) and (match := _LINE.match(line)):
                    before = _moment(match[1].decode(), before)
                    yield _event(number, match, before)
    except FileNotFoundError:
        return


def _moment(text: str, before: datetime) -> datetime:
    """Return the moment of a local time, which the hour before the end of daylight saving time has twice.

    ``before``: the moment of the line before. Processes write lines at the same time, so a line may be slightly older.
    """
    local = datetime.strptime(text, "%Y-%m-%d %H:%M:%S")
    found = local.astimezone(UTC)
    if found >= before - _SLACK:
        return found
    again = local.replace(fold=1).astimezone(UTC)
    return again if again > before - _SLACK else found


def _event(number: int, match: re.Match[bytes], moment: datetime) -> LoggedEvent:
    severity, code, program, text = (part.decode(errors="replace") for part in match.groups()[1:])
    issued = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    return LoggedEvent(number, issued, severity, code, program, text.rstrip())
