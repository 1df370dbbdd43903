"""The endpoints of trails: ``/services/v2/targets``, where trails arrive, and ``/services/v2/sources``, where they are read."""

from __future__ import annotations

import contextlib

from starlette.websockets import WebSocket, WebSocketDisconnect

from ggshell.errors import GgsError
from ggshell.network.opening import Asked, ExtractRequest, Opening
from ggshell.network.proven import Proven
from ggshell.service.refusals import bug
from ggshell.service.request_sign_in import RequestSignIn
from ggshell.service.state import ServiceState
from ggshell.service.trail_admission import SOURCES, TrailAdmission, connection_of
from ggshell.service.trail_receiver import TrailReceivers
from ggshell.service.trail_sources import TrailSources
from ggshell.service.trail_trust import TrailTrust


class TrailEndpoints:
    """Serves the WebSocket connections of both endpoints."""

    def __init__(self, state: ServiceState, sign_in: RequestSignIn) -> None:
        self._admission = TrailAdmission(state, sign_in)
        self._trust = TrailTrust(state.home)
        self.receivers = TrailReceivers(state, self._admission)
        self.sources = TrailSources(state, self._admission)

    def close(self) -> None:
        """Release the threads; the connections have ended by now."""
        self.receivers.close()
        self.sources.close()

    async def serve(self, websocket: WebSocket) -> None:
        """Serve one connection until it ends."""
        try:
            reads = self._admission.endpoint(websocket) == SOURCES
            principal = await self._admission.admit(websocket)
        except GgsError as error:
            await self._admission.deny(websocket, error)
            return
        with contextlib.suppress(WebSocketDisconnect, RuntimeError):  # the other side has gone; it connects again
            try:
                opening, proven = await self._admission.opening(websocket, principal, reads=reads)
                async with self._trust.watching(proven, connection_of(websocket).abort):
                    await self._serve(websocket, opening, proven, reads=reads)
            except GgsError as error:
                await self._admission.refuse(websocket, error)
            except (WebSocketDisconnect, RuntimeError):
                raise
            except Exception as error:  # noqa: BLE001 - the other side and the log must say that it is a mistake in ggshell
                await self._admission.refuse(websocket, bug(error))

    async def _serve(self, websocket: WebSocket, opening: Asked, proven: Proven, *, reads: bool) -> None:
        """Do what the opening of a connection asks for. Raises GgsError, WebSocketDisconnect."""
        if isinstance(opening, ExtractRequest):
            await self.sources.answer_alias(websocket, opening, proven)
        elif isinstance(opening, Opening) and reads:
            await self.sources.serve(websocket, opening, proven)
        else:
            await self.receivers.serve(websocket, opening, proven)
