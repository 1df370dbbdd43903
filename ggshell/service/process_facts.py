"""What the operating system says about a process: times, memory, input and output, and threads (Linux: /proc)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, NamedTuple

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_MICRO: Final = 1_000_000


class ThreadFacts(NamedTuple):
    """A thread: its name, its state as the kernel's letter, and its CPU times in microseconds."""

    number: int
    name: str
    state: str
    user: int
    kernel: int


class ProcessFacts(NamedTuple):
    """A process; times in microseconds, sizes in bytes."""

    user: int
    kernel: int
    resident: int
    virtual: int
    page_faults: int
    read_bytes: int
    written_bytes: int
    reads: int
    writes: int
    threads: tuple[ThreadFacts, ...]


def process_facts(pid: int) -> ProcessFacts | None:
    """Return the facts of a process, or None if it has ended or the system does not have /proc."""
    folder = Path(f"/proc/{pid}")
    try:
        status = _stat(folder / "stat")
        threads = tuple(_thread(path) for path in sorted((folder / "task").iterdir(), key=lambda path: int(path.name)))
    except (OSError, ValueError):
        return None
    io = _io(folder / "io")
    return ProcessFacts(
        user=int(status[11]) * _MICRO // _TICKS,
        kernel=int(status[12]) * _MICRO // _TICKS,
        resident=int(status[21]) * _PAGE,
        virtual=int(status[20]),
        page_faults=int(status[9]),
        read_bytes=io.get("rchar", 0),
        written_bytes=io.get("wchar", 0),
        reads=io.get("syscr", 0),
        writes=io.get("syscw", 0),
        threads=threads,
    )


def _stat(path: Path) -> list[str]:
    """Return the fields of a stat file after the name, which may contain blanks; the state is the first one."""
    return path.read_text().rpartition(")")[2].split()


def _thread(folder: Path) -> ThreadFacts:
    fields = _stat(folder / "stat")
    times = (int(fields[11]) * _MICRO // _TICKS, int(fields[12]) * _MICRO // _TICKS)
    return ThreadFacts(int(folder.name), (folder / "comm").read_text().strip(), fields[0], *times)


def _io(path: Path) -> dict[str, int]:
    try:
        pairs = (line.partition(":") for line in path.read_text().splitlines())
        return {name: int(value) for name, _, value in pairs}
    except OSError:
        return {}
