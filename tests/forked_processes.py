"""Forks the processes of ggshell from ``fork_server.py``: those that its launcher, its service and LOAD start.

``subprocess.Popen`` is replaced by a class that sends such a start to the server of this worker. The class is also in the
forks, so that the groups which a forked Manager starts are forks, too. Every other start is a real one: of other programs, of
``python -m ggshell…`` without ``-P``, in an environment that changes the interpreter, and with the fixture ``real_starts``.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fork_server import PACKAGES, ROOM, Request
from short_folders import short_folder

from ggshell.groups.launch import MEMORY_SETTINGS

REAL = "GGSHELL_TESTS_START_REAL_PROCESSES"
"""With this variable in its environment, a process is not forked."""
_INTERPRETER = ("PYTHON", "LD_", "LC_", "LANG", "MALLOC_")
"""The beginnings of variables that a process reads before it runs a module."""
_PREFIX = [sys.executable, "-P", "-m"]


class Fork:
    """A process that was forked. ``pid``; the wait status follows when it has ended."""

    def __init__(self, request: Request, descriptors: Sequence[int]) -> None:
        """Raises OSError if the folder does not exist."""
        self._server = socket.socket(socket.AF_UNIX)
        self._server.connect(_address())
        data = json.dumps(request._asdict()).encode() + b"\n"
        sent = socket.send_fds(self._server, [data], list(descriptors))
        self._server.sendall(data[sent:])
        self._line = b""
        answer = json.loads(self._read())
        if "errno" in answer:
            raise OSError(answer["errno"], os.strerror(answer["errno"]), answer["file"])
        if "failure" in answer:
            raise RuntimeError(answer["failure"])
        self.pid = int(answer["pid"])

    def status(self, timeout: float | None) -> int | None:
        """Return the wait status; None if the process has not ended within the seconds."""
        if not select.select([self._server], [], [], timeout)[0]:
            return None
        status = int(self._read())
        self._server.close()
        return status

    def _read(self) -> bytes:
        """Read a line, one byte at a time: the next one must stay readable."""
        line = b""
        while not line.endswith(b"\n"):
            data = self._server.recv(1)
            if not data:
                raise ChildProcessError("the process that ggshell is forked from has ended")
            line += data
        return line


class ForkingPopen(subprocess.Popen[Any]):
    """A process as of ``subprocess``, forked if it is one of ggshell."""

    _fork: Fork | None = None

    def _execute_child(self, args: Any, *others: Any) -> None:
        executable, _, _, pass_fds, cwd, env, _, _, shell, stdin, stdin_end, output_end, output, error_end, error = (
            others[:15]
        )
        environment = dict(os.environ) if env is None else env
        if shell or executable is not None or not _is_forked(args, environment):
            super()._execute_child(args, *others)  # type: ignore[misc]
            return
        sys.audit("subprocess.Popen", args[0], args, cwd, env)
        words = [os.fspath(word) for word in args]
        streams = [own if given == -1 else given for own, given in enumerate((stdin, output, error))]
        targets = [0, 1, 2, *pass_fds]
        new_session = others[-2]
        request = Request(words[3], words[4:], words, str(cwd or Path.cwd()), environment, targets, new_session)
        try:
            self._fork = Fork(request, [*streams, *pass_fds])
            self.pid = self._fork.pid
            self._child_created = True
        finally:
            self._close_pipe_fds(stdin, stdin_end, output_end, output, error_end, error)  # type: ignore[attr-defined]

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        if self._fork is None:
            return super()._try_wait(wait_flags)  # type: ignore[misc,no-any-return]
        status = self._fork.status(0 if wait_flags & os.WNOHANG else None)
        return (0, 0) if status is None else (self.pid, status)

    def _internal_poll(self, _deadstate: int | None = None) -> int | None:
        if self._fork is None:
            return super()._internal_poll(_deadstate)  # type: ignore[misc,no-any-return]
        if self.returncode is None and self._waitpid_lock.acquire(blocking=False):  # type: ignore[attr-defined]
            try:
                status = self._fork.status(0)
                if status is not None:
                    self._handle_exitstatus(status)  # type: ignore[attr-defined]
            except OSError:
                if _deadstate is None:
                    raise
                self.returncode = _deadstate
            finally:
                self._waitpid_lock.release()  # type: ignore[attr-defined]
        return self.returncode


def _is_forked(words: Any, environment: dict[str, str]) -> bool:
    if isinstance(words, (str, bytes, os.PathLike)) or list(words[:3]) != _PREFIX or words[3] not in PACKAGES:
        return False
    return REAL not in environment and _read_at_start(environment) == _read_at_start(_environment)


def _read_at_start(environment: dict[str, str]) -> dict[str, str]:
    own = MEMORY_SETTINGS.items()  # they change how fast a process is, not what it does
    return {name: value for name, value in environment.items() - own if name.startswith(_INTERPRETER)}


_path = ""
_environment: dict[str, str] = {}
"""The environment before any test changed it: the server outlives the test that starts it."""
_starting = threading.Lock()


def fork_from(path: str = "") -> None:
    """Fork the processes of ggshell from the server at a socket; without one, it is started by the first process."""
    global _path  # noqa: PLW0603
    _path = path
    _environment.update(os.environ)
    subprocess.Popen = ForkingPopen  # type: ignore[misc]


def _address() -> str:
    global _path  # noqa: PLW0603
    with _starting:
        _path = _path or _start_server()
        return _path


def _start_server() -> str:
    """Start the server, which ends with this process; return the path of its socket."""
    folder = short_folder("ggs-fork-")
    path = f"{folder}/socket"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(64)
        number = listener.fileno()
        words = [sys.executable, "-P", str(Path(__file__).with_name("fork_server.py")), path, str(number), "-" * ROOM]
        server = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, pass_fds=[number], cwd="/", env=_environment
        )
    atexit.register(_end_server, server, folder)
    return path


def _end_server(server: subprocess.Popen[bytes], folder: str) -> None:
    server.communicate()
    shutil.rmtree(folder, ignore_errors=True)
