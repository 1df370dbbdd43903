"""``interpreters``: the same work with the Python of this environment and with another one, which GGSHELL_BENCH_PYTHON names.

The other Python needs an environment with this checkout. Each piece of work runs in a new process and reports the seconds
that it took, without the start of the process where the work is not a start.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from benches import language
from benches.figures import Figure, alternate, less_is_better
from benches.ground import Failed

OTHER: Final = "GGSHELL_BENCH_PYTHON"
_VERSION: Final = "import platform; print(platform.python_implementation(), platform.python_version())"
_TRAIL: Final = """
import sys
from pathlib import Path
from benches import trail
from ggshell.trail.name import TrailName
print(trail.write_trail(TrailName(Path(sys.argv[1]), "tr"), int(sys.argv[2])))
"""
_SCAN: Final = """
import sys
from pathlib import Path
from benches import trail
from ggshell.trail.name import TrailName
print(trail.scan(TrailName(Path(sys.argv[1]), "tr").file(0), int(sys.argv[2])))
"""
_CHECK: Final = """
import sys, time
from benches import language
from ggshell.check.cli import check_sources
text = language.script(int(sys.argv[2]))
began = time.perf_counter()
check_sources([("script.oby", text)])
print(time.perf_counter() - began)
"""
_REDO: Final = """
import sys
from pathlib import Path
from benches import redo
changes = redo.changes(Path(sys.argv[1]) / "redo")
print(len(changes) / redo.parsed(changes))
"""
_REDO_LOG: Final = """
import sys
from pathlib import Path
from benches import redo
redo.write_log(Path(sys.argv[1]) / "redo", float(sys.argv[2]))
"""


def run(rounds: int, quick: bool) -> list[Figure]:
    """Without another Python, nothing can be compared. Raises Failed."""
    if OTHER not in os.environ:
        raise Failed(f"set {OTHER} to a Python with this checkout of ggshell")
    with tempfile.TemporaryDirectory(prefix="ggshell-bench-") as name:
        sides = [_Side(sys.executable, Path(name), quick), _Side(os.environ[OTHER], Path(name), quick)]
        sides[0].prepare()
        return [figure for case, seconds in _WORK.items() for figure in _figures(case, seconds, sides, rounds)]


def _figures(case: str, seconds: Callable[[_Side], float], sides: list[_Side], rounds: int) -> list[Figure]:
    for side in sides:
        seconds(side)  # what is compiled once is not measured
    ours, others = alternate(rounds, *((lambda _, side=side: seconds(side)) for side in sides))
    return [less_is_better("interpreters", case, "s", others, ours, sides[0].version, None)]


class _Side:
    """An interpreter, and the folder of its files."""

    def __init__(self, python: str, folder: Path, quick: bool) -> None:
        self._python = python
        self._folder = folder
        self._quick = quick
        self.version = self._output("-c", _VERSION)

    def prepare(self) -> None:
        """Create what both sides read."""
        (self._folder / "redo").mkdir()
        self._output("-c", _REDO_LOG, str(self._folder), "20" if self._quick else "120")
        self._output("-m", "ggshell", "--home", str(self._folder / "home"), "-c", "CREATE SUBDIRS")
        self._output("-c", _TRAIL, str(self._folder), str(self._rows))

    @property
    def _rows(self) -> int:
        return 100_000 if self._quick else 1_000_000

    def start(self) -> float:
        began = time.perf_counter()
        self._output("-m", "ggshell", "--home", str(self._folder / "home"), "-c", "INFO ALL")
        return time.perf_counter() - began

    def check(self) -> float:
        return self._seconds(_CHECK, language.LINES)

    def write(self) -> float:
        with tempfile.TemporaryDirectory(dir=self._folder) as folder:
            return float(self._output("-c", _TRAIL, folder, str(self._rows)))

    def scan(self) -> float:
        return self._seconds(_SCAN, self._rows)

    def redo(self) -> float:
        return self._seconds(_REDO)

    def _seconds(self, code: str, number: int = 0) -> float:
        return float(self._output("-c", code, str(self._folder), str(number)))

    def _output(self, *words: str) -> str:
        scripts = str(Path(__file__).parents[1])
        done = subprocess.run(
            [self._python, *words],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": scripts},
        )
        if done.returncode:
            raise Failed(f"{self._python}: exit code {done.returncode}\n{done.stderr}")
        return done.stdout.strip()


_WORK: Final[dict[str, Callable[[_Side], float]]] = {
    "`INFO ALL`, a new process": _Side.start,
    "check, 10,000 lines": _Side.check,
    "a trail, written": _Side.write,
    "a trail, scanned, own columns": _Side.scan,
    "SQL_REDO to columns": _Side.redo,
}
