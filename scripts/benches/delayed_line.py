"""A line with a delay, for the bench ``path``: a TCP proxy in a process of its own.

    delayed_line.py TARGET_PORT DELAY_MILLISECONDS WINDOW_BYTES    prints its port

Every byte arrives after the delay. Like a TCP connection of that round trip, one direction has at most WINDOW_BYTES under way:
a byte counts until one more delay after it was delivered, when its acknowledgement would have come back.
"""

from __future__ import annotations

import select
import socket
import sys
import time
from collections import deque

BLOCK = 256 << 10
ROOM = 1 << 20


class Direction:
    """The bytes from one socket to the other. They wait in order, each block with the time from which on it may leave."""

    def __init__(self, source: socket.socket, target: socket.socket, delay: float, window: int) -> None:
        self.source, self.target = source, target
        self._delay, self._room = delay, window
        self._blocks: deque[tuple[float, memoryview]] = deque()
        self._acknowledged: deque[tuple[float, int]] = deque()
        self.ended = False

    def reads(self) -> bool:
        return self._room > 0 and not self.ended

    def writes(self, now: float) -> bool:
        return bool(self._blocks) and self._blocks[0][0] <= now

    def next_time(self) -> float:
        """The next moment at which something changes without the network."""
        return min([each[0][0] for each in (self._blocks, self._acknowledged) if each], default=float("inf"))

    def read(self, now: float) -> None:
        data = self.source.recv(BLOCK)
        self.ended = not data
        self._room -= len(data)
        self._blocks.append((now + self._delay, memoryview(data)))

    def write(self, now: float) -> bool:
        """Pass on what is due; return False after the end."""
        while self.writes(now):
            due, data = self._blocks[0]
            if not data:
                return False
            try:
                count = self.target.send(data)
            except BlockingIOError:
                return True
            self._acknowledged.append((now + self._delay, count))
            if count == len(data):
                self._blocks.popleft()
            else:
                self._blocks[0] = (due, data[count:])
        return True

    def acknowledge(self, now: float) -> None:
        while self._acknowledged and self._acknowledged[0][0] <= now:
            self._room += self._acknowledged.popleft()[1]


def pass_on(near: socket.socket, far: socket.socket, delay: float, window: int) -> None:
    """Pass bytes in both directions until one side ends."""
    ways = (Direction(near, far, delay, window), Direction(far, near, delay, window))
    while True:
        now = time.monotonic()
        poll, waits = select.poll(), {near: 0, far: 0}
        for way in ways:
            way.acknowledge(now)
            waits[way.source] |= select.POLLIN if way.reads() else 0
            waits[way.target] |= select.POLLOUT if way.writes(now) else 0
        for stream, events in waits.items():
            poll.register(stream, events)
        due = min([each.next_time() for each in ways if not each.writes(now)], default=float("inf"))
        ready = dict(poll.poll(None if due == float("inf") else max(0.0, 1000 * (due - now))))
        now = time.monotonic()
        for way in ways:
            if ready.get(way.source.fileno(), 0) & (select.POLLIN | select.POLLHUP) and way.reads():
                way.read(now)
            if not way.write(now):
                return


def main(words: list[str]) -> None:
    target, delay, window = int(words[0]), int(words[1]) / 1000, int(words[2])
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        while True:
            near = listener.accept()[0]
            with near, socket.create_connection(("127.0.0.1", target)) as far:
                for stream in (near, far):
                    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    stream.setblocking(False)
                try:
                    pass_on(near, far, delay, window)
                except OSError as error:
                    print(error, file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
