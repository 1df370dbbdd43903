"""Many processes are asked at the same time; those that hang do not delay the answers of the others."""

from __future__ import annotations

import threading
import time

from ggshell.cli.asking import ask_together


def test_processes_that_do_not_answer_share_one_deadline() -> None:
    released = threading.Event()

    def ask(number: int) -> int:
        if number % 2:
            released.wait(60)
        return number * 10

    began = time.monotonic()
    try:
        found = ask_together(range(30), ask, lambda number: -number, 0.5)
    finally:
        released.set()
    assert time.monotonic() - began < 20
    assert found[:4] == [0, -1, 20, -3]
    assert found[1::2] == [-number for number in range(1, 30, 2)]


def test_every_answer_is_returned_in_order() -> None:
    assert ask_together([3, 1, 2], lambda each: each + 1, lambda _: 0, 60) == [4, 2, 3]
    assert ask_together([], lambda each: each, lambda _: 0, 60) == []
