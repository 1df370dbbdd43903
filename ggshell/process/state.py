"""Whether a process runs: the states, how they follow each other, and the process file that tells."""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from ggshell.errors import StateError
from ggshell.files import write_atomically


class ProcessState(StrEnum):
    """The states that INFO shows."""

    STOPPED = "STOPPED"
    STARTING = "STARTING"
    RUNNING = "RUNNING"
    ABENDED = "ABENDED"


ALIVE = (ProcessState.STARTING, ProcessState.RUNNING)
_TRANSITIONS: dict[ProcessState, frozenset[ProcessState]] = {
    ProcessState.STOPPED: frozenset({ProcessState.STARTING}),
    ProcessState.STARTING: frozenset({ProcessState.RUNNING, ProcessState.ABENDED, ProcessState.STOPPED}),
    ProcessState.RUNNING: frozenset({ProcessState.STOPPED, ProcessState.ABENDED}),
    ProcessState.ABENDED: frozenset({ProcessState.STARTING}),
}


def follow(now: ProcessState, then: ProcessState) -> ProcessState:
    """The next state.  Raises StateError for a change that cannot be."""
    if then not in _TRANSITIONS[now]:
        raise StateError(f"a process cannot go from {now} to {then}")
    return then


class ProcessFile(NamedTuple):
    """What a running process says of itself; ``ticks`` tells it from a later process with the same pid.

    ``killed``: somebody ended it with KILL, so nobody is to start it again unasked.
    """

    pid: int
    ticks: int
    state: ProcessState
    socket: str
    started: int
    killed: bool = False


def start_ticks(pid: int) -> int | None:
    """When a process began, in kernel ticks since boot; None when it does not live."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except FileNotFoundError:
        return None if Path("/proc/self/stat").exists() else start_by_ps(pid)
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def start_by_ps(pid: int) -> int | None:
    """The same where the system has no /proc: a number made of the start time that ``ps`` prints."""
    import subprocess

    command = ["ps", "-o", "stat=,lstart=", "-p", str(pid)]
    found = subprocess.run(command, capture_output=True, check=False).stdout.split(None, 1)
    return None if len(found) != 2 or found[0].startswith(b"Z") else zlib.crc32(found[1].strip())


def write_process_file(path: Path, entry: ProcessFile) -> None:
    """Replace a process file; it may be read at any moment.  Raises DiskError."""
    write_atomically(path, json.dumps(entry._asdict()).encode(), mode=0o600)


def read_process_file(path: Path) -> ProcessFile | None:
    """The process file, None when there is none (or none that can be read)."""
    try:
        fields = json.loads(path.read_bytes())
        return ProcessFile(**{**fields, "state": ProcessState(fields["state"])})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def alive(entry: ProcessFile) -> bool:
    """Whether the very process that wrote the file lives."""
    return start_ticks(entry.pid) == entry.ticks


def state_of(path: Path) -> tuple[ProcessState, ProcessFile | None]:
    """A process's state by its file: a file whose process does not live any more was left by an abend."""
    entry = read_process_file(path)
    if entry is None:
        return ProcessState.STOPPED, None
    if entry.state in ALIVE and not alive(entry):
        return ProcessState.ABENDED, entry
    return entry.state, entry


def end_descriptor(entry: ProcessFile) -> int | None:
    """A descriptor that becomes readable when the process ends; None when it does not live, or the system has none.

    The process cannot be mistaken for a later one with its number: the descriptor is opened first and checked then.
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


def kill(path: Path, what: str) -> ProcessFile:
    """End the process of a process file at this instant, in a way that Manager does not take for an abend.

    Raises StateError when it does not run.
    """
    import signal

    state, entry = state_of(path)
    if entry is None or state not in ALIVE:
        raise StateError(f"{what} is not running.")
    write_process_file(path, entry._replace(killed=True))
    descriptor = end_descriptor(entry)
    with contextlib.suppress(ProcessLookupError):  # it ended by itself meanwhile
        if descriptor is not None:
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        elif alive(entry):
            os.kill(entry.pid, signal.SIGKILL)
    if descriptor is not None:
        os.close(descriptor)
    return entry
