"""Who may send or read trails over a WebSocket: what HTTP shows, the opening, the proof of a home's key, and refusals."""

from __future__ import annotations

import asyncio
import contextlib
import re
from functools import cached_property
from typing import Final

from starlette.responses import Response
from starlette.websockets import WebSocket

from ggshell import __version__
from ggshell.errors import ConflictError, GgsError, HttpError, ProcessError, TrailError, UsageError
from ggshell.home.certificate import read_certificate
from ggshell.home.events import Severity
from ggshell.home.home import Home
from ggshell.home.peers import Peers
from ggshell.network.frames import INVALID, PROTOCOL
from ggshell.network.opening import (
    Asked,
    Challenge,
    ExtractRequest,
    Opening,
    Refusal,
    TaskRequest,
    decode_message,
    encode_message,
    new_challenge,
)
from ggshell.network.proof import home_key, proven_fingerprint, signed_text
from ggshell.network.proven import UNKNOWN_SENDER, Proven
from ggshell.parameters.access_rules import Program
from ggshell.parameters.trail_statements import task_trail
from ggshell.service.addresses import parse_address
from ggshell.service.named_files import is_outside
from ggshell.service.refusals import status_of
from ggshell.service.refused_sign_ins import RefusedSignIns
from ggshell.service.request_sign_in import RequestSignIn
from ggshell.service.sign_in import Principal
from ggshell.service.state import ServiceState
from ggshell.service.trail_protocol import CONNECTION, TrailProtocol
from ggshell.trail.name import TrailName

TARGETS: Final = "/targets"
SOURCES: Final = "/sources"
OPENING_SECONDS: Final = 30.0
_LONGEST_REASON: Final = 500


class TrailAdmission:
    """Admits the connections of the endpoints of trails. Its methods run in the server's loop."""

    def __init__(self, state: ServiceState, sign_in: RequestSignIn) -> None:
        self._state = state
        self._sign_in = sign_in
        self._refused = RefusedSignIns(state.clock)

    def endpoint(self, websocket: WebSocket) -> str:
        """Return the endpoint that a connection names, without its version. Raises HttpError."""
        path = websocket.scope["path"]
        found = parse_address(path, self._state.settings.deployment)
        if found is None or found.path.rstrip("/") not in (TARGETS, SOURCES):
            hint = "use /services/v2/targets to send a trail, /services/v2/sources to read one"
            raise HttpError(404, f"{path[:200]} is not an endpoint of trails", hint=hint)
        return found.path.rstrip("/")

    async def admit(self, websocket: WebSocket) -> Principal | None:
        """Accept a connection after checking what HTTP shows. Raises GgsError."""
        if "origin" in websocket.headers:
            raise HttpError(403, "a page of a browser cannot send trails")
        if PROTOCOL not in websocket.scope["subprotocols"]:
            offered = ", ".join(websocket.scope["subprotocols"])[:_LONGEST_REASON] or "nothing"
            raise HttpError(
                426,
                f"this home exchanges trails with {PROTOCOL}, the other one offers {offered}: use the same release of ggshell"
                " in both homes",
            )
        client = (websocket.client.host, websocket.client.port) if websocket.client is not None else None
        host = client[0] if client is not None else "local"
        self._state.access.require(host, Program.COLLECTOR)
        principal = await self._sign_in.sender(websocket.headers, client)
        self._state.access.require(host, Program.COLLECTOR, login=principal.name if principal is not None else "")
        await websocket.accept(subprotocol=PROTOCOL)
        return principal

    async def opening(self, websocket: WebSocket, principal: Principal | None, *, reads: bool) -> tuple[Asked, Proven]:
        """Return the opening of a peer, or of a user who has signed in, and who that is. Raises GgsError.

        ``reads``: whether the endpoint is the one where trails are read."""
        challenge = new_challenge(__version__, self._own_fingerprint)
        await websocket.send_text(encode_message(challenge))
        try:
            async with asyncio.timeout(OPENING_SECONDS):
                text = await websocket.receive_text()
        except (TimeoutError, KeyError) as error:
            raise TrailError("the opening of a trail did not arrive", code=INVALID) from error
        opening = decode_message(text)
        if not isinstance(opening, Opening | TaskRequest | ExtractRequest):
            raise TrailError("the first message of a sender must be its opening", code=INVALID)
        opening.require_plain()
        if _reads(opening) is not reads:
            raise TrailError("the opening belongs to the other endpoint of trails", code=INVALID)
        proven = self._require_known(opening, challenge, principal)
        websocket.state.sender = f"{opening.group} {opening.trail}"
        return opening, proven

    @cached_property
    def _own_fingerprint(self) -> str:
        """The fingerprint of this home, as its TLS shows it since the service started."""
        return read_certificate(home_key(self._state.home, self._state.clock).certificate).fingerprint

    def _require_known(self, opening: Asked, challenge: Challenge, principal: Principal | None) -> Proven:
        """Return who sent the opening. Raises ProcessError (GGS-00951) unless it is a peer or a user who signed in."""
        if principal is not None and not opening.signature:
            return Proven(f"user {principal.name}")
        name = re.sub("[^A-Za-z0-9_-]", "", opening.host.partition(".")[0])[:30] or "source"
        who = "reader" if _reads(opening) else "sender"
        other, own = ("reading", "source") if _reads(opening) else ("sending", "receiving")
        if not opening.signature:
            raise ProcessError(
                f"the {who} did not identify itself",
                code=UNKNOWN_SENDER,
                hint=f"make the {other} home a peer with ADD PEER; or, for AUTHENTICATION CERTIFICATE of its path, set"
                f" CLIENTCA in service.prm of the {own} home",
            )
        fingerprint = proven_fingerprint(opening.certificate, opening.signature, signed_text(opening, challenge))
        if opening.unchecked and not self._state.settings.plaintext:
            raise ProcessError(
                f"the {who} does not know this home", code=UNKNOWN_SENDER, hint="use wss:// in the address"
            )
        if principal is not None:
            return Proven(f"user {principal.name}", fingerprint)
        peer = Peers(self._state.home).by_fingerprint(fingerprint)
        if peer is None:
            raise ProcessError(
                f"this home does not know the {who} {opening.group} on {opening.host}",
                code=UNKNOWN_SENDER,
                hint=f"compare the fingerprint with INFO PEER in the {other} home, then run in the {own} home:"
                f" ADD PEER {name}, FINGERPRINT {fingerprint}",
            )
        return Proven(f"peer {peer.name}", fingerprint)

    async def refuse(self, websocket: WebSocket, error: GgsError) -> None:
        """Report to the other side, and in this home's log, why the connection ends."""
        again = error.code == INVALID or (isinstance(error, ConflictError) and error.code == "OGG-01454")
        self.report(websocket, error)
        await websocket.send_text(encode_message(Refusal(error.code, error.located, error.hint, again)))
        await websocket.close()

    async def deny(self, websocket: WebSocket, error: GgsError) -> None:
        """Answer a connection that does not become a WebSocket."""
        self.report(websocket, error)
        text = f"{error.code} {error}\n"
        await websocket.send_denial_response(Response(text, status_of(error), media_type="text/plain"))

    def report(self, websocket: WebSocket, error: GgsError) -> None:
        """Write a refusal to ggserr.log, at most one a minute of each kind for each address: anybody can connect."""
        host = websocket.client.host if websocket.client is not None else "local"
        more = self._refused.report(f"{error.code} {getattr(websocket.state, 'sender', '')}", host)
        if more is not None:
            others = f" ({more} more since the last message)" if more else ""
            text = f"A trail from {host} is refused: {error.located[:_LONGEST_REASON]}{others}"
            self.tell(Severity.WARNING, error.code, text)

    def tell(self, severity: Severity, code: str, text: str) -> None:
        """Write an event to ggserr.log."""
        with contextlib.suppress(GgsError):  # a full disk must not hide the error itself
            self._state.event(severity, code, text)


def _reads(opening: Asked) -> bool:
    return isinstance(opening, ExtractRequest) or (isinstance(opening, Opening) and opening.reads)


def connection_of(websocket: WebSocket) -> TrailProtocol:
    """Return the connection of a WebSocket, for what ASGI has no message for."""
    connection: TrailProtocol = websocket.scope["state"][CONNECTION]
    return connection


def trail_here(state: ServiceState, text: str, *, written: bool) -> TrailName:
    """Return the trail that the other side names: in ``dirdat`` unless it has a folder. Raises UsageError, HttpError.

    ``written``: it is written. The folders in ``dirtmp`` belong to processes of this home; only loads of tasks arrive there.
    """
    named = text if "/" in text else f"./dirdat/{text}"
    name = TrailName.parse(named, state.home.root)
    if name.prefix.startswith("."):
        raise UsageError(f"{text[:200]} is not a valid trail name", hint="use two letters or digits")
    try:
        is_refused, found = is_outside(state.bounds, named, written=written), name.real
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, a name that is too long
        raise UsageError(f"{text[:200]} is not a valid trail name", hint="use a trail below dirdat") from error
    if is_refused:
        raise HttpError(403, f"trail {text[:200]} is outside this home", hint="use a trail below dirdat, or ALLOWPATH")
    temporary = (state.home.root / "dirtmp").resolve()
    if written and temporary in found.folder.parents and not _is_of_task(found, state.home):
        raise UsageError(
            f"trail {text[:200]} is among the temporary files of this home", hint="use a trail below dirdat"
        )
    return found


def _is_of_task(name: TrailName, home: Home) -> bool:
    """Whether a trail, without links, is the one for the loads of a task (RMTTASK)."""
    place = TrailName.parse(task_trail(name.folder.name.removeprefix("task-")), home.root)
    return place.real == name
