"""Temporary folders in memory, where the system has room, and with paths that are short enough for sockets.

The tests call fsync thousands of times, and create and drop two databases for most of those with a server: on a disk, a new
database of PostgreSQL takes a tenth of a second and more.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

MEMORY = Path("/dev/shm")  # noqa: S108 (pytest makes private folders there)
"""The file system in memory, on Linux."""
DISK = Path("/tmp")  # noqa: S108 (the path of a folder below TMPDIR could be too long)
ROOM_OF_QUICK = 1 << 30
"""The free bytes that a quick run needs; its files take 160 MB."""
ROOM_OF_ALL = 12 << 30
"""The free bytes that a whole run needs: it takes up to 4 GB, and the processes of its three workers need memory too."""
_VARIABLE = "TMPDIR"


def use_memory(room: int) -> None:
    """Make temporary folders in memory, also those of processes that are started, unless the environment says where."""
    if _VARIABLE not in os.environ and os.access(MEMORY, os.W_OK) and _free() > room:
        os.environ[_VARIABLE] = tempfile.tempdir = str(MEMORY)


def _free() -> int:
    """The bytes that files in memory can take."""
    try:
        found = re.search(r"^MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    available = int(found[1]) << 10 if found else 0
    return min(available, shutil.disk_usage(MEMORY).free)


def short_folder(prefix: str) -> Path:
    """A new folder whose path leaves room for the name of a socket."""
    in_memory = os.environ.get(_VARIABLE) == str(MEMORY)
    return Path(tempfile.mkdtemp(prefix=prefix, dir=MEMORY if in_memory else DISK))
