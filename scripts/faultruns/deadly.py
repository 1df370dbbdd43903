"""``python -m faultruns.deadly MEMBER POINT COUNT KIND --home DIR [--group NAME]``: a process that dies at a chosen point.

It is the real process; only, the function that a point names ends it by SIGKILL when it is passed for the COUNT-th time:
before it does its work, in the middle, or after.
"""

from __future__ import annotations

import functools
import importlib
import os
import signal
import sys
from collections.abc import Callable
from enum import StrEnum
from typing import Any, NamedTuple


class When(StrEnum):
    """Where in a function's work the process dies; HALF writes half of its bytes first."""

    BEFORE = "before"
    HALF = "half"
    AFTER = "after"


class Point(NamedTuple):
    """A function, by module and name, and when; ``often`` is at which passing at most; ``folder``: only for a path in there."""

    module: str
    name: str
    when: When
    often: int = 200
    folder: str = ""


_WRITER, _SAVE = "ggshell.trail.writer", ("ggshell.home.checkpoint", "save")
_FILES, _BLOCKS = "ggshell.trail.files", "ggshell.trail.blocks"
WRITING = {  # rows are encoded, or copied as bytes
    "before an append": Point(_WRITER, "TrailWriter._add", When.BEFORE),
    "within an append": Point(_FILES, "write_all", When.HALF),
    "after an append": Point(_WRITER, "TrailWriter._append_block", When.AFTER),
    "flushed, before the sync": Point("os", "fdatasync", When.BEFORE),
    "synced, before it is shown": Point("os", "fdatasync", When.AFTER),
    "before the checkpoint": Point(*_SAVE, When.BEFORE, 4),
    "after the checkpoint": Point(*_SAVE, When.AFTER, 4),
    "before a file roll": Point(_WRITER, "TrailWriter._roll", When.BEFORE, 1),
    "within a file roll": Point(_WRITER, "TrailWriter._create", When.BEFORE, 1),
    "within a new file's header": Point(_BLOCKS, "write_all", When.HALF, 1),
    "after a file roll": Point(_WRITER, "TrailWriter._roll", When.AFTER, 1),
}
_CONFIRMING = {
    "before the slot is confirmed": Point("ggshell.connectors.postgres.log", "PostgresLog.confirm", When.BEFORE, 4),
    "after the slot is confirmed": Point("ggshell.connectors.postgres.log", "PostgresLog.confirm", When.AFTER, 4),
}
_POSTGRES_WIRE, _MARIADB_WIRE = "ggshell.connectors.postgres.apply_wire", "ggshell.connectors.mysql.apply_wire"
_SENDING = {
    "before rows are sent": Point(_POSTGRES_WIRE, "ApplyPipeline._flush", When.BEFORE),
    "rows and commit are sent": Point(_POSTGRES_WIRE, "ApplyPipeline._flush", When.AFTER),
    "an answer has come": Point(_POSTGRES_WIRE, "ApplyPipeline._result", When.AFTER),
}
_SENDING_TO_MARIADB = {
    "before rows are sent to MariaDB": Point(_MARIADB_WIRE, "ApplyPipeline._send", When.BEFORE),
    "rows and commit are sent to MariaDB": Point(_MARIADB_WIRE, "ApplyPipeline._send", When.AFTER),
    "an answer of MariaDB has come": Point(_MARIADB_WIRE, "ApplyPipeline._take", When.AFTER),
}
_SAVING = {
    "before the checkpoint": Point(*_SAVE, When.BEFORE, 4),
    "after the checkpoint": Point(*_SAVE, When.AFTER, 4),
}
_PURGING = {
    "before a purge": Point("pathlib", "Path.unlink", When.BEFORE, 1, "dirdat"),
    "within a purge": Point("pathlib", "Path.unlink", When.AFTER, 1, "dirdat"),
}
Points = dict[str, dict[str, Point]]
"""Members of a chain, and the points of each by their names."""


def points(source: str, target: str) -> Points:
    """The points of a chain between two databases (``postgres``, ``mariadb``)."""
    return {
        "Extract": {**WRITING, **(_CONFIRMING if source == "postgres" else {})},
        "pump": WRITING,
        "path": WRITING,
        "Replicat": {**(_SENDING if target == "postgres" else _SENDING_TO_MARIADB), **_SAVING},
        "Manager": _PURGING,
    }


ROLLS = ("before a file roll", "within a file roll", "within a new file's header", "after a file roll")


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def arm(point: Point, count: int) -> None:
    """Have the process die at a point when it is passed for the ``count``-th time."""
    owner: Any = importlib.import_module(point.module)
    *parents, name = point.name.split(".")
    for parent in parents:
        owner = getattr(owner, parent)
    original: Callable[..., Any] = getattr(owner, name)
    left = count

    @functools.wraps(original)
    def deadly(*given: Any, **named: Any) -> Any:
        nonlocal left
        if point.folder and given[0].parent.name != point.folder:
            return original(*given, **named)
        left -= 1
        if left == 0 and point.when is When.BEFORE:
            _die()
        if left == 0 and point.when is When.HALF:
            _half(given)
            _die()
        result = original(*given, **named)
        if left == 0:
            _die()
        return result

    setattr(owner, name, deadly)


def _half(given: tuple[Any, ...]) -> None:
    """Write half of what was to be written: a descriptor and bytes."""
    descriptor, data = given[0], bytes(given[1])
    os.write(descriptor, data[: len(data) // 2])


def main(arguments: list[str]) -> int:
    """Run the process until it dies, or ends by itself."""
    member, name, count, *rest = arguments
    every = points("postgres", "postgres")[member] | points("mariadb", "mariadb")[member]
    arm(every[name], int(count))
    from ggshell.groups.__main__ import main as run

    return run(rest)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
