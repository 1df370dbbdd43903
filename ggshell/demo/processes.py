"""End every process of one home, whatever state it is in: for an interrupted quickstart, and after fault tests and benches.

A process belongs to a home by its process file (pid and start time), or by a command line that names exactly this home:
one that is just starting has no file yet.  Nothing of another home, and no later process with the same number, is touched.
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
from ggshell.process.state import alive, read_process_file

_ENDINGS = (".pcm", ".pce", ".pcr", ".pcd")
_ATTEMPTS = 200
_PAUSE_SECONDS = 0.025


class Running(NamedTuple):
    """A process of the home: its number, and the name of its process file or its kind and group."""

    pid: int
    name: str


def running_processes(home: Path) -> list[Running]:
    """Every process of the home that lives, Manager first (it would start the others again)."""
    found = {process.pid: process for process in (*_by_file(home), *_by_command_line(home))}
    return sorted(found.values(), key=lambda process: not process.name.upper().startswith(("MGR", "MANAGER")))


def _by_file(home: Path) -> Iterator[Running]:
    for ending in _ENDINGS:
        for path in sorted((home / "dirpcs").glob(f"*{ending}")):
            entry = read_process_file(path)
            if entry is not None and alive(entry):
                yield Running(entry.pid, path.name)


def _by_command_line(home: Path) -> Iterator[Running]:
    """Where the system has /proc; elsewhere the process files have to do."""
    system = Path("/proc")
    for folder in system.iterdir() if system.is_dir() else ():
        if not folder.name.isdigit():
            continue
        with contextlib.suppress(OSError):  # it ended while we looked
            words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if "ggshell.process" in words and "--home" in words and words[words.index("--home") + 1] == str(home):
                kind, *rest = words[words.index("ggshell.process") + 1 :]
                group = rest[rest.index("--group") + 1] if "--group" in rest else ""
                yield Running(int(folder.name), f"{kind} {group}".strip())


def end_processes(home: Path) -> list[str]:
    """Kill what runs and wait until nothing does; the names of what was ended.

    Raises ProcessError when something still lives after five seconds.
    """
    ended: dict[int, str] = {}
    pause = threading.Event()
    for _ in range(_ATTEMPTS):
        found = running_processes(home)
        if not found:
            return list(ended.values())
        for process in found:
            ended.setdefault(process.pid, process.name)
            with contextlib.suppress(ProcessLookupError):  # it ended by itself meanwhile
                os.kill(process.pid, signal.SIGKILL)
        pause.wait(_PAUSE_SECONDS)
    raise ProcessError(f"processes of {home} do not end: {', '.join(ended.values())}")
