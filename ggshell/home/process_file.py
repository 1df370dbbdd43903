"""The states of a process, the transitions between them, and the process file that records them."""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

from ggshell.errors import DiskError, StateError
from ggshell.files import read_json, write_atomically


class ProcessState(StrEnum):
    """The states that INFO shows."""

    STOPPED = "STOPPED"
    STARTING = "STARTING"
    RUNNING = "RUNNING"
    ABENDED = "ABENDED"


ALIVE = (ProcessState.STARTING, ProcessState.RUNNING)
ENDING_SECONDS: Final = 5.0
"""How long a process may take to exit after it has reported its end."""
_TRANSITIONS: dict[ProcessState, frozenset[ProcessState]] = {
    ProcessState.STOPPED: frozenset({ProcessState.STARTING}),
    ProcessState.STARTING: frozenset({ProcessState.RUNNING, ProcessState.ABENDED, ProcessState.STOPPED}),
    ProcessState.RUNNING: frozenset({ProcessState.STOPPED, ProcessState.ABENDED}),
    ProcessState.ABENDED: frozenset({ProcessState.STARTING}),
}


def follow(now: ProcessState, then: ProcessState) -> ProcessState:
    """Return the next state. Raises StateError for a transition that is not allowed."""
    if then not in _TRANSITIONS[now]:
        raise StateError(f"a process cannot go from {now} to {then}")
    return then


WAITS: Final = "GGS-00604"
"""The code of the warning that a running process waits for a database, a store or another session."""


class ProcessFile(NamedTuple):
    """The process file of a running process.

    ``ticks``: distinguishes it from a later process with the same PID. ``killed``: the process was ended by KILL, so it is
    not restarted automatically. ``home``: the folder of its home (device and inode), so that a copy of the home does not
    mistake the process for its own. ``code`` and ``error``: the error by which the process has abended, without secrets.
    ``waits``: what a running process waits for before it can continue, such as a database that does not answer; without
    secrets, empty if it does not wait.
    """

    pid: int
    ticks: int
    state: ProcessState
    socket: str
    started: int
    killed: bool = False
    home: str = ""
    code: str = ""
    error: str = ""
    waits: str = ""


def home_identity_of(root: Path) -> str:
    """Return a folder's device and inode, which do not depend on its path; empty if it does not exist."""
    try:
        status = root.stat()
    except OSError:
        return ""
    return f"{status.st_dev}:{status.st_ino}"


def own_process_file(root: Path, state: ProcessState, socket: str, started: int) -> ProcessFile:
    """Return the process file for the current process in a home."""
    return ProcessFile(os.getpid(), start_ticks(os.getpid()) or 0, state, socket, started, home=home_identity_of(root))


def start_ticks(pid: int) -> int | None:
    """Return a process's start time in kernel ticks since boot, or None if the process does not exist.

    A killed process exists until its last thread has ended: until then it can hold locks and write files.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except FileNotFoundError:
        return None if Path("/proc/self/stat").exists() else start_by_ps(pid)
    except OSError:
        return None
    state, threads, ticks = fields[0], int(fields[17]), int(fields[19])
    return None if state == b"X" or (state == b"Z" and threads <= 1) else ticks


def start_by_ps(pid: int) -> int | None:
    """Return a number derived from the start time that ``ps`` prints, for systems without /proc."""
    import subprocess

    command = ["ps", "-o", "stat=,lstart=", "-p", str(pid)]
    found = subprocess.run(command, capture_output=True, check=False).stdout.split(None, 1)
    return None if len(found) != 2 or found[0].startswith(b"Z") else zlib.crc32(found[1].strip())


def write_process_file(path: Path, entry: ProcessFile) -> None:
    """Replace a process file atomically, because it may be read at any time. Raises DiskError."""
    write_atomically(path, json.dumps(entry._asdict()).encode(), mode=0o600)


def read_process_file(path: Path) -> ProcessFile | None:
    """Read a process file; None if it does not exist or cannot be read.

    A file that was copied with its home describes a process of the original home. The result then has no valid PID or
    socket, so it counts as a process that is not running and does not lead to the original's process.
    """
    try:
        fields = read_json(path.read_bytes())
        entry = ProcessFile(**{**fields, "state": ProcessState(fields["state"])})
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if not entry.home:  # written by an earlier release
        return entry
    if entry.home != home_identity_of(path.parents[1]):
        return entry._replace(pid=0, ticks=-1, socket="")
    return entry._replace(socket=str(path.parent / Path(entry.socket).name) if entry.socket else "")


def alive(entry: ProcessFile) -> bool:
    """Whether the process that wrote the file still exists."""
    return start_ticks(entry.pid) == entry.ticks


def state_of(path: Path) -> tuple[ProcessState, ProcessFile | None]:
    """Return a process's state and file. A file whose process no longer exists means ABENDED."""
    entry = read_process_file(path)
    if entry is None:
        return ProcessState.STOPPED, None
    if entry.state in ALIVE and not alive(entry):
        return ProcessState.ABENDED, entry
    return entry.state, entry


class AbendReason(NamedTuple):
    """Why a process has abended: the code and the text of its last error; without a code if it could not report one."""

    code: str
    text: str

    def __str__(self) -> str:
        return f"{self.code} {self.text}" if self.code else self.text


def abend_reason(state: ProcessState, entry: ProcessFile | None) -> AbendReason | None:
    """Return why a process has abended; None for every other state. This is what INFO, STATUS and the service show."""
    if state is not ProcessState.ABENDED or entry is None:
        return None
    if entry.code:
        return AbendReason(entry.code, entry.error)
    if entry.state is ProcessState.ABENDED:  # written by an earlier release
        return AbendReason("", "the report shows the error")
    return AbendReason("", f"process {entry.pid} could not record why it ended: it was killed, or its disk was full")


def end_descriptor(entry: ProcessFile) -> int | None:
    """Return a descriptor that becomes readable when the process ends.

    None if the process does not exist or the system has no such descriptors. The descriptor is opened before the process is
    checked, so a later process with the same PID is never used.
    """
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        descriptor = os.pidfd_open(entry.pid)
    except OSError:
        return None
    if alive(entry):
        return descriptor
    os.close(descriptor)
    return None


def not_running(what: str, state: ProcessState) -> StateError:
    """Return the error of a request to a group that does not run. ``what``: its type and its name."""
    following = {
        ProcessState.STOPPED: f"START {what} starts it",
        ProcessState.ABENDED: f"VIEW REPORT {what.rpartition(' ')[2]} shows the reason",
    }.get(state, "repeat the request when it runs")
    return StateError(f"{what} is not running.", hint=f"its status is {state}; {following}")


def kill(path: Path, what: str) -> ProcessFile:
    """Kill the process of a process file immediately, and mark it so that Manager does not treat it as an abend.

    Raises StateError if the process is not running.
    """
    import signal

    state, entry = state_of(path)
    if entry is None or state not in ALIVE:
        raise not_running(what, state)
    with contextlib.suppress(DiskError):  # on a full disk Manager may restart it, but it is killed
        write_process_file(path, entry._replace(killed=True))
    descriptor = end_descriptor(entry)
    with contextlib.suppress(ProcessLookupError):  # it ended by itself in the meantime
        if descriptor is not None:
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        elif alive(entry):
            os.kill(entry.pid, signal.SIGKILL)
    if descriptor is not None:
        os.close(descriptor)
    return entry
