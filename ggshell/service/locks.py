"""Locks of objects: one request at a time changes an object, the others wait in the order of their arrival.

A request waits without a thread, so requests for one object leave the threads to those for other objects.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from time import monotonic

from ggshell.errors import HttpError
from ggshell.service.refusals import RETRY_SECONDS

_Queue = deque[Future[None]]


class Locks:
    """Locks by the names of objects, which exist while requests hold them or wait. Any thread can use them."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._queues: dict[str, _Queue] = {}

    @property
    def names(self) -> list[str]:
        """The objects that requests hold or wait for."""
        with self._guard:
            return list(self._queues)

    def waiting(self, name: str) -> int:
        """How many requests wait for an object that another one holds."""
        with self._guard:
            return max(0, len(self._queues.get(name, ())) - 1)

    @contextmanager
    def held(self, names: Iterable[str], seconds: float) -> Iterator[None]:
        """Hold the locks of objects in a thread that may wait. Raises HttpError 409 after the time."""
        places: list[tuple[str, Future[None]]] = []
        end = monotonic() + seconds
        try:
            for name in sorted(set(names)):
                turn = self._enter(name)
                places.append((name, turn))
                try:
                    turn.result(max(0.0, end - monotonic()))
                except TimeoutError:
                    raise _refusal(name) from None
            yield
        finally:
            self._leave(places)

    async def take(self, names: Iterable[str], seconds: float) -> Callable[[], None]:
        """Wait for the locks of objects; return what releases them. Raises HttpError 409 after the time."""
        places: list[tuple[str, Future[None]]] = []
        end = monotonic() + seconds
        try:
            for name in sorted(set(names)):  # in one order everywhere, so that no two requests wait for each other
                turn = self._enter(name)
                places.append((name, turn))
                try:
                    async with asyncio.timeout(max(0.0, end - monotonic())):
                        await asyncio.wrap_future(turn)
                except TimeoutError:
                    raise _refusal(name) from None
        except BaseException:
            self._leave(places)
            raise
        return lambda: self._leave(places)

    def _enter(self, name: str) -> Future[None]:
        """Queue for a lock; the future has a result when it is the caller's turn."""
        turn: Future[None] = Future()
        with self._guard:
            queue = self._queues.setdefault(name, deque())
            queue.append(turn)
            if len(queue) == 1:
                _grant(turn)
        return turn

    def _leave(self, places: list[tuple[str, Future[None]]]) -> None:
        """Release locks, or give up waiting for them; the next in each queue has its turn."""
        with self._guard:
            for name, turn in places:
                queue = self._queues[name]
                queue.remove(turn)
                if not queue:
                    del self._queues[name]
                elif not queue[0].done():
                    _grant(queue[0])


def _grant(turn: Future[None]) -> None:
    """Let a request proceed; one that has just given up leaves the queue by itself, and the next one has its turn."""
    if turn.set_running_or_notify_cancel():
        turn.set_result(None)


def _refusal(name: str) -> HttpError:
    headers = {"Retry-After": str(RETRY_SECONDS)}
    return HttpError(409, f"another request is changing {name}", hint="repeat the request later", headers=headers)
