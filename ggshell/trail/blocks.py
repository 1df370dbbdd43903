"""Write trail files: create a file with its header; write and sync blocks in a background thread."""

from __future__ import annotations

import contextlib
import errno
import os
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from ggshell.trail.name import TrailName

Data = bytes | memoryview
"""Bytes to append: they may be a part of others, so that they need not be copied."""
WAITING: Final = 4
"""The number of blocks that may wait for the disk; with more, the caller waits."""


PIECE: Final = 64 << 10
"""The most bytes of one system call. Linux caches longer ones in larger units; where files are synced every few megabytes, that
takes three times the processor time."""


class BlockWriter:
    """Appends blocks to a file in order. An error is raised by a later call that waits for the failed block."""

    def __init__(self) -> None:
        self._threads: ThreadPoolExecutor | None = None
        self._under_way: deque[Future[None]] = deque()

    def write_behind(self, descriptor: int, data: Data) -> None:
        """Write a block in the background. Raises OSError if an earlier block failed."""
        self._submit(descriptor, data, sync=False)

    def sync_behind(self, descriptor: int, data: Data) -> Future[None]:
        """Write a block in the background and sync it with all earlier ones; the future is done when the sync is."""
        return self._submit(descriptor, data, sync=True)

    def wait(self) -> None:
        """Wait until everything is written. Raises OSError."""
        while self._under_way:
            self._under_way.popleft().result()

    def close(self) -> None:
        """Stop the thread after it has finished its pending blocks; their errors are ignored."""
        threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown()
        self._under_way.clear()

    def _submit(self, descriptor: int, data: Data, *, sync: bool) -> Future[None]:
        while self._under_way and (self._under_way[0].done() or len(self._under_way) >= WAITING):
            self._under_way.popleft().result()
        if self._threads is None:
            self._threads = ThreadPoolExecutor(1, thread_name_prefix="trail")
        future = self._threads.submit(_write_and_sync if sync else write_all, descriptor, data)
        self._under_way.append(future)
        return future


def write_all(descriptor: int, data: Data) -> None:
    """Append all bytes. Raises OSError."""
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left[:PIECE]) :]


def _write_and_sync(descriptor: int, data: Data) -> None:
    write_all(descriptor, data)
    os.fdatasync(descriptor)


def begin_file(name: TrailName, seqno: int, header: bytes) -> int:
    """Create a file of a trail and return its descriptor, opened for appending.

    The file is written under a hidden name and then renamed, so no reader ever finds a partial header. Its content is
    durable on return; its name is durable after the caller syncs the folder. The caller must hold the trail's
    lock. Raises OSError, also if the file exists.
    """
    path, hidden = name.file(seqno), name.unfinished()
    if os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    descriptor = os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o640)
    try:
        write_all(descriptor, header)
        os.fsync(descriptor)
        hidden.rename(path)
    except BaseException:
        os.close(descriptor)
        with contextlib.suppress(OSError):
            hidden.unlink()
        raise
    return descriptor
