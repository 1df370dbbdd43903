"""Parts of long text files: what the service returns of reports and logs, which can be larger than its memory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

MOST_BYTES: Final = 4 << 20
"""How much of a file one answer has. An answer needs several times as much memory."""


def part_of(path: Path, offset: int | None = None, most: int = MOST_BYTES) -> str:
    """Return whole lines of a file, at most ``most`` bytes, with a line that says what is left out.

    ``offset``: where the part begins, in bytes; None for the end of the file. Raises OSError.
    """
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        begin = max(0, size - most) if offset is None else min(offset, size)
        file.seek(begin)
        data = file.read(most)
    if offset is None:
        return _end_of(path, data, size - len(data))
    more = begin + len(data) < size
    if more:
        data = data[: data.rfind(b"\n") + 1] or data
    text = data.decode(errors="replace")
    return f"{text}(continues at offset={begin + len(data)}: the file has {size} bytes)\n" if more else text


def _end_of(path: Path, data: bytes, left_out: int) -> str:
    if not left_out:
        return data.decode(errors="replace")
    _, newline, rest = data.partition(b"\n")
    if newline:
        left_out, data = left_out + len(data) - len(rest), rest
    return (
        f"(the first {left_out} bytes are omitted: read {path} on the machine of the home, or its parts with a GET request "
        f"and offset=0)\n{data.decode(errors='replace')}"
    )
