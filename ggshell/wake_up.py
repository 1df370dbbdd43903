"""A descriptor with which any thread can end the wait of another one, also while that one closes it."""

from __future__ import annotations

import os
import threading
from contextlib import suppress


class WakeUp:
    """Readable from ``ring`` until ``drain``.

    The number of a closed descriptor is soon that of another file, so ``ring`` and ``close`` exclude each other.
    """

    def __init__(self) -> None:
        self._descriptor = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._lock = threading.Lock()
        self._closed = False

    def fileno(self) -> int:
        return self._descriptor

    def ring(self) -> None:
        """End the wait; nothing happens after ``close``. Any thread can call this."""
        with self._lock:
            if not self._closed:
                with suppress(BlockingIOError):  # it has been rung so often that the counter is full
                    os.eventfd_write(self._descriptor, 1)

    def drain(self) -> None:
        with suppress(BlockingIOError):
            os.eventfd_read(self._descriptor)

    def close(self) -> None:
        with self._lock:
            if not self._closed:
                self._closed = True
                os.close(self._descriptor)
