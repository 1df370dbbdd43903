"""``ggshell extract paramfile FILE [reportfile FILE]`` and ``ggshell service``: run a process in the foreground."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from ggshell.errors import UsageError
from ggshell.home.home import Home

PROGRAMS = ("extract", "replicat")
_WORDS = {"paramfile": "parameters", "pf": "parameters", "reportfile": "report", "rf": "report"}


class HomeByHand(Home):
    """A home whose group uses the files given on the command line."""

    by_hand = True

    def __init__(self, root: Path, parameters: Path, report: Path | None) -> None:
        super().__init__(root)
        self._given_parameters = parameters.absolute()
        self._given_report = report.absolute() if report is not None else None

    def parameters(self, group: str) -> Path:
        return self._given_parameters

    def report(self, group: str, age: int | None = None) -> Path:
        if self._given_report is None:
            return super().report(group, age)
        name = self._given_report
        return name if age is None else name.with_name(f"{name.stem}{age}{name.suffix}")


def run(home: str, words: Sequence[str]) -> int:
    """Run a group until it ends or Ctrl-C stops it, and return the exit code.

    Raises UsageError, and the errors that prevent the start.
    """
    if words[0] == "service":
        return _run_service(Path(home))
    program, files = words[0].lower(), _files(words)
    if "parameters" not in files:
        raise UsageError(
            f"{program} requires a parameter file", hint=f"ggshell {program} paramfile FILE reportfile FILE"
        )
    root = Path(home)
    parameters = _existing(root, files["parameters"])
    by_hand = HomeByHand(root, parameters, Path(files["report"]) if "report" in files else None)
    from ggshell.parameters.loading import load_extract, load_replicat

    group = (load_extract if program == "extract" else load_replicat)(parameters, "").group
    code = int(import_module(f"ggshell.groups.{program}").run(by_hand, group))
    if code:
        sys.stderr.write(f"{program.upper()} {group} abended: see {by_hand.report(group)}\n")
    return code


def _run_service(root: Path) -> int:
    """Replace this process by the service, as Manager starts it; it returns only if that fails."""
    import os

    from ggshell.groups.launch import SERVICE_PROGRAM

    os.execv(sys.executable, [sys.executable, "-P", "-m", SERVICE_PROGRAM, "service", "--home", str(root.absolute())])  # noqa: S606


def _files(words: Sequence[str]) -> dict[str, str]:
    """Parse ``paramfile FILE reportfile FILE``, in any order."""
    found: dict[str, str] = {}
    for word, value in zip(words[1::2], words[2::2], strict=False):
        name = _WORDS.get(word.lower())
        if name is None:
            raise UsageError(f"unknown word {word}", hint="paramfile FILE, reportfile FILE")
        found[name] = value
    if len(words) % 2 == 0:
        raise UsageError(f"{words[-1]} requires a file")
    return found


def _existing(root: Path, name: str) -> Path:
    """Resolve a path relative to the current folder if the file exists there, or else to the home."""
    path = Path(name)
    return path if path.exists() or path.is_absolute() else root / path
