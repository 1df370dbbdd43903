"""The error log, ggserr.log: one line per event, for people and for monitoring tools."""

from __future__ import annotations

import os
from collections.abc import Callable
from enum import StrEnum

from ggshell.clock import Clock, local_text
from ggshell.files import disk_errors
from ggshell.home.home import Home


class Severity(StrEnum):
    """The severity of an event."""

    INFO = "INFO"
    WARNING = "WARNING"
    ERROR = "ERROR"


ReportEvent = Callable[[Severity, str, str], None]
"""Reports an event: its severity, code and text."""


class EventLog:
    """The error log, to which several processes can append.

    A line has the form ``YYYY-MM-DD HH:MM:SS  SEVERITY  CODE  program: text`` and is written with a single write.
    """

    def __init__(self, home: Home, clock: Clock) -> None:
        self._path = home.event_log
        self._clock = clock

    def write(self, severity: Severity, code: str, program: str, text: str) -> None:
        """Append one event. Raises DiskError."""
        line = event_line(self._clock.now(), severity, code, program, text)
        with disk_errors("write", self._path):
            descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o640)
            try:
                os.write(descriptor, line.encode())
            finally:
                os.close(descriptor)

    def read(self) -> str:
        """Return the whole log, or an empty text if there is none."""
        try:
            return self._path.read_text(errors="replace")
        except FileNotFoundError:
            return ""


def flat(text: str) -> str:
    """Return a text on one line; control characters and line ends, which could forge an event, become spaces."""
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())


def event_line(now: int, severity: Severity, code: str, program: str, text: str) -> str:
    """Format one line of the log, in the layout that monitoring scripts parse."""
    return f"{local_text(now)}  {severity:<8}{code}  {program}:  {flat(text)}\n"
