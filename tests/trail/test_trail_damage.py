"""Files damaged at random: every row delivered is correct, every damage is an error, and nothing hangs."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import pytest
from batches import read_rows
from trail_kit import cut_records, mark_file, read_all, small, write_trail

from ggshell.errors import TrailError
from ggshell.trail.name import TrailName
from ggshell.trail.reader import TrailReader
from ggshell.trail.recover import find_end


def change(content: bytes, rng: random.Random) -> bytes:
    """A file with one to three damages: random bytes, a hole, a repeated part, zeros, a flipped bit, a cut."""
    changed = bytearray(content)
    for _ in range(rng.choice([1, 1, 1, 3])):
        first = rng.randrange(len(changed) + 1)
        last = min(len(changed), first + rng.randrange(200))
        match rng.randrange(6):
            case 0:
                changed[first:last] = rng.randbytes(last - first)
            case 1:
                del changed[first:last]
            case 2:
                changed[first:first] = content[rng.randrange(len(content)) :][: rng.randrange(300)]
            case 3:
                changed[first:last] = bytes(last - first)
            case 4 if first < len(changed):
                changed[first] ^= 1 << rng.randrange(8)
            case _:
                del changed[first:]
    return bytes(changed)


@pytest.mark.parametrize("seed", range(4))
def test_random_damage_gives_no_wrong_row_and_only_trail_errors(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    name = TrailName(tmp_path, "ea")
    batches = [small(csn, rows=1 + csn % 4, size=csn * 7 % 60) for csn in range(1, 25)]
    write_trail(name, batches, 1500)
    good = [row for batch in batches for row in read_rows(batch)]
    files = {seqno: name.file(seqno).read_bytes() for seqno in name.sequences()}
    mark = mark_file(name).read_bytes()
    for number in range(60):
        seqno = rng.choice(list(files))
        name.file(seqno).write_bytes(change(files[seqno], rng))
        mark_file(name).write_bytes(mark if number % 2 else b"")
        rows: list[tuple[object, ...]] = []
        with contextlib.closing(TrailReader(name)) as reader:
            try:
                while (batch := reader.read(rng.choice([200, 5000, 1 << 20]))) is not None:
                    rows += read_rows(batch)
            except TrailError as error:
                assert "RBA" in str(error)
        assert rows == good[: len(rows)]
        with contextlib.suppress(TrailError):
            find_end(name)
        name.file(seqno).write_bytes(files[seqno])


def test_the_next_file_reveals_that_a_middle_file_was_cut_between_transactions(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    write_trail(name, [small(csn) for csn in range(1, 12)], 900)
    content = name.file(1).read_bytes()
    last = cut_records(content)[-2][0]
    for marked in (True, False):
        if not marked:
            mark_file(name).unlink()
        name.file(1).write_bytes(content[:last])
        with pytest.raises(TrailError, match=f"RBA {last}: expected {len(content)} bytes in this file"):
            read_all(name)
        name.file(1).write_bytes(content)
        assert len(read_all(name)) == 22
