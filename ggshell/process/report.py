"""The report of a run: what a process was told, what it met, what it did.  Older ones are kept as 0 to 9."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

from ggshell import __version__
from ggshell.clock import Clock, local_text
from ggshell.errors import DiskError, GgsError
from ggshell.store.events import EventLog, Severity, event_line
from ggshell.store.home import Home

_STARS = "*" * 71
_SECRET = re.compile(r"(\bPASSWORD\b\s*,?\s*)(\"[^\"]*\"|'[^']*'|[^\s,;]+)", re.IGNORECASE)
OLDEST = 9


def masked(text: str) -> str:
    """Text with every password replaced."""
    return _SECRET.sub(r"\1*******", text)


class Report:
    """A group's report file.  ``event`` also goes to ggserr.log."""

    def __init__(self, home: Home, group: str, program: str, clock: Clock) -> None:
        self._home = home
        self._group = group
        self._clock = clock
        self._program = program
        self._log = EventLog(home, clock)
        self._path = home.report(group)
        self.roll()

    def roll(self) -> None:
        """Begin a new report; the present one becomes number 0."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            if self._path.exists():
                for age in range(OLDEST - 1, -1, -1):
                    older = self._home.report(self._group, age)
                    if older.exists():
                        older.replace(self._home.report(self._group, age + 1))
                self._path.replace(self._home.report(self._group, 0))
            self._path.touch()
        except OSError as error:
            raise DiskError(f"cannot write report {self._path}: {error.strerror}") from error

    def write(self, text: str) -> None:
        """Append text as it is.  Raises DiskError."""
        try:
            with self._path.open("a") as file:
                file.write(text + "\n")
        except OSError as error:
            raise DiskError(f"cannot write report {self._path}: {error.strerror}") from error

    def opening(self, parameters: Path) -> None:
        """The frame of a new run: program, system, parameters."""
        system = platform.uname()
        lines = [
            _STARS,
            f"{'ggshell ' + self._program + ' for PostgreSQL':^71}".rstrip(),
            f"{'Version ' + __version__:^71}".rstrip(),
            "",
            f"{'Starting at ' + local_text(self._clock.now()):^71}".rstrip(),
            _STARS,
            "",
            "Operating System Version:",
            system.system,
            f"Version {system.version}, Release {system.release}",
            f"Node: {system.node}",
            f"Machine: {system.machine}",
            "",
            f"Process id: {os.getpid()}",
            "",
            _STARS,
            "**            Running with the following parameters                  **",
            _STARS,
        ]
        try:
            lines.append(masked(parameters.read_text(errors="replace")).rstrip())
        except OSError:
            lines.append(f"(no parameter file {parameters})")
        lines += ["", _STARS, "**                     Run Time Messages                             **", _STARS, ""]
        self.write("\n".join(lines))

    def event(self, severity: Severity, code: str, text: str) -> None:
        """Something that happened: into the report and into ggserr.log."""
        program = f"ggshell {self._program} for PostgreSQL, {self._group.lower()}.prm"
        line = event_line(self._clock.now(), severity, code, "", text)
        self.write(line.replace(code + "  :  ", code + "  ").rstrip("\n"))
        self._log.write(severity, code, program, text)

    def abend(self, error: GgsError) -> None:
        """The end by an error: what, where, what to do."""
        self.write("")
        self.event(Severity.ERROR, error.code, str(error))
        self.event(Severity.ERROR, "OGG-01668", "PROCESS ABENDING.")
