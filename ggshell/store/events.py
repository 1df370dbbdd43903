"""The error log, ggserr.log: one line an event, for people and for the tools that read it."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import BinaryIO

from ggshell.clock import Clock, local_text
from ggshell.errors import DiskError
from ggshell.store.home import Home

_BLOCK = 1 << 16


class Severity(StrEnum):
    """How bad an event is."""

    INFO = "INFO"
    WARNING = "WARNING"
    ERROR = "ERROR"


class EventLog:
    """Appends lines ``YYYY-MM-DD HH:MM:SS  SEVERITY  CODE  program:  text``; each in one write, so processes may share it."""

    def __init__(self, home: Home, clock: Clock) -> None:
        self._path = home.event_log
        self._clock = clock

    def write(self, severity: Severity, code: str, program: str, text: str) -> None:
        """Append one event.  Raises DiskError."""
        line = event_line(self._clock.now(), severity, code, program, text)
        try:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o640)
            try:
                os.write(descriptor, line.encode())
            finally:
                os.close(descriptor)
        except OSError as error:
            raise DiskError(f"cannot write {self._path}: {error.strerror}") from error

    def read(self) -> str:
        """The whole log; empty when there is none."""
        try:
            return self._path.read_text(errors="replace")
        except FileNotFoundError:
            return ""

    def tail(self, count: int) -> list[str]:
        """The last lines, oldest first; reads no more of the log than it must."""
        try:
            with self._path.open("rb") as file:
                return _last_lines(file, count)
        except FileNotFoundError:
            return []


def _last_lines(file: BinaryIO, count: int) -> list[str]:
    place, data = file.seek(0, os.SEEK_END), b""
    while place and data.count(b"\n") <= count:
        step = min(_BLOCK, place)
        place -= step
        file.seek(place)
        data = file.read(step) + data
    lines = data.decode(errors="replace").splitlines()
    return lines[-count:] if count else []


def flat(text: str) -> str:
    """Text on one line: control characters and line ends, which could fake another event, become blanks."""
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())


def event_line(now: int, severity: Severity, code: str, program: str, text: str) -> str:
    """One line of the log, in the layout that monitoring scripts split."""
    return f"{local_text(now)}  {severity:<8}{code}  {program}:  {flat(text)}\n"
