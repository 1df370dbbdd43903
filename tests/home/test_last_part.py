"""Parts of long files: whole lines, all of them in order, and a line that says what is left out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ggshell.home.last_part import part_of

LINES = [f"line {number} {'é' * (number % 7)}\n" for number in range(500)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "EXT1.rpt"
    found.write_text("".join(LINES))
    return found


@pytest.mark.parametrize("most", [100, 101, 102, 1000])
def test_the_end_of_a_file_says_what_is_left_out(path: Path, most: int) -> None:
    notice, *lines = part_of(path, most=most).splitlines(keepends=True)
    assert lines == LINES[-len(lines) :]
    left_out = path.stat().st_size - len("".join(lines).encode())
    assert notice.startswith(f"(the first {left_out} bytes are omitted: read {path}")
    assert most - 40 < len("".join(lines).encode()) <= most


@pytest.mark.parametrize("most", [100, 101, 1000, 1 << 20])
def test_the_parts_of_a_file_are_the_file(path: Path, most: int) -> None:
    text, offset = "", 0
    while True:
        part = part_of(path, offset, most)
        more = re.fullmatch(r"(.*)\(continues at offset=(\d+): the file has \d+ bytes\)\n", part, re.DOTALL)
        if more is None:
            break
        text, offset = text + more[1], int(more[2])
    assert text + part == path.read_text()
    assert part_of(path, 10**12) == ""


def test_a_short_file_and_a_long_line_are_returned(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("a\nb\n")
    assert part_of(path) == "a\nb\n"
    path.write_text("x" * 100)
    assert part_of(path, most=10).endswith("offset=0)\n" + "x" * 10)
    assert part_of(path, 0, 10).startswith("x" * 10 + "(continues at offset=10")
