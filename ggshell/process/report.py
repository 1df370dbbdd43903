"""The report of a run: what a process was told, what it met, what it did.  Older ones are kept as 0 to 9."""

from __future__ import annotations

import os
import re
import resource
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ggshell import __version__
from ggshell.clock import Clock, local_text
from ggshell.errors import DiskError, GgsError
from ggshell.process.lag_stats import delivered_lines
from ggshell.store.events import EventLog, Severity, flat
from ggshell.store.home import Home

_WIDTH = 71
_STARS = "*" * _WIDTH
_VALUE = r"(?:\"[^\"\n]*\"?|'[^'\n]*'?|[^\s,;]+)"
_SECRETS = (
    re.compile(rf"(\bPASSWORD\b\s*[,=]?\s*){_VALUE}", re.IGNORECASE),
    re.compile(r"(\b[a-z][a-z0-9+.-]*://[^\s:/@]+:)[^\s@]+(?=@)", re.IGNORECASE),
)
_LIMITS = {
    "Address Space Size": resource.RLIMIT_AS,
    "Heap Size": resource.RLIMIT_DATA,
    "File Size": resource.RLIMIT_FSIZE,
    "CPU Time": resource.RLIMIT_CPU,
}
OLDEST = 9


def masked(text: str) -> str:
    """Text with every password replaced: behind PASSWORD, in ``password=``, and in URLs."""
    for pattern in _SECRETS:
        text = pattern.sub(r"\g<1>*******", text)
    return text


class Report:
    """A group's report file, begun anew when it is opened.  ``event`` also goes to ggserr.log."""

    def __init__(self, home: Home, group: str, program: str, clock: Clock) -> None:
        self._home = home
        self._group = group
        self._clock = clock
        self._program = f"ggshell {program} for PostgreSQL"
        self._log = EventLog(home, clock)
        self._path = home.report(group)
        self.roll()

    def roll(self) -> None:
        """Begin a new report; the present one becomes number 0, number 9 goes.  Raises DiskError."""
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
            with self._path.open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text + "\n")
        except OSError as error:
            raise DiskError(f"cannot write report {self._path}: {error.strerror}") from error

    def opening(self, parameters: Path) -> None:
        """The frame of a new run: program, system, parameters without their secrets."""
        system = os.uname()
        title = [_centred(self._program), _centred(f"Version {__version__}"), ""]
        lines = [_STARS, *title, _centred(f"Starting at {local_text(self._clock.now())}"), _STARS, ""]
        lines += ["Operating System Version:", system.sysname, f"Version {system.version}, Release {system.release}"]
        lines += [f"Node: {system.nodename}", f"Machine: {system.machine}"]
        lines += [f"{'':<21}{'soft limit':>16}{'hard limit':>16}", *map(_limit, _LIMITS), ""]
        lines += [f"Process id: {os.getpid()}", "", "Description: ", ""]
        lines += _box("            Running with the following parameters                  ")
        try:
            lines += ["", masked(parameters.read_text(errors="replace")).rstrip()]
        except OSError:
            lines += ["", f"(no parameter file {parameters})"]
        lines += ["", *_box("                     Run Time Messages                             "), ""]
        self.write("\n".join(lines))

    def event(self, severity: Severity, code: str, text: str) -> None:
        """Something that happened: into the report and into ggserr.log.  Raises DiskError."""
        text = masked(text)
        self.write(f"{local_text(self._clock.now())}  {severity:<8}{code}  {flat(text)}")
        self._log.write(severity, code, f"{self._program}, {self._group.lower()}.prm", text)

    def abend(self, error: GgsError) -> None:
        """The end by an error: where in the program, what happened, what to do."""
        self.write("\n".join(["", *_source_context(error)]))
        self.event(Severity.ERROR, error.code, str(error))
        self.write("")
        self.event(Severity.ERROR, "OGG-01668", "PROCESS ABENDING.")

    def statistics(self, snapshot: Mapping[str, Any]) -> None:
        """What was done until now, by table: on REPORT and at the end of a run."""
        now, since = local_text(snapshot["now"]), local_text(snapshot["sections"]["total"])
        lines = ["", *_box("                    Run Time Statistics                            "), ""]
        lines += ["", f"Report at {now} (activity since {since})", ""]
        for table in snapshot["tables"]:
            lines.append(f"From Table {table['source']} to {table['target']}:")
            lines += [f"       #{kind:>18}: {count:>9}" for kind, count in table["counts"]["total"].items()]
        if not snapshot["tables"]:
            lines.append("No records were processed.")
        lines += delivered_lines(snapshot.get("delivered", ()))
        self.write("\n".join([*lines, ""]))


def _centred(text: str) -> str:
    return f"{text:^{_WIDTH}}".rstrip()


def _box(text: str) -> list[str]:
    return [_STARS, f"**{text}**", _STARS]


def _limit(name: str) -> str:
    shown = [
        "unlimited" if value == resource.RLIM_INFINITY else str(value) for value in resource.getrlimit(_LIMITS[name])
    ]
    return f"{name:<19}: {shown[0]:>16}{shown[1]:>16}"


def _source_context(error: BaseException) -> list[str]:
    """Where in the program an error arose: the innermost place of ours."""
    place, trace = None, error.__traceback__
    while trace is not None:
        module = str(trace.tb_frame.f_globals.get("__name__", ""))
        if module.startswith("ggshell"):
            place = (module, trace.tb_frame.f_code.co_name, trace.tb_lineno)
        trace = trace.tb_next
    if place is None:
        return []
    module, function, line = place
    return [
        "Source Context :",
        f"  {'SourceModule':<24}: [{module}]",
        f"  {'SourceFunction':<24}: [{function}]",
        f"  {'SourceLine':<24}: [{line}]",
        "",
    ]
