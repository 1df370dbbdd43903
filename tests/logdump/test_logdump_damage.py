"""On any damaged file Logdump ends without a traceback, names the RBA and what was expected, and can go on."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from logdump.dumps import Dump, small_trail
from trail_kit import cut_records

STATEMENTS = ("pos first", "fileheader on", "ghdr on", "detail data", "ggstoken detail", "headertoken detail")
NAVIGATION = (
    "n 100",
    "count detail",
    "pos last rev",
    "n 100",
    "pos first",
    "sfh",
    "sfet",
    "transhist 9",
    "sfmd",
    "env",
)


def read_everything(path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Everything that Logdump prints about a file; only the project's own errors may occur."""
    dump = Dump(capsys)
    text = dump.say(f"open {path}", *STATEMENTS, *NAVIGATION)
    if dump.talk.session.is_open:
        dump.talk.session.close()
    return text


@pytest.mark.slow
def test_flipped_bits_cuts_and_moved_blocks_never_give_a_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = small_trail(tmp_path).file(0).read_bytes()[:4000]
    rng = random.Random(5)
    path = tmp_path / "zz000000000"
    for _ in range(60):
        damaged = bytearray(content)
        for _ in range(rng.choice((1, 1, 8))):
            damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        read_everything(path, capsys)
    for size in rng.sample(range(len(content)), 40):
        path.write_bytes(content[:size])
        read_everything(path, capsys)
    for _ in range(20):
        first, second = sorted(rng.sample(range(len(content)), 2))
        path.write_bytes(content[:first] + content[second:] + content[first:second])
        read_everything(path, capsys)


def test_damage_is_reported_with_its_rba_and_the_next_good_record_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = small_trail(tmp_path)
    content = bytearray(name.file(0).read_bytes())
    places = [place for place, _ in cut_records(bytes(content))]
    bad_rba, good_rba = places[3], places[4]
    content[bad_rba] ^= 0xFF
    name.file(0).write_bytes(content)
    dump = Dump(capsys)
    text = dump.say(f"open {name.file(0)}", "n 100")
    assert f"Bad record found at RBA {bad_rba} of {name.file(0)}: expected a record header token" in text
    assert f"RBA {good_rba}" in dump.say("sfh")
    assert f"Damage at RBA {bad_rba}" in dump.say("count")
    dump.talk.session.close()


@pytest.mark.parametrize(
    ("lost", "counted"),
    [((3,), 6), ((4,), 6), ((5,), 6), ((5, 6), 5), ((3, 4, 5), 5)],
    ids=["a beginning", "a middle", "an end", "an end and the next transaction", "a whole transaction"],
)
def test_a_transaction_with_damage_within_counts_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], lost: tuple[int, ...], counted: int
) -> None:
    name = small_trail(tmp_path)
    content = bytearray(name.file(0).read_bytes())
    places = [place for place, _ in cut_records(bytes(content))]
    for number in lost:
        content[places[number]] ^= 0xFF
    name.file(0).write_bytes(content)
    dump = Dump(capsys)
    for statements in (["count"], ["filter rba >= 0", "count"]):
        text = dump.say(f"open {name.file(0)}", *statements)
        assert f"Average of {counted} Transactions" in text
    dump.talk.session.close()


def test_a_changed_value_is_shown_as_damaged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = small_trail(tmp_path)
    content = name.file(0).read_bytes().replace(b"uno", b"UNO")
    name.file(0).write_bytes(content)
    dump = Dump(capsys)
    text = dump.say(f"open {name.file(0)}", "sft fieldcomp")
    assert "*** Damaged record" in text
    assert "checksum" in text
    dump.talk.session.close()


@pytest.mark.parametrize("content", [b"", b"x", b"G\1", b"\0" * 5000, b"F\0\0\10" + b"\0" * 100])
def test_a_file_that_is_not_a_trail_gives_no_traceback(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "aa000000000"
    path.write_bytes(content)
    read_everything(path, capsys)
