"""Blocks of bytes written while their maker makes the next one: the disk's time is not added to the processor's."""

from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor


class BlockWriter:
    """Appends blocks to a file in order, one at a time.  An error of a block is raised by the next call of anything."""

    def __init__(self) -> None:
        self._threads: ThreadPoolExecutor | None = None
        self._under_way: Future[None] | None = None

    def write_behind(self, descriptor: int, data: bytes) -> None:
        """Write a block while the caller goes on.  Raises OSError when the block before it failed."""
        self.settle()
        if self._threads is None:
            self._threads = ThreadPoolExecutor(1, thread_name_prefix="trail")
        self._under_way = self._threads.submit(write_all, descriptor, data)

    def settle(self) -> None:
        """Wait until everything is written.  Raises OSError."""
        under_way, self._under_way = self._under_way, None
        if under_way is not None:
            under_way.result()

    def close(self) -> None:
        """End the thread; what is under way is finished, whatever becomes of it."""
        threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown()


def write_all(descriptor: int, data: bytes) -> None:
    """Append all of the bytes.  Raises OSError."""
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]
