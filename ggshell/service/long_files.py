"""Long files in answers: the part of a report or a log that a request asks for."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ggshell.errors import NotFoundError, UsageError
from ggshell.home.last_part import MOST_BYTES, part_of
from ggshell.service.call import Call

PART_QUERY: Final = {
    "offset": f"where the part of the file begins, in bytes; without it, the end of the file. A part has at most {MOST_BYTES} "
    "bytes, and a line names the omitted part"
}


def requested_part(call: Call, path: Path) -> str:
    """Return the part of a file that a request asks for. Raises UsageError for an offset that is not valid, NotFoundError."""
    text = call.request.query.get("offset", "")
    if text and not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise UsageError(f"offset is {text[:40]!a}, not a number")
    return shown_part(path, int(text) if text else None)


def shown_part(path: Path, offset: int | None = None) -> str:
    """Return the end of a file, or its part at an offset. Raises NotFoundError."""
    try:
        return part_of(path, offset)
    except OSError as error:
        raise NotFoundError(f"cannot read {path}: {error.strerror}") from error
