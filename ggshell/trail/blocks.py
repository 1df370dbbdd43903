"""Blocks of bytes written, and synced, while their maker makes the next one, so that the disk's time is not added to it."""

from __future__ import annotations

import os
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

WAITING: Final = 4
"""Blocks that may wait for the disk before their maker does."""


class BlockWriter:
    """Appends blocks to a file in order.  An error is raised by the next call of anything."""

    def __init__(self) -> None:
        self._threads: ThreadPoolExecutor | None = None
        self._under_way: deque[Future[None]] = deque()

    def write_behind(self, descriptor: int, data: bytes) -> None:
        """Write a block while the caller goes on.  Raises OSError when a block before it failed."""
        self._submit(descriptor, data, sync=False)

    def sync_behind(self, descriptor: int, data: bytes) -> Future[None]:
        """Write a block, and make it and all before it durable, while the caller goes on; done when that is done."""
        return self._submit(descriptor, data, sync=True)

    def settle(self) -> None:
        """Wait until everything is written.  Raises OSError."""
        while self._under_way:
            self._under_way.popleft().result()

    def close(self) -> None:
        """End the thread; what is under way is finished, whatever becomes of it."""
        threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown()
        self._under_way.clear()

    def _submit(self, descriptor: int, data: bytes, *, sync: bool) -> Future[None]:
        while self._under_way and (self._under_way[0].done() or len(self._under_way) >= WAITING):
            self._under_way.popleft().result()
        if self._threads is None:
            self._threads = ThreadPoolExecutor(1, thread_name_prefix="trail")
        future = self._threads.submit(_write_and_sync if sync else write_all, descriptor, data)
        self._under_way.append(future)
        return future


def write_all(descriptor: int, data: bytes) -> None:
    """Append all of the bytes.  Raises OSError."""
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


def _write_and_sync(descriptor: int, data: bytes) -> None:
    write_all(descriptor, data)
    os.fdatasync(descriptor)
