"""The endpoint of trails that other homes read: a WebSocket for each reader, below ``/services/v2/sources``.

The loop only moves messages; threads read the files. A reader is woken when its trail grows, without polling.
"""

from __future__ import annotations

import asyncio
import contextlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Final

from starlette.websockets import WebSocket, WebSocketDisconnect

from ggshell.errors import DiskError, TrailError
from ggshell.groups.passive_extract import require_running
from ggshell.network.frames import INVALID, Compression, decode_acknowledgement, encode_frame
from ggshell.network.opening import ExtractRequest, Opened, Opening, encode_message, position_text
from ggshell.network.proven import Proven
from ggshell.network.remote_group import RemoteGroup
from ggshell.network.trail_readers import TrailReader, forget_reader_of, note_reader
from ggshell.network.trail_source import TrailSource
from ggshell.service.passive_answers import answer_alias
from ggshell.service.state import ServiceState
from ggshell.service.trail_admission import TrailAdmission, trail_here
from ggshell.service.trail_log import REPLACED, TrailLog, is_lost
from ggshell.trail.durable import DurableMark

READERS: Final = 16
WINDOW: Final = 16 << 20
"""Bytes of frames that may be under way to a reader before this side waits for acknowledgements."""
LOOK_SECONDS: Final = 1.0
"""How often a trail is looked at without being woken: its writer may belong to another user, or the trail be a copy."""


class Reading:
    """One trail that another home reads over one connection."""

    def __init__(self, source: TrailSource, note: TrailReader, address: str, since: int, opening: Opening) -> None:
        """``opening``: what the reader asks for."""
        self.compression = Compression(opening.compress) if opening.compress is not None else None
        self.passive = opening.extract
        """The passive Extract that must run while its alias reads; empty for other readers."""
        self.source = source
        self.note = note
        self.address = address
        self.since = since
        self.sent = self.taken = 0
        self.changed = asyncio.Event()
        self.task = asyncio.current_task()
        self.is_replaced = False

    @property
    def key(self) -> tuple[str, str, str]:
        return str(self.source.name), self.note.home, self.note.group.upper()

    def woken(self) -> None:
        """The trail has grown; the server's loop calls this."""
        self.source.drain()
        self.changed.set()


class TrailSources:
    """All trails of this home that other homes read now."""

    def __init__(self, state: ServiceState, admission: TrailAdmission) -> None:
        self._state = state
        self._admission = admission
        self._threads = ThreadPoolExecutor(READERS, thread_name_prefix="source")
        self.readings: dict[tuple[str, str, str], Reading] = {}
        self._log = TrailLog(admission.tell)

    def close(self) -> None:
        """Release the threads; the connections have ended by now."""
        self._log.close()
        self._threads.shutdown(wait=True)

    async def answer_alias(self, websocket: WebSocket, asked: ExtractRequest, proven: Proven) -> None:
        """Start or stop a passive Extract. Raises GgsError, WebSocketDisconnect."""
        answer = await answer_alias(self._state.home, asked, proven, self._threads)
        await websocket.send_text(encode_message(answer))
        await websocket.close()

    async def serve(self, websocket: WebSocket, opening: Opening, proven: Proven) -> None:
        """Send a trail over one connection until it ends. Raises GgsError, WebSocketDisconnect."""
        if opening.forgets:
            await self._forget(websocket, opening, proven)
            return
        reading = await self._opened(websocket, opening, proven)
        earlier = self.readings.get(reading.key)
        if earlier is not None and earlier.task is not None:
            earlier.is_replaced = True  # a half-open connection of the same reader
            earlier.task.cancel()
        self.readings[reading.key] = reading
        note, name = reading.note, reading.source.name
        text, lost = f"Trail {name} is read by {note.text} at {reading.address}", False
        self._log.begun(reading.key, "GGS-00960", text, again=earlier is not None)
        loop = asyncio.get_running_loop()
        loop.add_reader(reading.source.fileno(), reading.woken)
        try:
            await self._send_all(websocket, reading)
        except WebSocketDisconnect as error:
            lost = is_lost(error.code)
            raise
        except asyncio.CancelledError:
            if not reading.is_replaced:
                raise
            raise WebSocketDisconnect(REPLACED, "the reader has connected again") from None
        finally:
            loop.remove_reader(reading.source.fileno())
            await asyncio.shield(self._in_thread(reading.source.close))
            if self.readings.get(reading.key) is reading:
                del self.readings[reading.key]
                self._log.ended(reading.key, "GGS-00961", f"Trail {name} is no longer read by {note.text}", lost=lost)

    async def _forget(self, websocket: WebSocket, opening: Opening, proven: Proven) -> None:
        """Keep the trail for this reader no longer. Raises GgsError, WebSocketDisconnect."""
        name = trail_here(self._state, opening.trail, written=False)
        asking = RemoteGroup(opening.home, opening.host, opening.group, proven=proven)
        await self._in_thread(forget_reader_of, name, asking)
        await websocket.send_text(encode_message(Opened(str(name.folder), name.prefix)))
        await websocket.close()

    async def _opened(self, websocket: WebSocket, opening: Opening, proven: Proven) -> Reading:
        name = trail_here(self._state, opening.trail, written=False)

        def opened() -> TrailSource:
            with _as_disk_errors(str(name)):
                return TrailSource(name, opening)

        source: TrailSource = await self._in_thread(opened)
        end, now = source.end, self._state.clock.now()
        first = opening.reached[0] if opening.reached is not None else 0
        note = TrailReader(opening.home, opening.host, opening.group, first, now, proven=proven)
        client = websocket.client.host if websocket.client is not None else "local"
        try:
            await self._in_thread(note_reader, name, note)
            mark = position_text(DurableMark(end, None)) if end is not None else None
            answer = Opened(str(name.folder), name.prefix, mark, begin=source.begin)
            await websocket.send_text(encode_message(answer))
        except BaseException:
            source.close()
            raise
        return Reading(source, note, client, now, opening)

    async def _send_all(self, websocket: WebSocket, reading: Reading) -> None:
        """Send what the trail has and what it gets until the connection ends. Raises GgsError, WebSocketDisconnect."""
        answers = asyncio.create_task(self._take_answers(websocket, reading))
        answers.add_done_callback(lambda _: reading.changed.set())
        try:
            while not answers.done():
                reading.changed.clear()
                room = reading.sent - reading.taken < WINDOW
                message = await self._in_thread(self._next, reading) if room else None
                if message is not None:
                    reading.sent += len(message)
                    await websocket.send_bytes(message)
                    continue
                try:
                    async with asyncio.timeout(LOOK_SECONDS):
                        await reading.changed.wait()
                except TimeoutError:
                    if reading.passive:
                        await self._in_thread(require_running, self._state.home, reading.passive)
            answers.result()
        finally:
            answers.cancel()

    async def _take_answers(self, websocket: WebSocket, reading: Reading) -> None:
        """Take acknowledgements; record the first file that the reader still needs when that changes."""
        while True:
            message: dict[str, Any] = dict(await websocket.receive())
            if message["type"] == "websocket.disconnect":
                raise WebSocketDisconnect(message.get("code", 1005))
            data = message.get("bytes")
            if data is None:
                raise TrailError("a reader's message is not an acknowledgement", code=INVALID)
            durable, reading.taken = decode_acknowledgement(bytes(data))
            reading.changed.set()
            if durable.seqno != reading.note.seqno and durable.rba:
                reading.note = replace(reading.note, seqno=durable.seqno, updated=self._state.clock.now())
                await self._in_thread(note_reader, reading.source.name, reading.note)

    def _next(self, reading: Reading) -> bytes | None:
        with _as_disk_errors(str(reading.source.name)):
            frame = reading.source.next()
        return encode_frame(frame, reading.compression) if frame is not None else None

    async def _in_thread(self, function: Any, *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._threads, function, *arguments)


@contextlib.contextmanager
def _as_disk_errors(trail: str) -> Any:
    """Turn what the operating system says about a trail's files into DiskError."""
    try:
        yield
    except OSError as error:
        raise DiskError(f"cannot read trail {trail}: {error.strerror}", where=str(error.filename or "")) from error
