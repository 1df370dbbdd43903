"""Ends every process of a home, in any state, for an interrupted quickstart and after fault tests and benchmarks.

A process belongs to a home if the home has a process file with its PID and start time, or if its command line names
exactly this home: a process that is just starting has no file yet. Processes of other homes, and later processes with
the same PID, are not affected.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ggshell.errors import ProcessError
from ggshell.home.process_file import alive, read_process_file

_ENDINGS = (".pcm", ".pcs", ".pce", ".pcr", ".pcd")
_PROGRAMS = ("ggshell.groups", "ggshell.service")
_ATTEMPTS = 200
_PAUSE_SECONDS = 0.025


class Running(NamedTuple):
    """A process of the home: its PID, and the name of its process file or its type and group."""

    pid: int
    name: str


def running_processes(home: Path) -> list[Running]:
    """Return every running process of the home, Manager first, since it would restart the others."""
    found = {process.pid: process for process in (*_by_file(home), *_by_command_line(home))}
    return sorted(found.values(), key=lambda process: not process.name.upper().startswith(("MGR", "MANAGER")))


def _by_file(home: Path) -> Iterator[Running]:
    for ending in _ENDINGS:
        for path in sorted((home / "dirpcs").glob(f"*{ending}")):
            entry = read_process_file(path)
            if entry is not None and alive(entry):
                yield Running(entry.pid, path.name)


def _by_command_line(home: Path) -> Iterator[Running]:
    """Find processes by command line on systems with /proc; on others, only the process files are used."""
    system = Path("/proc")
    for folder in system.iterdir() if system.is_dir() else ():
        if not folder.name.isdigit():
            continue
        with contextlib.suppress(OSError):  # it ended during the search
            words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
            program = next((each for each in _PROGRAMS if each in words), None)
            if program is not None and "--home" in words and words[words.index("--home") + 1] == str(home):
                kind, *rest = words[words.index(program) + 1 :]
                group = rest[rest.index("--group") + 1] if "--group" in rest else ""
                yield Running(int(folder.name), f"{kind} {group}".strip())


def end_processes(home: Path) -> list[str]:
    """Kill all processes of the home, wait until they have ended, and return their names.

    Raises ProcessError if one is still running after five seconds.
    """
    ended: dict[int, str] = {}
    pause = threading.Event()
    for _ in range(_ATTEMPTS):
        found = running_processes(home)
        if not found:
            return list(ended.values())
        for process in found:
            ended.setdefault(process.pid, process.name)
            with contextlib.suppress(ProcessLookupError):  # it has ended by itself
                os.kill(process.pid, signal.SIGKILL)
        pause.wait(_PAUSE_SECONDS)
    raise ProcessError(f"processes of {home} could not be stopped: {', '.join(ended.values())}")
