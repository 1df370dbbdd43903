"""The obey files that a script runs with OBEY: ``ggshell check`` checks them where the script runs them."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from ggshell.check.facts import StatedFacts
from ggshell.check.findings import Checked
from ggshell.check.scripts import check_statement
from ggshell.errors import UsageError
from ggshell.language.statement import split


class Scripts:
    """Checks scripts and, once each, the files that they obey.

    ``given``: the files of the command line, which are checked by themselves.
    """

    def __init__(self, facts: StatedFacts, given: Iterable[str] = ()) -> None:
        self._facts = facts
        self._seen = {_real(name) for name in given}

    def check(self, text: str, file: str) -> list[Checked]:
        """Check the statements of a script, and those of the files that it obeys after their OBEY statements."""
        found: list[Checked] = []
        for statement in split(text, file):
            checked, obeyed = check_statement(statement, self._facts)
            found.append(checked)
            if obeyed:
                found += self._obeyed(obeyed, file)
        return found

    def _obeyed(self, name: str, file: str) -> list[Checked]:
        """Check a file that a script obeys. A file that is not here is not checked: it may exist in the home."""
        path = _found(name, file)
        if path is None or _real(str(path)) in self._seen:
            return []
        self._seen.add(_real(str(path)))
        return self.check(read_source(str(path)), str(path))


def read_source(name: str) -> str:
    """The text of a file, or of standard input for ``-``. Raises UsageError if it cannot be read."""
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        return data.decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise UsageError(
            f"cannot read {name}: line {line} is not valid UTF-8", hint="save the file as UTF-8"
        ) from error


def _real(name: str) -> Path:
    return Path(name).resolve()


def _found(name: str, file: str) -> Path | None:
    """The file, relative to the current folder, which is usually the home, or to the folder of the script."""
    wanted = Path(name.strip().strip("'\""))
    places = (wanted, Path(file).parent / wanted)
    return next((place for place in places if place.is_file()), None)
