"""Entry point of all processes: ``python -m ggshell.groups KIND --home DIR [--group NAME]``."""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ggshell.errors import OUT_OF_MEMORY, GgsError, UsageError
from ggshell.files import close_to_others
from ggshell.home.home import Home

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy's linear algebra is not used; do not start threads for it
KINDS = ("extract", "path", "recvpath", "replicat", "manager", "service", "maintain")
_ALONE = ("manager", "service")


def main(arguments: list[str]) -> int:
    """Run one process until it ends; return its exit code."""
    return run_as(arguments, _run)


def _run(kind: str, home: Home, group: str) -> int:
    with without_collection():
        module = importlib.import_module(f"ggshell.groups.{kind}")  # each process loads only the modules that it needs
    return int(module.run(home) if kind == "manager" else module.run(home, group))


@contextmanager
def without_collection() -> Iterator[None]:
    """Load modules without garbage collection, and exclude them from later ones: a tenth less CPU time at startup."""
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        gc.enable()


def run_as(arguments: list[str], body: Callable[[str, Home, str], int]) -> int:
    """Parse the arguments and run ``body``; return the exit code. An error at startup is printed with its hint."""
    close_to_others()
    try:
        return body(*_parse(arguments))
    except MemoryError:
        sys.stderr.write(f"GGS-00807  {OUT_OF_MEMORY}\n")
        return 1
    except GgsError as error:
        hint = f"\n  Hint: {error.hint}" if error.hint else ""
        sys.stderr.write(f"{error.code}  {error.located}{hint}\n")
        return 2 if isinstance(error, UsageError) else 1


def _parse(arguments: list[str]) -> tuple[str, Home, str]:
    kind = arguments[0] if arguments else ""
    given = dict(zip(arguments[1::2], arguments[2::2], strict=False))
    complete = "--home" in given and (kind in _ALONE or "--group" in given)
    if kind not in KINDS or len(arguments) % 2 == 0 or not complete:
        raise UsageError(f"usage: {' | '.join(KINDS)} --home DIR [--group NAME]")
    return kind, Home(Path(given["--home"])), given.get("--group", "")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
