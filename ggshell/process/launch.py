"""Starting processes, and waiting for word that they run."""

from __future__ import annotations

import os
import subprocess
import sys

from ggshell.errors import ProcessError
from ggshell.process.control import wait_readable
from ggshell.process.lifecycle import READY_VARIABLE
from ggshell.store.home import Home

READY_SECONDS = 30.0


def spawn(home: Home, kind: str, group: str = "") -> subprocess.Popen[bytes]:
    """Start ``extract``, ``path``, ``replicat`` or ``manager`` as a process of its own and wait until it says that it runs.

    Raises ProcessError with what it printed when it ends before that.  What it prints later goes to ``dirrpt/<GROUP>.out``.
    """
    read_end, write_end = os.pipe()
    output = home.root / "dirrpt" / f"{(group or 'mgr').upper()}.out"
    output.parent.mkdir(parents=True, exist_ok=True)
    arguments = [sys.executable, "-m", "ggshell.process", kind, "--home", str(home.root)]
    if group:
        arguments += ["--group", group]
    with output.open("wb") as log:
        process = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=[write_end],
            start_new_session=True,
            env={**os.environ, READY_VARIABLE: str(write_end)},
        )
    os.close(write_end)
    try:
        ready = wait_readable([read_end], READY_SECONDS)
        if not ready:
            raise ProcessError(f"{kind} {group} does not say that it runs", hint=f"look at {output}")
        if not os.read(read_end, 1):
            process.wait()
            text = " ".join(output.read_text(errors="replace").split())
            raise ProcessError(f"{kind.upper()} {group.upper()} ended at once: {text or 'see its report'}")
    finally:
        os.close(read_end)
    return process
