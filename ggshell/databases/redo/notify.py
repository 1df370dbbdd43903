"""Being told that a folder's files have grown, through inotify where the system has it.

Without it (another system, a network mount that others write to) the descriptor stays silent, and the reader looks by itself
at the pace of its caller.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from pathlib import Path

_MODIFY, _CLOSE_WRITE, _MOVED_TO, _CREATE = 0x2, 0x8, 0x80, 0x100
_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC


class FolderWatch:
    """A descriptor that is readable when something in a folder has changed since ``clear``."""

    def __init__(self, folder: Path) -> None:
        self._other = -1
        self._descriptor = self._notifier(folder)
        if self._descriptor < 0:
            self._descriptor, self._other = os.pipe()

    @staticmethod
    def _notifier(folder: Path) -> int:
        if not sys.platform.startswith("linux"):
            return -1
        library = ctypes.CDLL(None, use_errno=True)
        descriptor = int(library.inotify_init1(_FLAGS))
        if descriptor < 0:
            return -1
        mask = ctypes.c_uint32(_MODIFY | _CLOSE_WRITE | _MOVED_TO | _CREATE)
        if library.inotify_add_watch(descriptor, os.fsencode(folder), mask) < 0:
            os.close(descriptor)
            return -1
        return descriptor

    def fileno(self) -> int:
        return self._descriptor

    def clear(self) -> None:
        """Forget what was told; to be called before the files are looked at."""
        if self._other < 0:
            with contextlib.suppress(BlockingIOError):
                while os.read(self._descriptor, 1 << 16):
                    continue

    def close(self) -> None:
        for descriptor in (self._descriptor, self._other):
            if descriptor >= 0:
                os.close(descriptor)
        self._descriptor = self._other = -1
