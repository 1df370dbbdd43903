"""The frames that arrive over one connection, on their way to the thread that writes them and back to the sender.

Every change of thread or task takes as long as a sync of a fast disk, so there are two: the server's loop passes a frame to the
connection's own thread, and that thread passes the acknowledgement to the loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Final

from ggshell.service.binary_messages import use_again
from ggshell.service.trail_protocol import TrailProtocol
from ggshell.trail.blocks import Data

MOST_WAITING: Final = 4 << 20
"""Bytes of messages that may wait for the disk; more stay in the network."""
MOST_UNSAID: Final = 8 << 20
"""Bytes of messages that may be written without an acknowledgement while more are being written."""


class ArrivingFrames:
    """The messages of one connection: those that wait, and those that a thread writes now. Used in the server's loop.

    A write begins as soon as a message has arrived and the write before it has ended, before that one is acknowledged."""

    def __init__(
        self,
        connection: TrailProtocol,
        write: Callable[[list[Data]], bytes],
        written: Callable[[list[Data]], None],
    ) -> None:
        """``write``: writes messages in a thread and returns their acknowledgement; ``written``: called after that."""
        self._connection = connection
        self._work: SimpleQueue[list[Data] | None] = SimpleQueue()
        self._write, self._tell_written = write, written
        self._messages: list[Data] = []
        self._bytes = 0
        self._unsaid = 0
        self._is_writing = self._is_ended = False
        self._loop = asyncio.get_running_loop()
        self._idle = asyncio.Event()
        self._idle.set()
        self.failed: asyncio.Future[BaseException] = self._loop.create_future()
        """Done, with the error, when a write has failed; nothing is written after it."""
        threading.Thread(target=self._run, name="receiver", daemon=True).start()

    def take(self, message: Data) -> None:
        """Write a message when those before it are written; stop reading while too many bytes wait."""
        if self._is_ended:
            return
        self._messages.append(message)
        self._bytes += len(message)
        self._begin()
        if self._bytes > MOST_WAITING:
            self._connection.pause()

    async def written(self) -> None:
        """Wait until everything that has arrived is written, or a write has failed."""
        await self._idle.wait()

    def end(self) -> None:
        """Begin no further write; the thread ends after the write that is under way."""
        self._is_ended = True
        self._work.put(None)

    def _begin(self) -> None:
        """Write all messages that wait, unless a write is under way."""
        if self._is_writing:
            return
        if not self._messages or self._is_ended:
            self._idle.set()
            return
        found, self._messages, self._bytes = self._messages, [], 0
        self._is_writing = True
        self._idle.clear()
        self._work.put(found)
        self._connection.resume()

    def _run(self) -> None:
        """Write messages until the connection has ended."""
        while (messages := self._work.get()) is not None:
            try:
                end = functools.partial(self._succeed, messages, self._write(messages))
            except BaseException as error:  # noqa: BLE001 - the task of the connection raises it
                end = functools.partial(self._fail, error)
            with contextlib.suppress(RuntimeError):  # the service has ended: nobody waits for the answer
                self._loop.call_soon_threadsafe(end)

    def _succeed(self, messages: list[Data], answer: bytes) -> None:
        """Acknowledge what was written, unless a later acknowledgement comes soon; each costs both sides as much as a frame."""
        self._is_writing = False
        self._begin()
        self._unsaid += sum(map(len, messages))
        if not self._is_writing or self._unsaid >= MOST_UNSAID:
            self._connection.send_newest(answer)
            self._unsaid = 0
        self._tell_written(messages)
        for message in messages:
            if isinstance(message, memoryview):
                use_again(message)

    def _fail(self, error: BaseException) -> None:
        self._is_writing, self._is_ended = False, True
        self._idle.set()
        if not self.failed.done():
            self.failed.set_result(error)
