"""Runs ``ggshell`` as a separate process, forked from one that has already loaded the libraries.

A command is a real process with the real command line and its own streams, directory and environment. The imports, most
of a short command's CPU time, are paid once for each worker of the tests.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn


def run_ggshell(*words: object, timeout: float = 600, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command line with these words; returns exit code and output."""
    with tempfile.TemporaryDirectory(prefix="ggs-run-") as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        process = {
            "out": str(out),
            "err": str(err),
            "cwd": str(Path.cwd()),
            "environment": {**os.environ, **environment},
        }
        server = _idle.pop() if _idle else _start_server()
        code = _ask(server, {"words": [str(word) for word in words], **process}, timeout)
        _idle.append(server)
        return subprocess.CompletedProcess(words, code, out.read_text(), err.read_text())


def _ask(server: subprocess.Popen[bytes], request: dict[str, Any], timeout: float) -> int:
    """Run a command; returns its exit code. A command that takes too long is killed.

    The pipes are unbuffered: a buffered first line would also take the second one, which ``select`` then never sees.
    """
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(json.dumps(request).encode() + b"\n")
    child = int(server.stdout.readline())
    if not select.select([server.stdout], [], [], timeout)[0]:
        os.kill(child, signal.SIGKILL)
        raise subprocess.TimeoutExpired(request["words"], timeout)
    return int(server.stdout.readline())


_ENVIRONMENT = dict(os.environ)
"""The environment before any test changed it: the process outlives the test that starts it."""

_idle: list[subprocess.Popen[bytes]] = []
"""Idle processes that commands are forked from: one, unless threads run commands at the same time."""


def _start_server() -> subprocess.Popen[bytes]:
    """Start a process that commands are forked from; it ends with this process."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    server = subprocess.Popen([sys.executable, __file__], **pipes, bufsize=0, cwd="/", env=_ENVIRONMENT)
    atexit.register(server.communicate)
    return server


def serve() -> None:
    """Fork for each request; answer with the pid of the child, and with its exit code when it has ended."""
    from ggshell.cli import commands
    from ggshell.cli.main import main

    _load("duckdb", "psycopg", "pyparsing", "ggshell.cli.batch", "ggshell.cli.session")
    _load(*(module.name for module in pkgutil.iter_modules(commands.__path__, f"{commands.__name__}.")))
    _read_manual()
    gc.freeze()  # otherwise each child copies pages when it updates reference counts
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if not child:
            _run(request, main)
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
        sys.stdout.flush()
    os._exit(0)


def _run(request: dict[str, Any], main: Callable[[list[str]], int]) -> NoReturn:
    """Run the command in the child. Only its output is flushed: unloading all modules takes as long as loading them."""
    code = 1
    try:
        _become(request)
        code = main(request["words"])
    finally:
        if sys.exc_info()[0] is not None:
            traceback.print_exc()
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _load(*modules: str) -> None:
    for module in modules:
        importlib.import_module(module)


_FREQUENT = """ADD EXTRACT e, TRANLOG, BEGIN NOW; ADD EXTTRAIL ./dirdat/aa, EXTRACT e; ADD REPLICAT r, EXTTRAIL ./dirdat/aa;
ADD CHECKPOINTTABLE a.b; ADD TRANDATA a.b; DBLOGIN USERIDALIAS a; REGISTER EXTRACT e, DATABASE;
ALTER CREDENTIALSTORE ADD USER a, PASSWORD b, ALIAS c; START EXTRACT e; START REPLICAT r; STOP EXTRACT e; STOP REPLICAT r;
START MANAGER; STOP MANAGER !; START SERVICE; STOP SERVICE; KILL ER *; INFO ALL; INFO EXTRACT e; INFO REPLICAT r;
STATUS REPLICAT r; STATS REPLICAT r; LAG REPLICAT r; ALTER REPLICAT r, EXTSEQNO 1, EXTRBA 0; DELETE REPLICAT r;
SEND REPLICAT r, STATUS"""
"""Statements of many tests."""


def _read_manual() -> None:
    """Read the pages of frequent statements and compile their syntax, which takes a fifth of a short command's time."""
    from ggshell.language import grammar

    for statement in _FREQUENT.split(";"):
        grammar.parse(" ".join(statement.split()))


def _become(request: dict[str, Any]) -> None:
    """Give this process the streams, the directory and the environment of a request."""
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    for number, name, mode in ((0, os.devnull, os.O_RDONLY), (1, request["out"], flags), (2, request["err"], flags)):
        opened = os.open(name, mode, 0o600)
        os.dup2(opened, number)
        os.close(opened)


if __name__ == "__main__":
    serve()
