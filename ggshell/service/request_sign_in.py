"""Who makes a request, or opens a connection for trails: sign-in with the limits of a server that many clients use."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import Final

from ggshell.errors import DiskError, HttpError
from ggshell.home.events import Severity
from ggshell.service.sign_in import ANONYMOUS, Principal, require_sender, user_name
from ggshell.service.state import ServiceState

MOST_WAITING: Final = 50
"""How many requests may wait for the check of a password. One thread checks them, since each check needs memory and time."""
PeerName = Callable[[tuple[str, int]], str]
"""Returns the common name of the certificate that a client connection presented, empty for none."""


class RequestSignIn:
    """Signs in the clients of connections. Its methods run in the server's loop. ``deadline``: seconds to check a password."""

    def __init__(self, state: ServiceState, peer_name: PeerName, deadline: float) -> None:
        self._state = state
        self._peer_name = peer_name
        self._deadline = deadline
        self._waiting_for_password = 0

    async def principal(self, headers: Mapping[str, str], client: tuple[str, int] | None) -> Principal:
        """Return who sends a request with these headers, ANONYMOUS without credentials.

        ``headers``: with names in lower case; ``client``: host and port. Raises HttpError (401, 429, 503), StoreError.
        """
        sign_in = self._state.sign_in
        name = self._peer_name((client[0], client[1])) if client is not None else ""
        host = client[0] if client is not None else "local"
        found = sign_in.quick(headers, host, name)
        if found is not None:
            return found
        delay = sign_in.delay(host)
        if delay:
            await asyncio.sleep(delay)
        if self._waiting_for_password >= MOST_WAITING:
            raise HttpError(
                503, "too many passwords are being checked at the same time", hint="repeat the request later"
            )
        self._waiting_for_password += 1
        try:
            async with asyncio.timeout(self._deadline):
                loop = asyncio.get_running_loop()
                return await loop.run_in_executor(self._state.password_worker, sign_in.slow, headers, host)
        except TimeoutError as error:
            text = f"the password was not checked within {self._deadline:g} seconds"
            raise HttpError(503, text, hint="repeat the request later") from error
        except HttpError as error:
            self._report_refusal(user_name(headers), host, error)
            raise
        finally:
            self._waiting_for_password -= 1

    async def sender(self, headers: Mapping[str, str], client: tuple[str, int] | None) -> Principal | None:
        """Return the user who opens a connection for trails, None without credentials.

        Session cookies do not count, because a browser also sends them for a page of another site. Raises HttpError (401,
        429, 503, and 403 for a user whose role sends no trails), StoreError.
        """
        found = await self.principal({name: value for name, value in headers.items() if name != "cookie"}, client)
        if found is ANONYMOUS:
            return None
        require_sender(found)
        return found

    def _report_refusal(self, name: str, host: str, error: HttpError) -> None:
        """Write a refused sign-in to ggserr.log, at most one a minute for each user name and address."""
        more = self._state.refused_sign_ins.report(name, host)
        if more is not None:
            others = f" ({more} more since the last message)" if more else ""
            text = f"sign-in from {host} refused: {error.message}{others}"
            with contextlib.suppress(DiskError):  # a disk that is full must not hide the refusal itself
                self._state.event(Severity.WARNING, error.code, text)
