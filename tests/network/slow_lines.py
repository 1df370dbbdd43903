"""A line that is slow but alive: a proxy with delay, jitter and a limited bandwidth, which keeps bytes in order."""

from __future__ import annotations

import queue
import random
import socket
import threading
import time
from contextlib import suppress

from two_homes import Line

_BLOCK = 16 << 10
_MOST_BLOCKS = 64
"""How much the line holds each way; what is more waits in the sender, as in a real network."""


class SlowLine(Line):
    """A proxy that passes bytes on later. All settings can change while connections are open.

    ``delay``, ``jitter``: seconds each way, always and at most in addition; ``bandwidth``: bytes per second each way, 0 for no
    limit. ``carried``: the bytes that senders have sent.
    """

    def __init__(self, port: int) -> None:
        self.jitter = 0.0
        self.bandwidth = 0
        self.carried = 0
        self._chance = random.Random("slow line")
        super().__init__(port)

    def _pass(self, near: socket.socket, far: socket.socket, limit: int | None) -> None:
        with near, far:
            back = threading.Thread(target=self._carry, args=(far, near), daemon=True)
            back.start()
            self._carry(near, far)
            back.join()

    def _carry(self, one: socket.socket, other: socket.socket) -> None:
        """Carry the bytes of one way until one end is closed."""
        way: queue.Queue[tuple[float, bytes]] = queue.Queue(_MOST_BLOCKS)
        leaving = threading.Thread(target=self._leave, args=(way, other), daemon=True)
        leaving.start()
        free = due = 0.0
        with suppress(OSError):
            while data := one.recv(_BLOCK):
                self.carried += len(data)
                now = time.monotonic()
                free = max(free, now) + (len(data) / self.bandwidth if self.bandwidth else 0)
                due = max(due, free + self.delay + self._chance.uniform(0, self.jitter))
                way.put((due, data))
        way.put((0.0, b""))
        leaving.join()
        for each in (one, other):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _leave(self, way: queue.Queue[tuple[float, bytes]], other: socket.socket) -> None:
        """Send each block when it is due; after the other end has gone, only take them."""
        pause, gone = threading.Event(), False
        while (item := way.get())[1]:
            if gone:
                continue
            pause.wait(max(0.0, item[0] - time.monotonic()))
            self.passing.wait()
            try:
                other.sendall(item[1])
            except OSError:
                gone = True
