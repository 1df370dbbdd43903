"""The endpoint of trails from other homes: a WebSocket for each trail, below ``/services/v2/targets``.

The loop only moves messages. A thread writes them: all that arrived during one sync are written and synced together.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from starlette.websockets import WebSocket, WebSocketDisconnect

from ggshell.errors import TrailError
from ggshell.network.frames import INVALID, LONGEST_FRAME
from ggshell.network.opening import (
    Opening,
    TaskRequest,
    encode_message,
)
from ggshell.network.proven import Proven
from ggshell.network.receiver import ReceivedTrail
from ggshell.network.trail_owner import TrailOwner
from ggshell.service.state import ServiceState
from ggshell.service.task_answers import answer_task
from ggshell.service.trail_admission import TrailAdmission, allow_longer, trail_here
from ggshell.service.trail_log import REPLACED, TrailLog, is_lost
from ggshell.trail.name import TrailName
from ggshell.types import TrailPosition

RELEASE_SECONDS: Final = 30.0
"""How long an earlier connection of the same sender may take to release its trail."""
MOST_WAITING: Final = 4 << 20
"""Bytes of messages that may wait for the disk; more stay in the network."""
WRITERS: Final = 32


class Counts:
    """What has arrived of a trail since the service started, over all connections. ``last``: microseconds since 1970."""

    def __init__(self) -> None:
        self.messages = self.bytes = self.syncs = self.connections = self.last = 0

    def add(self, messages: list[bytes], now: int) -> None:
        """Count messages that were written with one sync."""
        self.messages += len(messages)
        self.bytes += sum(map(len, messages))
        self.syncs += 1
        self.last = now


class Arrival:
    """One trail that arrives over one connection, for INFO RECVPATH and metrics."""

    def __init__(self, trail: ReceivedTrail, sender: TrailOwner, address: str, since: int, counts: Counts) -> None:
        self.trail = trail
        self.sender = sender
        self.address = address
        self.since = since
        self.counts = counts
        self.ended = asyncio.Event()
        self.task: asyncio.Task[None] | None = None
        self.is_replaced = self.is_lost = False


class TrailReceivers:
    """All trails that arrive at this home's service."""

    def __init__(self, state: ServiceState, admission: TrailAdmission) -> None:
        self._state = state
        self._admission = admission
        self._writers = ThreadPoolExecutor(WRITERS, thread_name_prefix="receiver")
        self.arrivals: dict[TrailName, Arrival] = {}
        self._counts: dict[TrailName, Counts] = {}
        self._log = TrailLog(admission.tell)

    def close(self) -> None:
        """Release the threads; the connections have ended by now."""
        self._log.close()
        self._writers.shutdown(wait=True)

    def answer(self) -> dict[str, Any]:
        """Return what INFO RECVPATH asks for: a line for each trail that has arrived. Any thread can call this."""
        return {"trails": [self._line(name, counts) for name, counts in list(self._counts.items())]}

    def _line(self, name: TrailName, counts: Counts) -> dict[str, Any]:
        arrival = self.arrivals.get(name)
        found = {"trail": str(name), "connected": arrival is not None, **vars(counts)}
        if arrival is not None:
            found |= {"address": arrival.address, "since": arrival.since, "position": list(arrival.trail.durable)}
        return found

    async def serve(self, websocket: WebSocket, opening: Opening | TaskRequest, proven: Proven) -> None:
        """Write the trail of one connection until it ends, or answer a task. Raises GgsError, WebSocketDisconnect."""
        if isinstance(opening, TaskRequest):
            answer = await answer_task(self._state.home, opening, proven, self._writers)
            await websocket.send_text(encode_message(answer))
            await websocket.close()
            return
        arrival = await self._opened(websocket, opening, proven)
        try:
            allow_longer(websocket, LONGEST_FRAME)
            await websocket.send_text(encode_message(arrival.trail.opened))
            await self._take_all(websocket, arrival)
        except WebSocketDisconnect as error:
            arrival.is_lost = is_lost(error.code)
            raise
        except asyncio.CancelledError:
            if not arrival.is_replaced:
                raise
            arrival.is_lost = True
            raise WebSocketDisconnect(REPLACED, "the sender has connected again") from None
        finally:
            await asyncio.shield(self._end(arrival))

    async def _opened(self, websocket: WebSocket, opening: Opening, proven: Proven) -> Arrival:
        """Open the trail, after an earlier connection of the same sender has released it. Raises GgsError."""
        client = websocket.client.host if websocket.client is not None else "local"
        name = trail_here(self._state, opening.trail, written=True)
        now = self._state.clock.now()
        sender = TrailOwner(opening.home, opening.host, opening.group, now, proven=proven)
        earlier = self.arrivals.get(name)
        if earlier is not None and earlier.sender.is_same(sender):
            await self._replace(earlier)
        reached = TrailPosition(*opening.reached) if opening.reached is not None else None
        loop = asyncio.get_running_loop()
        trail = await loop.run_in_executor(self._writers, ReceivedTrail, name, sender, reached, opening.purge)
        counts = self._counts.setdefault(name, Counts())
        counts.connections += 1
        arrival = self.arrivals[name] = Arrival(trail, sender, client, self._state.clock.now(), counts)
        arrival.task = asyncio.current_task()
        self._log.begun(name, "GGS-00958", f"Trail {name} arrives from {sender.text} at {client}")
        return arrival

    async def _replace(self, earlier: Arrival) -> None:
        """End an earlier connection, which may be half open, and wait until it has released its trail."""
        earlier.is_replaced = True
        if earlier.task is not None:
            earlier.task.cancel()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(RELEASE_SECONDS):
                await earlier.ended.wait()

    async def _end(self, arrival: Arrival) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._writers, arrival.trail.close)
        finally:
            if self.arrivals.get(arrival.trail.name) is arrival:
                del self.arrivals[arrival.trail.name]
            arrival.ended.set()
        durable = arrival.trail.durable
        place = f"ended at {durable}" if durable.rba >= 0 else "ended before its first transaction"
        text = f"Trail {arrival.trail.name} from {arrival.sender.text} {place}"
        self._log.ended(arrival.trail.name, "GGS-00959", text, lost=arrival.is_lost)

    async def _take_all(self, websocket: WebSocket, arrival: Arrival) -> None:
        """Write what arrives until the connection ends. Raises GgsError, WebSocketDisconnect."""
        loop = asyncio.get_running_loop()

        def write(messages: list[bytes]) -> asyncio.Future[bytes]:
            return loop.run_in_executor(self._writers, arrival.trail.take, messages)

        def written(messages: list[bytes]) -> None:
            arrival.counts.add(messages, self._state.clock.now())

        writing = _Writing(write, written)
        reader = asyncio.create_task(writing.fill(websocket))
        try:
            while True:
                await websocket.send_bytes(await writing.answer())
        finally:
            writing.end()
            reader.cancel()


class _Writing:
    """The messages of one connection: those that wait, and those that a thread writes now.

    A write begins as soon as a message has arrived and the write before it has ended, before that one is acknowledged."""

    def __init__(
        self, write: Callable[[list[bytes]], asyncio.Future[bytes]], written: Callable[[list[bytes]], None]
    ) -> None:
        """``write``: begins to write messages, for an acknowledgement; ``written``: called after that."""
        self._write, self._tell_written = write, written
        self._messages: list[bytes] = []
        self._bytes = 0
        self._is_writing = self._is_ended = False
        self._answer: bytes | None = None
        self._error: BaseException | None = None
        self._failure: BaseException | None = None
        self._changed, self._room = asyncio.Event(), asyncio.Event()

    async def fill(self, websocket: WebSocket) -> None:
        """Receive messages until the connection ends; wait while too many bytes wait for the disk."""
        try:
            while True:
                message = await _binary(websocket)
                self._messages.append(message)
                self._bytes += len(message)
                self._begin()
                while self._bytes > MOST_WAITING:
                    self._room.clear()
                    await self._room.wait()
        except Exception as error:  # noqa: BLE001 - who waits for an acknowledgement raises it
            self._error = error
            self._changed.set()

    async def answer(self) -> bytes:
        """Return the newest acknowledgement, which covers those before it.

        Raises the error of a write, or after the last message the error that ended the connection."""
        while self._answer is None:
            if self._failure is not None:
                raise self._failure
            if self._error is not None and not self._is_writing:
                raise self._error
            self._changed.clear()
            await self._changed.wait()
        answer, self._answer = self._answer, None
        return answer

    def end(self) -> None:
        """Begin no further write."""
        self._is_ended = True

    def _begin(self) -> None:
        """Write all messages that wait, unless a write is under way."""
        if not self._messages or self._is_writing or self._is_ended or self._failure is not None:
            return
        found, self._messages, self._bytes = self._messages, [], 0
        self._room.set()
        self._is_writing = True
        self._write(found).add_done_callback(functools.partial(self._ended, found))

    def _ended(self, messages: list[bytes], write: asyncio.Future[bytes]) -> None:
        self._is_writing = False
        self._failure = asyncio.CancelledError() if write.cancelled() else write.exception()
        if self._failure is None:
            self._answer = write.result()
            self._tell_written(messages)
            self._begin()
        self._changed.set()


async def _binary(websocket: WebSocket) -> bytes:
    message: dict[str, Any] = dict(await websocket.receive())
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message.get("code", 1005))
    data = message.get("bytes")
    if data is None or len(data) > LONGEST_FRAME:
        raise TrailError("a sender's message is not a frame", code=INVALID)
    return bytes(data)
