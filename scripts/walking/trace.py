"""The files of the package that a thread enters, in order; cut into pieces where a function that divides the work is called."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import ggshell

Function = tuple[str, str]
"""A file of the package, and a function's name."""
NONE: Function = ("", "")
PACKAGE = str(Path(ggshell.__file__).parent) + "/"


_IMPORT = "_find_and_load"
"""Python's own function that loads a module: what runs below it is not a part of the work."""


class Walk(NamedTuple):
    """A piece of work: the files that it enters, each time that it comes from another one; ``modules`` that were loaded."""

    path: tuple[str, ...]
    modules: int = 0

    @property
    def files(self) -> list[str]:
        """Each file once, in the order in which they were first entered."""
        return list(dict.fromkeys(self.path))

    @property
    def hops(self) -> int:
        return len(self.path)


class Tracer:
    """Follows one thread through pieces of work.

    ``divider``: file and function whose call ends a piece and begins the next. ``within``: a piece is one call of it, and
    nothing else counts.
    """

    def __init__(self, divider: Function = NONE, within: Function = NONE) -> None:
        self._divider, self._within = divider, within
        self._frame: FrameType | None = None
        self._import: FrameType | None = None
        self._now: list[str] = []
        self.pieces: list[list[str]] = [self._now]

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        if event == "return":
            self._frame = None if frame is self._frame else self._frame
            self._import = None if frame is self._import else self._import
        if event != "call" or self._import is not None:
            return
        code = frame.f_code
        if code.co_name == _IMPORT:
            self._import = frame
        if not code.co_filename.startswith(PACKAGE):
            return
        name = code.co_filename[len(PACKAGE) :]
        called = (name, code.co_name)
        if called == self._divider or (called == self._within and self._frame is None):
            self._now = []
            self.pieces.append(self._now)
            self._frame = frame
        if (self._within == NONE or self._frame is not None) and (not self._now or self._now[-1] != name):
            self._now.append(name)

    @contextmanager
    def on(self) -> Iterator[None]:
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(None)


def traced_run(tracer: Tracer, body: Callable[[], int], result: Path) -> int:
    """Run a program's body under a tracer; writes its pieces, and how many modules of the package it loaded."""
    with tracer.on():
        code = body()
    modules = sum(name.partition(".")[0] == "ggshell" for name in sys.modules)
    result.write_text(json.dumps({"pieces": tracer.pieces, "modules": modules}))
    return code


def pieces_of(result: Path) -> tuple[list[list[str]], int]:
    """What ``traced_run`` has written."""
    found = json.loads(result.read_text())
    return found["pieces"], found["modules"]
