"""Shared by the Logdump tests: a small trail with every kind of record, and a session that reads it."""

from __future__ import annotations

from pathlib import Path

import pytest
from batches import Row, Tx, make_batch
from trail_kit import A, B, write_trail

from ggshell.clock import FakeClock
from ggshell.logdump.cli import Talk
from ggshell.logdump.state import LogdumpSession
from ggshell.record.image import encode_image, join_key_update
from ggshell.record.operation import IoType
from ggshell.trail.name import TrailName

TRANSACTIONS = (
    Tx(1, [Row(A, IoType.INSERT, encode_image([(0, b"1"), (1, b"one")]), 11)]),
    Tx(
        2,
        [
            Row(A, IoType.FIELD_COMP, encode_image([(0, b"1"), (1, b"uno")]), 21),
            Row(B, IoType.INSERT, encode_image([(0, b"7")]), 22),
            Row(A, IoType.DELETE, encode_image([(0, b"1")]), 23),
        ],
    ),
    Tx(3, [Row(A, IoType.KEY_FIELD_COMP, join_key_update(encode_image([(0, b"1")]), encode_image([(0, b"2")])), 31)]),
    Tx(4, [Row(A, IoType.PURGE_DATA, b"", 41)]),
    Tx(5, [Row(A, IoType.INSERT, encode_image([(0, b"3"), (1, b"x" * 70_000)]), 51)]),
    Tx(6, [Row(B, IoType.DELETE, encode_image([(0, None)]), 61)]),
)


def small_trail(folder: Path) -> TrailName:
    """A trail of one file, each transaction flushed separately."""
    name = TrailName(folder, "ea")
    write_trail(name, [make_batch([each]) for each in TRANSACTIONS])
    return name


class Dump:
    """A Logdump session; ``say`` returns what its statements print."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *, as_json: bool = False) -> None:
        self._capsys = capsys
        self.talk = Talk(LogdumpSession(FakeClock()), as_json=as_json)

    def say(self, *lines: str) -> str:
        for line in lines:
            self.talk.say(line)
        return self._capsys.readouterr().out
