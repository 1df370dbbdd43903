"""The endpoint of trails from other homes: a WebSocket for each trail, below ``/services/v2/targets``.

The loop only moves messages. A thread writes them: all that arrived during one sync are written and synced together.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from starlette.responses import Response
from starlette.websockets import WebSocket, WebSocketDisconnect

from ggshell import __version__
from ggshell.errors import ConflictError, GgsError, HttpError, ProcessError, TrailError, UsageError
from ggshell.home.events import Severity
from ggshell.home.peers import Peers
from ggshell.network.frames import INVALID, LONGEST_FRAME, PROTOCOL
from ggshell.network.opening import (
    Opening,
    Refusal,
    TaskRequest,
    decode_message,
    encode_message,
    new_challenge,
)
from ggshell.network.proof import UNKNOWN_SENDER, proven_fingerprint, signed_text
from ggshell.network.receiver import ReceivedTrail
from ggshell.network.trail_owner import TrailOwner
from ggshell.parameters.access_rules import Program
from ggshell.service.addresses import parse_address
from ggshell.service.named_files import is_outside
from ggshell.service.refusals import bug, status_of
from ggshell.service.refused_sign_ins import RefusedSignIns
from ggshell.service.request_sign_in import RequestSignIn
from ggshell.service.sign_in import Principal
from ggshell.service.state import ServiceState
from ggshell.service.task_answers import answer_task
from ggshell.service.trail_protocol import LIMIT
from ggshell.trail.name import TrailName
from ggshell.types import TrailPosition

ENDPOINT: Final = "/targets"
OPENING_SECONDS: Final = 30.0
RELEASE_SECONDS: Final = 30.0
"""How long an earlier connection of the same sender may take to release its trail."""
MOST_WAITING: Final = 4 << 20
"""Bytes of messages that may wait for the disk; more stay in the network."""
WRITERS: Final = 32
_LONGEST_REASON: Final = 500


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
        self.is_replaced = False


class TrailReceivers:
    """All trails that arrive at this home's service."""

    def __init__(self, state: ServiceState, sign_in: RequestSignIn) -> None:
        self._state = state
        self._sign_in = sign_in
        self._writers = ThreadPoolExecutor(WRITERS, thread_name_prefix="receiver")
        self._refused = RefusedSignIns(state.clock)
        self.arrivals: dict[TrailName, Arrival] = {}
        self._counts: dict[TrailName, Counts] = {}

    def close(self) -> None:
        """Release the threads; the connections have ended by now."""
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

    async def serve(self, websocket: WebSocket) -> None:
        """Serve one connection until it ends."""
        try:
            principal = await self._admitted(websocket)
        except GgsError as error:
            self._report(websocket, error)
            await websocket.send_denial_response(
                Response(f"{error.code} {error}\n", status_of(error), media_type="text/plain")
            )
            return
        await websocket.accept(subprotocol=PROTOCOL)
        with contextlib.suppress(WebSocketDisconnect, RuntimeError):  # the sender has gone; it connects again
            try:
                await self._receive(websocket, principal)
            except GgsError as error:
                await self._refuse(websocket, error)
            except (WebSocketDisconnect, RuntimeError):
                raise
            except Exception as error:  # noqa: BLE001 - the sender and the log must say that it is a mistake in ggshell
                await self._refuse(websocket, bug(error))

    async def _admitted(self, websocket: WebSocket) -> Principal | None:
        """Check what HTTP shows before the connection becomes a WebSocket. Raises GgsError."""
        path = websocket.scope["path"]
        found = parse_address(path, self._state.settings.deployment)
        if found is None or found.path.rstrip("/") != ENDPOINT:
            raise HttpError(404, f"{path[:200]} is not an endpoint of trails", hint="use /services/v2/targets")
        if "origin" in websocket.headers:
            raise HttpError(403, "a page of a browser cannot send trails")
        if PROTOCOL not in websocket.scope["subprotocols"]:
            raise HttpError(
                426, f"this receiver understands {PROTOCOL} only", hint="use the same release of ggshell on both sides"
            )
        client = (websocket.client.host, websocket.client.port) if websocket.client is not None else None
        host = client[0] if client is not None else "local"
        self._state.access.require(host, Program.COLLECTOR)
        principal = await self._sign_in.sender(websocket.headers, client)
        self._state.access.require(host, Program.COLLECTOR, login=principal.name if principal is not None else "")
        return principal

    async def _receive(self, websocket: WebSocket, principal: Principal | None) -> None:
        challenge = new_challenge(__version__)
        await websocket.send_text(encode_message(challenge))
        try:
            async with asyncio.timeout(OPENING_SECONDS):
                text = await websocket.receive_text()
        except (TimeoutError, KeyError) as error:
            raise TrailError("the opening of a trail did not arrive", code=INVALID) from error
        opening = decode_message(text)
        if not isinstance(opening, Opening | TaskRequest):
            raise TrailError("the first message of a sender must be its opening", code=INVALID)
        opening.require_plain()
        self._require_known(opening, challenge.nonce, principal)
        websocket.state.sender = f"{opening.group} {opening.trail}"
        if isinstance(opening, TaskRequest):
            answer = await answer_task(self._state.home, opening, self._writers)
            await websocket.send_text(encode_message(answer))
            await websocket.close()
            return
        arrival = await self._opened(websocket, opening)
        try:
            if LIMIT in websocket.scope["state"]:
                websocket.scope["state"][LIMIT](LONGEST_FRAME)
            await websocket.send_text(encode_message(arrival.trail.opened))
            await self._take_all(websocket, arrival)
        except asyncio.CancelledError:
            if not arrival.is_replaced:
                raise
            raise WebSocketDisconnect(1012, "the sender has connected again") from None
        finally:
            await asyncio.shield(self._end(arrival))

    def _require_known(self, opening: Opening | TaskRequest, nonce: str, principal: Principal | None) -> None:
        """Raise ProcessError (GGS-00951) unless a peer or a user who signed in sent the opening."""
        if principal is not None:
            return
        name = re.sub("[^A-Za-z0-9_-]", "", opening.host.partition(".")[0])[:30] or "source"
        text = signed_text(nonce, opening.trail, opening.home, opening.group)
        if not opening.signature:
            raise ProcessError(
                "the sender did not say who it is",
                code=UNKNOWN_SENDER,
                hint="make the sending home a peer with ADD PEER",
            )
        fingerprint = proven_fingerprint(opening.certificate, opening.signature, text)
        if Peers(self._state.home).by_fingerprint(fingerprint) is None:
            raise ProcessError(
                f"this home does not know the sender {opening.group} on {opening.host}",
                code=UNKNOWN_SENDER,
                hint=f"compare the fingerprint with INFO PEER in the sending home, then run in the receiving home:"
                f" ADD PEER {name}, FINGERPRINT {fingerprint}",
            )

    async def _opened(self, websocket: WebSocket, opening: Opening) -> Arrival:
        """Open the trail, after an earlier connection of the same sender has released it. Raises GgsError."""
        client = websocket.client.host if websocket.client is not None else "local"
        name = received_name(self._state, opening.trail)
        sender = TrailOwner(opening.home, opening.host, opening.group, self._state.clock.now())
        earlier = self.arrivals.get(name)
        if earlier is not None and earlier.sender[:3] == sender[:3]:
            await self._replace(earlier)
        reached = TrailPosition(*opening.reached) if opening.reached is not None else None
        loop = asyncio.get_running_loop()
        trail = await loop.run_in_executor(self._writers, ReceivedTrail, name, sender, reached, opening.purge)
        counts = self._counts.setdefault(name, Counts())
        counts.connections += 1
        arrival = self.arrivals[name] = Arrival(trail, sender, client, self._state.clock.now(), counts)
        arrival.task = asyncio.current_task()
        self._tell(Severity.INFO, "GGS-00958", f"Trail {name} arrives from {sender.text} at {client}.")
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
            self.arrivals.pop(arrival.trail.name, None)
            arrival.ended.set()
        durable = arrival.trail.durable
        place = f"ended at {durable}" if durable.rba >= 0 else "ended before its first transaction"
        text = f"Trail {arrival.trail.name} from {arrival.sender.text} {place}."
        self._tell(Severity.INFO, "GGS-00959", text)

    async def _take_all(self, websocket: WebSocket, arrival: Arrival) -> None:
        """Write what arrives until the connection ends. Raises GgsError, WebSocketDisconnect."""
        waiting = _Waiting()
        reader = asyncio.create_task(waiting.fill(websocket))
        loop = asyncio.get_running_loop()
        try:
            while True:
                messages = await waiting.take()
                answer = await loop.run_in_executor(self._writers, arrival.trail.take, messages)
                arrival.counts.add(messages, self._state.clock.now())
                await websocket.send_bytes(answer)
        finally:
            reader.cancel()

    async def _refuse(self, websocket: WebSocket, error: GgsError) -> None:
        """Tell the sender, and whoever reads this home's log, why the connection ends."""
        again = error.code == INVALID or (isinstance(error, ConflictError) and error.code == "OGG-01454")
        self._report(websocket, error)
        await websocket.send_text(encode_message(Refusal(error.code, error.located, error.hint, again)))
        await websocket.close()

    def _report(self, websocket: WebSocket, error: GgsError) -> None:
        """Write a refusal to ggserr.log, at most one a minute of each kind for each address: anybody can connect."""
        host = websocket.client.host if websocket.client is not None else "local"
        more = self._refused.report(f"{error.code} {getattr(websocket.state, 'sender', '')}", host)
        if more is not None:
            others = f" ({more} more since the last message)" if more else ""
            text = f"A trail from {host} is refused: {error.located[:_LONGEST_REASON]}{others}"
            self._tell(Severity.WARNING, error.code, text)

    def _tell(self, severity: Severity, code: str, text: str) -> None:
        with contextlib.suppress(GgsError):  # a full disk must not hide the error itself
            self._state.event(severity, code, text)


class _Waiting:
    """The messages that have arrived and wait to be written."""

    def __init__(self) -> None:
        self._messages: list[bytes] = []
        self._bytes = 0
        self._error: BaseException | None = None
        self._arrived, self._room = asyncio.Event(), asyncio.Event()

    async def fill(self, websocket: WebSocket) -> None:
        """Receive messages until the connection ends; wait while too many bytes wait for the disk."""
        try:
            while True:
                message = await _binary(websocket)
                self._messages.append(message)
                self._bytes += len(message)
                self._arrived.set()
                while self._bytes > MOST_WAITING:
                    self._room.clear()
                    await self._room.wait()
        except Exception as error:  # noqa: BLE001 - the thread that writes raises it
            self._error = error
            self._arrived.set()

    async def take(self) -> list[bytes]:
        """Return all messages that wait, at least one. Raises the error that ended the connection, after the last one."""
        while not self._messages:
            if self._error is not None:
                raise self._error
            self._arrived.clear()
            await self._arrived.wait()
        found, self._messages, self._bytes = self._messages, [], 0
        self._room.set()
        return found


async def _binary(websocket: WebSocket) -> bytes:
    message: dict[str, Any] = dict(await websocket.receive())
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message.get("code", 1005))
    data = message.get("bytes")
    if data is None or len(data) > LONGEST_FRAME:
        raise TrailError("a sender's message is not a frame", code=INVALID)
    return bytes(data)


def received_name(state: ServiceState, text: str) -> TrailName:
    """Return the trail that a sender names: in ``dirdat`` unless it has a folder. Raises UsageError, HttpError."""
    named = text if "/" in text else f"./dirdat/{text}"
    name = TrailName.parse(named, state.home.root)
    if name.prefix.startswith("."):
        raise UsageError(f"{text[:200]} is not a valid trail name", hint="use two letters or digits")
    try:
        is_refused, folder = is_outside(state.bounds, named, written=True), name.folder.resolve()
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, a name that is too long
        raise UsageError(f"{text[:200]} is not a valid trail name", hint="use a trail below dirdat") from error
    if is_refused:
        raise HttpError(403, f"trail {text[:200]} is outside this home", hint="use a trail below dirdat, or ALLOWPATH")
    return name._replace(folder=folder)
