"""Copying a trail byte for byte, and going over to encoding and back at any point."""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
from pathlib import Path

import pytest
from amounts import seeds
from trail_kit import PRODUCER, open_writer, read_all, small

from ggshell.clock import FakeClock
from ggshell.pipeline.transform.selection import Selection
from ggshell.record.transaction import Completed
from ggshell.trail.copying import CopySource, TrailCopy
from ggshell.trail.durable import MarkReader
from ggshell.trail.fileheader import Producer, adapted_header, decode_header, header_size
from ggshell.trail.name import TrailName
from ggshell.trail.reader import TrailReader
from ggshell.trail.writer import TrailWriter, WriterOptions
from ggshell.types import TrailPosition

BIG = 1 << 30


class Forward:
    """One session that forwards a trail, as a path does; ``saved`` is what its checkpoint file would contain."""

    def __init__(self, source: TrailName, target: TrailName, saved: TrailPosition | None, limit: int = BIG) -> None:
        options = WriterOptions(forwards=True)
        producer = Producer("DP1", "ggshell PATH")
        self.writer = TrailWriter.open(target, clock=FakeClock(), producer=producer, max_bytes=limit, options=options)
        csn = self.writer.last_csn
        held = Completed(csn, self.writer.transactions_of(csn)) if csn is not None else None
        self.selection = Selection(lambda _: True, held)
        self.reader = TrailReader(source, saved)
        self.source = CopySource(self.reader)
        self.copy = TrailCopy(self.source, self.writer, self.selection)
        self.saved = self.done = saved

    def step(self, size: int = 1 << 20, *, encodes: bool = False) -> bool:
        """Forward a batch; False at the end of the trail, after a flush."""
        batch = self.reader.read(size)
        if batch is None:
            self.copy.rest(self.source.idle())
            self.flush()
            return False
        self.source.take(batch)
        if encodes:
            self.copy.leave()
        if encodes or self.copy.write(batch) is None:
            for part in self.selection.select(batch):
                self.writer.write(part)
        if batch.pieces[-1].ends:
            self.done = TrailPosition(batch.seqno, batch.end_rba)
        return True

    def flush(self) -> None:
        self.writer.flush()
        self.saved = self.done

    def close(self) -> None:
        """End without a flush, as after a kill."""
        self.writer.close()
        self.reader.close()
        self.source.close()

    def finish(self) -> None:
        while self.step():
            pass
        self.close()


def digest(name: TrailName) -> list[str]:
    return [hashlib.sha256(name.file(seqno).read_bytes()).hexdigest() for seqno in name.sequences()]


def forward(source: TrailName, target: TrailName, saved: TrailPosition | None = None, limit: int = BIG) -> Forward:
    session = Forward(source, target, saved, limit)
    session.finish()
    return session


@pytest.fixture
def names(tmp_path: Path) -> tuple[TrailName, TrailName]:
    return TrailName(tmp_path / "source", "ea"), TrailName(tmp_path / "target", "da")


class Writing:
    """Writes the source: transactions of random sizes, in pieces, with restarts."""

    def __init__(self, name: TrailName, dice: random.Random) -> None:
        self.name, self.dice, self.csn = name, dice, 0
        self.limit = dice.choice([1500, 6000, BIG])
        self.writer = open_writer(name, self.limit)

    def some(self) -> None:
        for _ in range(self.dice.randint(1, 6)):
            self.csn += 1
            pieces = self.dice.randint(1, 4)
            for number in range(pieces):
                rows, size = self.dice.randint(1, 8), self.dice.choice([5, 60, 900])
                self.writer.write(small(self.csn, rows, size, begins=number == 0, ends=number == pieces - 1))
        self.writer.flush()
        if self.dice.random() < 0.3:
            self.writer.close()
            self.writer = open_writer(self.name, self.limit)


def tear(name: TrailName, dice: random.Random) -> None:
    """Cut some bytes after the durable mark off, as a crash may."""
    with contextlib.closing(MarkReader(name)) as reader:
        mark = reader.read()
    if mark is not None and name.sequences()[-1:] == [mark.position.seqno]:
        path = name.file(mark.position.seqno)
        os.truncate(path, dice.randint(mark.position.rba, path.stat().st_size))


@pytest.mark.parametrize("seed", seeds(60))
def test_copies_are_equal_after_any_kills(names: tuple[TrailName, TrailName], seed: int) -> None:
    source, target = names
    dice = random.Random(seed)
    writing = Writing(source, dice)
    saved: TrailPosition | None = None
    for _ in range(dice.randint(1, 6)):
        writing.some()
        session = Forward(source, target, saved)
        for _ in range(dice.randint(0, 30)):
            if not session.step(dice.choice([300, 3000, 1 << 20])):
                writing.some()
            if dice.random() < 0.2:
                session.flush()
        saved = session.saved
        session.close()
        tear(target, dice)
    forward(source, target, saved)
    assert read_all(target) == read_all(source)
    assert digest(target) == digest(source)


@pytest.mark.parametrize("seed", seeds(120))
def test_every_row_arrives_once_however_copying_and_encoding_alternate(
    names: tuple[TrailName, TrailName], seed: int
) -> None:
    source, target = names
    dice = random.Random(1000 + seed)
    writing = Writing(source, dice)
    saved: TrailPosition | None = None
    for _ in range(dice.randint(1, 6)):
        writing.some()
        session = Forward(source, target, saved, dice.choice([700, 4000, BIG]))
        for _ in range(dice.randint(0, 30)):
            encodes = dice.random() < 0.2
            if not session.step(dice.choice([300, 3000, 1 << 20]), encodes=encodes):
                writing.some()
            chance = dice.random()
            if chance < 0.1:
                session.flush()
            elif chance < 0.15:
                session.writer.rollover()
        saved = session.saved
        session.close()
        tear(target, dice)
    forward(source, target, saved)
    assert read_all(target) == read_all(source)


def test_a_file_that_was_copied_is_never_continued_with_encoded_rows(names: tuple[TrailName, TrailName]) -> None:
    source, target = names
    writer = open_writer(source)
    for csn in range(1, 4):
        writer.write(small(csn))
        writer.flush()
    session = Forward(source, target, None)
    session.step(300)
    copied = target.file(0)
    session.flush()
    size = copied.stat().st_size
    while session.step(300, encodes=True):
        pass
    session.close()
    assert target.sequences() == [0, 1]
    assert copied.read_bytes() == source.file(0).read_bytes()[:size]
    assert read_all(target) == read_all(source)


def test_the_next_source_file_is_copied_after_encoded_rows_with_its_own_number(
    names: tuple[TrailName, TrailName],
) -> None:
    source, target = names
    writer = open_writer(source)
    for csn in range(1, 4):
        writer.write(small(csn))
        writer.rollover()
    session = Forward(source, target, None)
    session.step()
    session.step(encodes=True)
    session.finish()
    assert target.sequences() == [0, 1, 2]
    assert digest(target)[0] == digest(source)[0]
    assert target.file(2).read_bytes()[-100:] == source.file(2).read_bytes()[-100:]
    header = decode_header(target.file(2).read_bytes())
    assert header.previous_size == target.file(1).stat().st_size
    assert header.uri == decode_header(source.file(2).read_bytes()).uri
    assert read_all(target) == read_all(source)


def test_a_limit_below_the_size_of_the_source_file_begins_a_new_file(names: tuple[TrailName, TrailName]) -> None:
    source, target = names
    writer = open_writer(source)
    for csn in range(1, 40):
        writer.write(small(csn, 10, 50))
        writer.flush()
    session = Forward(source, target, None, 5000)
    while session.step(2000):
        pass
    session.close()
    assert len(target.sequences()) > 1
    assert max(target.file(seqno).stat().st_size for seqno in target.sequences()) < 10_000
    assert read_all(target) == read_all(source)


def test_a_restart_of_the_source_is_copied_although_no_row_follows(names: tuple[TrailName, TrailName]) -> None:
    source, target = names
    writer = open_writer(source)
    writer.write(small(1))
    writer.flush()
    session = Forward(source, target, None)
    while session.step():
        pass
    writer.close()
    open_writer(source).close()
    assert not session.step()
    session.close()
    assert digest(target) == digest(source)


def test_a_trail_that_does_not_begin_with_file_0_is_copied_to_file_0(names: tuple[TrailName, TrailName]) -> None:
    source, target = names
    writer = open_writer(source)
    writer.write(small(1))
    writer.rollover()
    writer.write(small(2))
    writer.flush()
    source.file(0).unlink()
    forward(source, target, TrailPosition(1, 0))
    assert target.sequences() == [0]
    assert read_all(target) == read_all(source, TrailPosition(1, 0))
    size = len(source.file(1).read_bytes())
    assert len(target.file(0).read_bytes()) == size
    assert PRODUCER.group == decode_header(target.file(0).read_bytes()).producer


def test_the_header_of_a_copy_differs_in_number_size_before_and_checksum_only(
    names: tuple[TrailName, TrailName],
) -> None:
    source, _ = names
    writer = open_writer(source)
    writer.write(small(1))
    writer.rollover()
    writer.write(small(2))
    writer.flush()
    before = source.file(1).read_bytes()
    header = before[: header_size(before)]
    adapted = adapted_header(header, 7, 123_456)
    assert len(adapted) == len(header)
    wanted = decode_header(header)._replace(seqno=7, previous_size=123_456)
    assert decode_header(adapted) == wanted
    assert adapted_header(adapted, 1, decode_header(header).previous_size) == header
