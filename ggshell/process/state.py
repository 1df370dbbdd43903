"""Whether a process runs: the states, how they follow each other, and the process file that tells."""

from __future__ import annotations

import json
import os
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
    """What a running process says of itself; ``ticks`` tells it from a later process with the same pid."""

    pid: int
    ticks: int
    state: ProcessState
    socket: str
    started: int


def start_ticks(pid: int) -> int | None:
    """When a process began, in kernel ticks since boot; None when it does not live (0 where the system does not say)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except FileNotFoundError:
        if Path("/proc/self/stat").exists():
            return None
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return None
        except PermissionError:
            return 0
        return 0
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def write_process_file(path: Path, entry: ProcessFile) -> None:
    write_atomically(path, json.dumps(entry._asdict()).encode(), mode=0o600)


def read_process_file(path: Path) -> ProcessFile | None:
    """The process file, None when there is none (or none that can be read)."""
    try:
        fields = json.loads(path.read_bytes())
        return ProcessFile(**{**fields, "state": ProcessState(fields["state"])})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def alive(entry: ProcessFile) -> bool:
    return start_ticks(entry.pid) == entry.ticks


def state_of(path: Path) -> tuple[ProcessState, ProcessFile | None]:
    """A process's state by its file: a file whose process does not live any more was left by an abend."""
    entry = read_process_file(path)
    if entry is None:
        return ProcessState.STOPPED, None
    if entry.state in (ProcessState.STARTING, ProcessState.RUNNING) and not alive(entry):
        return ProcessState.ABENDED, entry
    return entry.state, entry
