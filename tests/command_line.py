"""Runs ``ggshell`` as a separate process, forked from one that has already loaded the libraries (``fork_server.py``).

A command is a real process with the real command line and its own streams, directory and environment. The imports, most
of a short command's CPU time, are paid once for each worker of the tests.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from pathlib import Path

from fork_server import COMMAND_LINE, Request
from forked_processes import Fork


def run_ggshell(*words: object, timeout: float = 600, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command line with these words; returns exit code and output. A command that takes too long is killed."""
    texts = [str(word) for word in words]
    request = Request(
        COMMAND_LINE,
        texts,
        [],
        str(Path.cwd()),
        {**os.environ, **environment},
        targets=[0, 1, 2],
        new_session=False,
    )
    with (
        Path(os.devnull).open("rb") as nothing,
        tempfile.TemporaryFile("w+") as out,
        tempfile.TemporaryFile("w+") as err,
    ):
        fork = Fork(request, [each.fileno() for each in (nothing, out, err)])
        status = fork.status(timeout)
        if status is None:
            os.kill(fork.pid, signal.SIGKILL)
            raise subprocess.TimeoutExpired(texts, timeout)
        for stream in (out, err):
            stream.seek(0)
        return subprocess.CompletedProcess(words, os.waitstatus_to_exitcode(status), out.read(), err.read())
