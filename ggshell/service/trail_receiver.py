"""The endpoint of trails from other homes: a WebSocket for each trail, below ``/services/v2/targets``.

The loop only moves messages. A thread writes them: all that arrived during one sync are written and synced together.
"""

from __future__ import annotations

import asyncio
import contextlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from starlette.websockets import WebSocket, WebSocketDisconnect

from ggshell.errors import TrailError
from ggshell.network.frames import INVALID, LONGEST_FRAME
from ggshell.network.local_readers import require_unread
from ggshell.network.opening import (
    Opening,
    TaskRequest,
    encode_message,
)
from ggshell.network.proven import Proven
from ggshell.network.receiver import ReceivedTrail
from ggshell.network.trail_owner import TrailOwner, require_no_local_writer
from ggshell.service.arriving_frames import ArrivingFrames
from ggshell.service.state import ServiceState
from ggshell.service.task_answers import answer_task
from ggshell.service.trail_admission import TrailAdmission, connection_of, trail_here
from ggshell.service.trail_log import REPLACED, TrailLog, is_lost
from ggshell.trail.blocks import Data
from ggshell.trail.name import TrailName
from ggshell.types import TrailPosition

RELEASE_SECONDS: Final = 30.0
"""How long an earlier connection of the same sender may take to release its trail."""
WRITERS: Final = 32


class Counts:
    """What has arrived of a trail since the service started, over all connections. ``last``: microseconds since 1970."""

    def __init__(self) -> None:
        self.messages = self.bytes = self.syncs = self.connections = self.last = 0

    def add(self, messages: list[Data], now: int) -> None:
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
            connection_of(websocket).allow(LONGEST_FRAME)
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
        trail = await loop.run_in_executor(self._writers, self._open, name, sender, reached, opening.purge)
        counts = self._counts.setdefault(name, Counts())
        counts.connections += 1
        arrival = self.arrivals[name] = Arrival(trail, sender, client, self._state.clock.now(), counts)
        arrival.task = asyncio.current_task()
        self._log.begun(name, "GGS-00958", f"Trail {name} arrives from {sender.text} at {client}")
        return arrival

    def _open(
        self, name: TrailName, sender: TrailOwner, reached: TrailPosition | None, purge: int | None
    ) -> ReceivedTrail:
        """Open a trail in a thread. Raises GgsError."""
        require_no_local_writer(self._state.home, name)
        if purge is not None:
            require_unread(self._state.home, name, purge)
        return ReceivedTrail(name, sender, reached, purge)

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
        connection = connection_of(websocket)

        def written(messages: list[Data]) -> None:
            arrival.counts.add(messages, self._state.clock.now())

        frames = ArrivingFrames(connection, arrival.trail.take, written)
        connection.take_directly(frames.take)
        ending = asyncio.create_task(_ending(websocket))
        try:
            await websocket.send_text(encode_message(arrival.trail.opened))
            await asyncio.wait((ending, frames.failed), return_when=asyncio.FIRST_COMPLETED)
            connection.take_directly(None)
            await frames.written()
            raise frames.failed.result() if frames.failed.done() else await ending
        finally:
            connection.take_directly(None)
            frames.end()
            ending.cancel()


async def _ending(websocket: WebSocket) -> Exception:
    """Wait for what ends the connection: its end, or a message that is not a frame."""
    try:
        message: dict[str, Any] = dict(await websocket.receive())
    except RuntimeError as error:
        return error
    if message["type"] == "websocket.disconnect":
        return WebSocketDisconnect(message.get("code", 1005))
    return TrailError("a sender's message is not a frame", code=INVALID)
