"""Starting processes, and waiting for word that they run."""

from __future__ import annotations

import os
import subprocess
import sys

from ggshell.errors import DiskError, ProcessError
from ggshell.process.control import wait_readable
from ggshell.process.lifecycle import READY_VARIABLE
from ggshell.store import checkpoint
from ggshell.store.checkpoint import LAKE, GroupType
from ggshell.store.home import Home

READY_SECONDS = 45.0


def spawn(home: Home, kind: str, group: str = "") -> subprocess.Popen[bytes]:
    """Start ``extract``, ``path``, ``replicat`` or ``manager`` as a process of its own and wait until it says that it runs.

    Raises ProcessError with what it printed when it ends before that, and when it says nothing for too long (it is then
    ended).  What it prints later goes to ``dirrpt/<GROUP>.out``.
    """
    name = f"{kind.upper()} {group.upper()}".strip()
    read_end, write_end = os.pipe()
    try:
        process = _start(home, kind, group, write_end)
    except OSError as error:
        os.close(read_end)
        raise DiskError(f"cannot start {name}: {error.strerror}", where=str(error.filename or "")) from error
    finally:
        os.close(write_end)
    try:
        if not wait_readable([read_end], READY_SECONDS):
            process.kill()
            process.wait()
            raise ProcessError(f"{name} did not come to run within {READY_SECONDS:g} seconds", hint="see its report")
        if not os.read(read_end, 1):
            process.wait()
            printed = " ".join(home.output(group or "mgr").read_text(errors="replace").split())
            raise ProcessError(f"{name} ended at once: {printed or 'see its report'}")
    finally:
        os.close(read_end)
    return process


def _room(home: Home, kind: str, group: str) -> str:
    """The package whose entry runs a group: delivery to a lake has its own, above Spark."""
    if kind != "replicat":
        return "ggshell.process"
    options = checkpoint.load(home.checkpoint(group.upper(), GroupType.REPLICAT)).options
    return "ggshell.lake" if options.get("kind") == LAKE else "ggshell.process"


def _start(home: Home, kind: str, group: str, ready: int) -> subprocess.Popen[bytes]:
    """The process itself: in a session of its own, in the home, with no module of the home in its way (-P)."""
    arguments = [sys.executable, "-P", "-m", _room(home, kind, group), kind, "--home", str(home.root)]
    if group:
        arguments += ["--group", group]
    output = home.output(group or "mgr")
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
            env={**os.environ, READY_VARIABLE: str(ready)},
        )
