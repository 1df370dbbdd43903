"""Ends the connections of trails when the trust ends: DELETE PEER, DELETE USER, another fingerprint or role.

A connection may last for months, so the check of its opening is not enough. It is cut; when the other side connects again, the
usual refusal says why.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Final

from ggshell.errors import StoreError
from ggshell.home.home import Home
from ggshell.home.peers import Peers
from ggshell.home.users import Users
from ggshell.network.proven import Proven

LOOK_SECONDS: Final = 2.0


class TrailTrust:
    """Whether those who have proved who they are may still send or read trails."""

    def __init__(self, home: Home) -> None:
        self._peers, self._users = Peers(home), Users(home)

    @contextlib.asynccontextmanager
    async def watching(self, proven: Proven, cut: Callable[[], None]) -> AsyncIterator[None]:
        """Call ``cut`` if the trust ends before the block does."""
        watch = asyncio.create_task(self._watch(proven, cut))
        try:
            yield
        finally:
            watch.cancel()

    async def _watch(self, proven: Proven, cut: Callable[[], None]) -> None:
        known: object = None
        while True:
            version = self._peers.version(), self._users.version()
            if version != known and not await asyncio.to_thread(self._holds, proven):
                cut()
                return
            known = version
            await asyncio.sleep(LOOK_SECONDS)

    def _holds(self, proven: Proven) -> bool:
        kind, _, name = proven.login.partition(" ")
        try:
            if kind == "user":
                user = self._users.find(name)
                return user is not None and user.role.sends_trails
            return self._peers.by_fingerprint(proven.fingerprint) is not None
        except StoreError:  # a damaged file refuses new connections; those that exist go on
            return True
