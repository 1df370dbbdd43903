"""The frames of one connection between the server's loop and the thread that writes them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, cast

import pytest

from ggshell.service.arriving_frames import MOST_UNSAID, MOST_WAITING, ArrivingFrames

SECONDS = 20


class Connection:
    """Keeps what it is told to do."""

    def __init__(self) -> None:
        self.is_paused = False
        self.answers: list[bytes] = []

    def pause(self) -> None:
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False

    def send_newest(self, message: bytes) -> None:
        self.answers.append(message)


class Disk:
    """Writes messages when it is allowed to."""

    def __init__(self) -> None:
        self.begun, self.allowed = threading.Semaphore(0), threading.Semaphore(0)
        self.writes: list[list[bytes]] = []
        self.failure: Exception | None = None

    def write(self, messages: list[bytes]) -> bytes:
        self.writes.append(messages)
        self.begun.release()
        assert self.allowed.acquire(timeout=SECONDS)
        if self.failure is not None:
            raise self.failure
        return b"%d" % sum(map(len, self.writes))


def run(body: Callable[[ArrivingFrames, Connection, Disk], Any]) -> Disk:
    async def main() -> Disk:
        connection, disk = Connection(), Disk()
        frames = ArrivingFrames(cast(Any, connection), disk.write, lambda _: None)
        try:
            async with asyncio.timeout(SECONDS):
                await body(frames, connection, disk)
        finally:
            frames.end()
        return disk

    return asyncio.run(main())


def test_what_arrives_during_a_write_is_written_together() -> None:
    async def body(frames: ArrivingFrames, connection: Connection, disk: Disk) -> None:
        for message in (b"a", b"b", b"c"):
            frames.take(message)
        disk.allowed.release(2)
        await frames.written()
        assert connection.answers == [b"3"]

    assert run(body).writes == [[b"a"], [b"b", b"c"]]


def test_a_steady_stream_is_acknowledged_in_large_steps() -> None:
    async def body(frames: ArrivingFrames, connection: Connection, disk: Disk) -> None:
        part = bytes(MOST_UNSAID // 4)
        frames.take(part)
        for _ in range(8):
            assert await asyncio.to_thread(disk.begun.acquire, timeout=SECONDS)
            frames.take(part)
            disk.allowed.release()
        disk.allowed.release()
        await frames.written()
        assert connection.answers == [b"4", b"8", b"9"]

    run(body)


def test_nothing_more_is_read_while_too_many_bytes_wait_for_the_disk() -> None:
    async def body(frames: ArrivingFrames, connection: Connection, disk: Disk) -> None:
        frames.take(b"first")
        frames.take(bytes(MOST_WAITING))
        assert not connection.is_paused
        frames.take(b"x")
        assert connection.is_paused
        disk.allowed.release(2)
        await frames.written()
        assert not connection.is_paused

    assert run(body).writes == [[b"first"], [bytes(MOST_WAITING), b"x"]]


def test_nothing_is_written_after_a_failure() -> None:
    async def body(frames: ArrivingFrames, connection: Connection, disk: Disk) -> None:
        disk.failure = OSError("no space")
        frames.take(b"a")
        frames.take(b"b")
        disk.allowed.release()
        assert await frames.failed is disk.failure
        frames.take(b"c")
        await frames.written()
        assert connection.answers == []

    assert run(body).writes == [[b"a"]]


def test_the_write_under_way_ends_after_the_connection_but_no_other_begins() -> None:
    async def body(frames: ArrivingFrames, connection: Connection, disk: Disk) -> None:
        frames.take(b"a")
        frames.take(b"b")
        frames.end()
        disk.allowed.release()
        await frames.written()
        assert connection.answers == [b"1"]

    assert run(body).writes == [[b"a"]]


@pytest.mark.parametrize("count", [1, 50])
def test_waiting_for_the_end_includes_what_has_arrived_before(count: int) -> None:
    async def body(frames: ArrivingFrames, connection: Connection, disk: Disk) -> None:
        disk.allowed.release(count)
        for number in range(count):
            frames.take(b"%d" % number)
        await frames.written()

    assert [each for part in run(body).writes for each in part] == [b"%d" % number for number in range(count)]
