"""A process that has loaded the libraries of ggshell, and forks for each process that a test starts.

The imports, most of the CPU time of a short process, are paid once for each worker of the tests. A fork is a real process
with its own streams, directory, environment, command line, session and exit code. The server has one thread only, because
the locks of other threads would stay locked in a fork.

A client connects to the server's socket and sends a ``Request`` with its descriptors. The fork answers with a line with its
PID when it is set up, or with the error; the server sends a second line, with the wait status, when the fork has ended.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import fcntl
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, NoReturn

COMMAND_LINE = "ggshell.cli.main"
"""The module of the command line: its function ``main`` is called. Others are run as by ``python -m``."""
ROOM = 4000
"""Bytes of the server's command line: a fork writes its own over it, which may not be longer."""
MOST_BYTES, MOST_DESCRIPTORS = 1 << 20, 64
HIGH_DESCRIPTOR = 400
"""Above the descriptors that a client asks for."""

_GROUPS = ("ggshell.groups", "ggshell.connectors.postgres", "ggshell.pipeline", "ggshell.network")
PACKAGES = {
    COMMAND_LINE: ("ggshell.cli.commands",),
    "ggshell.groups": _GROUPS,
    "ggshell.connectors.lake": _GROUPS,
    "ggshell.service": (*_GROUPS, "ggshell.cli.commands", "ggshell.service"),
    "ggshell.service.task_process": (*_GROUPS, "ggshell.cli.commands", "ggshell.service"),
    "ggshell.connectors.postgres.load_job": _GROUPS,
}
"""What is loaded before the first fork that runs a module. PyArrow is not: it starts a thread."""
_LIBRARIES = ("duckdb", "psycopg", "pyparsing", "ggshell.cli.batch", "ggshell.cli.session")


class Request(NamedTuple):
    """What a fork runs.

    ``command_line``: what /proc shows, if it matters; ``targets``: the numbers that the sent descriptors have in the fork.
    """

    module: str
    arguments: list[str]
    command_line: list[str]
    folder: str
    environment: dict[str, str]
    targets: list[int]
    new_session: bool


class Server:
    """Accepts requests until its standard input ends."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._forks: dict[int, socket.socket] = {}
        self._loaded: set[str] = set()
        self._ended, self._wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def serve(self) -> None:
        while True:
            ready, _, _ = select.select([0, self._listener, self._ended], [], [])
            if self._ended in ready:
                os.read(self._ended, 1 << 16)
                self._reap()
            if self._listener in ready:
                self._accept(self._listener.accept()[0])
            if 0 in ready:
                return

    def _accept(self, client: socket.socket) -> None:
        request, descriptors = _receive(client)
        try:
            self._load(request.module)
            _require_one_thread(request.module)
        except Exception:  # noqa: BLE001 - the test reports it
            client.sendall(json.dumps({"failure": traceback.format_exc()}).encode() + b"\n")
            client.close()
        else:
            self._fork(request, descriptors, client)
        for descriptor in descriptors:
            os.close(descriptor)

    def _fork(self, request: Request, descriptors: list[int], client: socket.socket) -> None:
        child = os.fork()
        if child:
            self._forks[child] = client
            return
        try:
            self._become(request, descriptors, client)
            _run(request)
        finally:
            os._exit(1)

    def _reap(self) -> None:
        while self._forks:
            child, status = os.waitpid(-1, os.WNOHANG)
            if not child:
                return
            with self._forks.pop(child) as client, contextlib.suppress(BrokenPipeError):  # nobody waits for it
                client.sendall(f"{status}\n".encode())

    def _load(self, module: str) -> None:
        """Load what a module needs, unless this was done before."""
        if module in self._loaded:
            return
        self._loaded.add(module)
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as ggshell.groups.__main__ does
        names = (name for package in PACKAGES.get(module, ()) for name in _modules(package))
        for name in (*_LIBRARIES, *names):
            importlib.import_module(name)
        _read_manual()
        gc.collect()
        gc.freeze()  # otherwise each fork copies pages when it updates reference counts

    def _become(self, request: Request, descriptors: list[int], client: socket.socket) -> None:
        """Set up the fork and tell its PID to the client. Ends the fork if that fails."""
        high = [fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, HIGH_DESCRIPTOR) for each in (client.fileno(), *descriptors)]
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for held in (self._listener, *self._forks.values(), client):
            held.close()
        for descriptor in (self._ended, self._wake, *descriptors):
            os.close(descriptor)
        try:
            if request.new_session:
                os.setsid()
            os.chdir(request.folder)
            for descriptor, target in zip(high[1:], request.targets, strict=True):
                os.dup2(descriptor, target)
                os.close(descriptor)
            os.environ.clear()
            os.environ.update(request.environment)
            time.tzset()
            _show_command_line(request.command_line)
        except OSError as error:
            _tell(high[0], {"errno": error.errno, "file": error.filename})
            os._exit(1)
        _tell(high[0], {"pid": os.getpid()})


def _require_one_thread(module: str) -> None:
    tasks = Path("/proc/self/task")
    if (len(list(tasks.iterdir())) if tasks.exists() else threading.active_count()) > 1:
        raise RuntimeError(f"a library of {module} has started a thread, so it must not be loaded before a fork")


def _receive(client: socket.socket) -> tuple[Request, list[int]]:
    data, descriptors, _, _ = socket.recv_fds(client, MOST_BYTES, MOST_DESCRIPTORS)
    while not data.endswith(b"\n"):
        data += client.recv(MOST_BYTES)
    return Request(**json.loads(data)), descriptors


def _tell(descriptor: int, answer: dict[str, object]) -> None:
    with contextlib.suppress(BrokenPipeError):  # the client was killed
        os.write(descriptor, json.dumps(answer).encode() + b"\n")
    os.close(descriptor)


def _run(request: Request) -> NoReturn:
    """Run the module in the fork. Only its output is flushed: unloading all modules takes as long as loading them."""
    code: object = 1
    try:
        code = _call(request)
    except SystemExit as end:
        code = end.code
    except BaseException:  # noqa: BLE001 - as the interpreter reports it
        traceback.print_exc()
    finally:
        if isinstance(code, str):
            sys.stderr.write(f"{code}\n")
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else int(code is not None))


def _call(request: Request) -> object:
    if request.module == COMMAND_LINE:
        from ggshell.cli.main import main

        return main(request.arguments)
    sys.argv = [request.module, *request.arguments]
    sys.modules.pop(request.module, None)  # as in a new process, where it has the name __main__
    runpy.run_module(request.module, run_name="__main__", alter_sys=True)
    return 0


def _show_command_line(words: list[str]) -> None:
    """Write another command line over the own one, where /proc shows it."""
    if not words or not Path("/proc/self/stat").exists():
        return
    fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
    start, end = int(fields[45]), int(fields[46])
    text = b"\0".join(map(os.fsencode, words)) + b"\0"
    if len(text) > end - start:
        raise OSError(0, f"the command line is longer than {end - start} bytes")
    ctypes.memmove(start, text.ljust(end - start, b"\0"), end - start)


def _modules(package: str) -> Iterator[str]:
    """The names of all modules of a package, except for entry points."""
    folder = importlib.import_module(package).__path__
    found = (module.name for module in pkgutil.walk_packages(folder, f"{package}."))
    return (name for name in found if not name.endswith("__main__"))


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


def main(path: str, descriptor: int) -> None:
    """Serve the socket with this path, which is already listening."""
    sys.path.insert(0, str(Path(__file__).parent))
    from forked_processes import fork_from

    fork_from(path)
    del sys.path[0]
    Server(socket.socket(fileno=descriptor)).serve()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
