"""Starts processes and waits until they report that they are running."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

from ggshell.connectors.connector import Connector
from ggshell.connectors.registry import replicat_program
from ggshell.errors import DiskError, ProcessError
from ggshell.files import remedy
from ggshell.groups.control import wait_readable
from ggshell.groups.lifecycle import READY_VARIABLE
from ggshell.home import checkpoint
from ggshell.home.checkpoint import GroupKind
from ggshell.home.home import Home

READY_SECONDS = 45.0
SERVICE_PROGRAM = "ggshell.service"
MEMORY_SETTINGS: Final = {
    "MALLOC_MMAP_THRESHOLD_": str(16 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(32 << 20),
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}
"""Settings of glibc, in bytes. With its own, memory of a batch goes back to the kernel after each batch, and the kernel clears
it again for the next one. Arrow shares glibc's memory: a pool of its own would keep what it has freed a second time."""
_PRINTED: Final = re.compile(r"(?P<code>(?:GGS|OGG)-\d{5})  (?P<message>.*?)(?:\n  Hint: (?P<hint>.*))?\n", re.DOTALL)
"""An error as an entry point prints it."""


class Launch:
    """A process that is starting.

    ``fileno`` becomes readable when the process reports that it is running, or when it ends. Its output goes to
    ``dirrpt/<GROUP>.out``.
    """

    def __init__(self, home: Home, kind: str, group: str = "") -> None:
        """``kind``: ``extract``, ``path``, ``replicat``, ``manager`` or ``service``. Raises DiskError."""
        shown = GroupKind.PATH if kind == "path" else kind.upper()
        self._name = f"{shown} {group.upper()}".strip()
        self._output = home.output(group or _output_name(kind))
        self._read_end, write_end = os.pipe()
        try:
            self.process = _start(home, kind, group, write_end)
        except OSError as error:
            os.close(self._read_end)
            hint = remedy(Path(error.filename)) if error.filename else ""
            raise DiskError(
                f"cannot start {self._name}: {error.strerror}", where=str(error.filename or ""), hint=hint
            ) from error
        finally:
            os.close(write_end)

    def fileno(self) -> int:
        return self._read_end

    def finish(self, *, ready: bool) -> subprocess.Popen[bytes]:
        """Return the running process; ``ready``: the descriptor is readable.

        Raises ProcessError, with the process's output, if the process has ended. If it is not ready, kills the process and
        raises ProcessError.
        """
        try:
            if not ready:
                self.process.kill()
                self.process.wait()
                raise ProcessError(
                    f"{self._name} did not start within {READY_SECONDS:g} seconds", hint="view its report"
                )
            if not os.read(self._read_end, 1):
                self.process.wait()
                raise _ended(self._name, self._output.read_text(errors="replace"))
        finally:
            os.close(self._read_end)
        return self.process


def _ended(name: str, printed: str) -> ProcessError:
    """Return the error of a process that ended during its start. ``printed``: what it printed, usually one error."""
    error = _PRINTED.fullmatch(printed)
    if error is None:
        return ProcessError(f"{name} ended immediately: {' '.join(printed.split()) or 'see its report'}")
    message = " ".join(error["message"].split())
    return ProcessError(f"{name} ended immediately: {message}", code=error["code"], hint=error["hint"] or "")


def spawn(home: Home, kind: str, group: str = "") -> subprocess.Popen[bytes]:
    """Start a process and wait until it reports that it is running. Raises DiskError, ProcessError."""
    launch = Launch(home, kind, group)
    return launch.finish(ready=bool(wait_readable([launch.fileno()], READY_SECONDS)))


def _output_name(kind: str) -> str:
    return "mgr" if kind == "manager" else kind


def _program(home: Home, kind: str, group: str) -> str:
    """Return the package whose entry point runs a group; a kind of database may have its own."""
    if kind == "service":
        return SERVICE_PROGRAM
    if kind != "replicat":
        return Connector.program
    options = checkpoint.load(home.checkpoint(group.upper(), GroupKind.REPLICAT)).options
    return replicat_program(options.replicat_kind)


def _start(home: Home, kind: str, group: str, ready: int) -> subprocess.Popen[bytes]:
    """Start the process in its own session, in the home directory; -P prevents it from importing modules of the home."""
    arguments = [sys.executable, "-P", "-m", _program(home, kind, group), kind, "--home", str(home.root)]
    if group:
        arguments += ["--group", group]
    output = home.output(group or _output_name(kind))
    output.parent.mkdir(parents=True, exist_ok=True)
    with output.open("wb") as log:
        return subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=home.root,
            pass_fds=[ready],
            start_new_session=True,
            env={**MEMORY_SETTINGS, **os.environ, READY_VARIABLE: str(ready)},
        )
