"""A wait that another thread ends, and a descriptor whose number belongs to another file by now."""

from __future__ import annotations

import os
import select
import socket
import threading
from collections.abc import Callable

import pytest

from ggshell.clock import SystemClock
from ggshell.network.link import Link
from ggshell.wake_up import WakeUp


def test_a_ring_ends_the_wait_until_it_is_drained() -> None:
    bell = WakeUp()
    threading.Thread(target=bell.ring).start()
    poll = select.poll()
    poll.register(bell, select.POLLIN)
    assert poll.poll(60_000)
    bell.drain()
    bell.drain()
    assert not poll.poll(0)
    bell.close()
    bell.close()


def _of_wake_up() -> tuple[int, Callable[[], None], Callable[[], None]]:
    bell = WakeUp()
    return bell.fileno(), bell.close, bell.ring


def _of_link() -> tuple[int, Callable[[], None], Callable[[], None]]:
    here, there = socket.socketpair()
    link = Link(here, "there", SystemClock())
    there.close()
    return link._interrupt.fileno(), link.close, link.interrupt


@pytest.mark.parametrize("made", [_of_wake_up, _of_link])
def test_nothing_is_written_to_a_file_that_has_the_number_of_the_closed_descriptor(
    made: Callable[[], tuple[int, Callable[[], None], Callable[[], None]]],
) -> None:
    """Regression: an interrupt after the close wrote 8 bytes to whatever file had the number by then."""
    number, close, ring = made()
    close()
    other = os.eventfd(0, os.EFD_NONBLOCK)
    os.dup2(other, number)
    try:
        ring()
        with pytest.raises(BlockingIOError):
            os.eventfd_read(other)
    finally:
        os.close(number)
        if other != number:
            os.close(other)
