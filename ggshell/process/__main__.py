"""``python -m ggshell.process extract|path|replicat|manager --home DIR [--group NAME]``: the entry of every process."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

from ggshell.errors import GgsError, UsageError
from ggshell.store.home import Home

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy's linear algebra is not used: no idle threads for it
KINDS = ("extract", "path", "replicat", "manager")


def main(arguments: list[str]) -> int:
    """Run one process until it ends; its exit code."""
    return run_as(arguments, _run)


def _run(kind: str, home: Home, group: str) -> int:
    room = importlib.import_module(f"ggshell.process.{kind}")  # each loads only what it needs
    return int(room.run(home) if kind == "manager" else room.run(home, group))


def run_as(arguments: list[str], body: Callable[[str, Home, str], int]) -> int:
    """Run what the arguments name; its exit code, and one line for an error before it came to run."""
    try:
        return body(*_parse(arguments))
    except GgsError as error:
        sys.stderr.write(f"{error.code}  {error}\n")
        return 2 if isinstance(error, UsageError) else 1


def _parse(arguments: list[str]) -> tuple[str, Home, str]:
    kind = arguments[0] if arguments else ""
    given = dict(zip(arguments[1::2], arguments[2::2], strict=False))
    complete = "--home" in given and (kind == "manager" or "--group" in given)
    if kind not in KINDS or len(arguments) % 2 == 0 or not complete:
        raise UsageError(f"usage: {' | '.join(KINDS)} --home DIR [--group NAME]")
    return kind, Home(Path(given["--home"])), given.get("--group", "")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
