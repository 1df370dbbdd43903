"""Run statements and print their results as they arrive, for sessions, ``-c`` statements and obey files.

This is the only place in Logdump that catches all exceptions: a known error is printed as a line with a hint; anything else
is a bug, which is printed in short form and saved to a file with its traceback.
"""

from __future__ import annotations

import itertools
import json
import re
import sys
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path

from ggshell.clock import local_text
from ggshell.errors import DiskError, GgsError, NotFoundError, StatementError, UsageError
from ggshell.language import grammar
from ggshell.language.fix import fixed
from ggshell.language.statement import without_comment
from ggshell.logdump import data, layout
from ggshell.logdump.answers import Answer
from ggshell.logdump.filters import SUBJECTS
from ggshell.logdump.registry import ACTIONS
from ggshell.logdump.state import LogdumpSession

DEEPEST = 16
Reader = Callable[[str], str | None]
"""Shows a prompt and returns a line; None at the end of the input."""
_PROTECTED = re.compile(r"\"[^\"]*\"?|'[^']*'?|(?<=\s)/[^/\s][^/]*/(?=[\s;]|$)")
_TO_THE_END = ("X", "WRITELOG")


class Talk:
    """A session with its output. If there is ``read``, FC shows the statement and reads edits interactively."""

    def __init__(self, session: LogdumpSession, *, as_json: bool = False, read: Reader | None = None) -> None:
        self._session = session
        self._json = as_json
        self._read = read
        self._depth = 0
        self._number = 0
        session.aside = self._show

    @property
    def session(self) -> LogdumpSession:
        return self._session

    def prompt(self) -> str:
        """Return the next prompt; its number counts the lines."""
        self._number += 1
        return f"Logdump {self._number} >"

    def converse(self, read: Reader) -> None:
        """Run statements up to the end of the input or EXIT."""
        while not self._session.finished:
            shown = self.prompt()
            line = read("" if self._json else shown)
            if line is None:
                break
            self._log(f"{shown}{line}\n")
            self.say(line)

    def say(self, line: str) -> bool:
        """Run the statements of a line; return whether all succeeded. Errors are printed, never raised."""
        return not sum(not self._say(text) for text in divided(without_comment(line)) if not self._session.finished)

    def _say(self, text: str) -> bool:
        session = self._session
        try:
            text = self._recalled(text)
            if not text:
                return True
            session.history.append(text)
            if session.progress is not None:
                session.progress.begin()
            for answer in self._answers(text):
                self._show(answer)
        except GgsError as error:
            self._failed(text, error)
        except KeyboardInterrupt:
            self._failed(text, GgsError("interrupted", code="GGS-00203"))
        except BrokenPipeError:
            raise
        except Exception as error:  # noqa: BLE001 - a bug must not end the session; the traceback goes to a file
            self._failed(text, _crash(session, text, error))
        else:
            return True
        return False

    def _answers(self, text: str) -> Iterable[Answer]:
        parsed = grammar.parse(text, grammar.LOGDUMP)
        if parsed.notes:
            raise UsageError(parsed.notes[0].about(parsed.key), code="GGS-00103")
        if parsed.key in ("OBEY", "O"):
            self._obey(Path(parsed.args["file"]))
            return ()
        function, bound = ACTIONS.find(parsed.key)
        return function(self._session, *bound, **parsed.args)

    def _obey(self, path: Path) -> None:
        if self._depth >= DEEPEST:
            raise UsageError(f"OBEY is nested deeper than {DEEPEST} levels", hint="check whether the file names itself")
        try:
            lines = path.read_text(encoding="utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"cannot read {path}: {getattr(error, 'strerror', None) or 'it is not UTF-8'}") from None
        self._depth += 1
        try:
            for line in lines:
                if self._number and not self._json:
                    self._write(f"{self.prompt()}{line}\n")
                self.say(line)
                if self._session.finished:
                    break
        finally:
            self._depth -= 1

    def _recalled(self, text: str) -> str:
        """Return the statement that FC or ``!`` recalls, else the text itself; empty if the edit was canceled."""
        word, _, rest = text.partition(" ")
        if text.startswith("!"):
            found = earlier(self._session.history, text[1:])
            self._write("" if self._json else f"{found}\n")
            return found
        if word.upper() != "FC":
            return text
        found = earlier(self._session.history, rest)
        if self._read is None or self._depth:
            return found
        while True:
            self._write(f"> {found}\n")
            marks = self._read("..")
            if marks is None or marks.strip() == "//":
                return ""
            if not marks.strip():
                return found
            found = fixed(found, marks)

    def _show(self, answer: Answer) -> None:
        if self._session.progress is not None:
            self._session.progress.end()
        self._write(data.json_lines(answer) if self._json else layout.text(answer, self._session.display))

    def _failed(self, text: str, error: GgsError) -> None:
        if self._session.progress is not None:
            self._session.progress.end()
        if self._json:
            failure = {"statement": text, "status": "error", "code": error.code}
            failure |= {"message": error.located, "hint": error.hint}
            self._write(json.dumps(failure, ensure_ascii=False) + "\n")
            return
        spot = ""
        if isinstance(error, StatementError) and error.source:
            spot = f"  {error.source}\n  {' ' * (error.column - 1)}^\n"
        self._write(f"{spot}ERROR: {error}\n")

    def _write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()
        self._log(text)

    def _log(self, text: str) -> None:
        try:
            self._session.write_log(text)
        except DiskError as error:
            sys.stdout.write(f"ERROR: {error}\n")


def divided(line: str) -> list[str]:
    """Split a line into statements at each ``;`` that is not inside quotes or slashes.

    A part that begins with a filter subject continues the preceding FILTER (``FILTER INC RECTYPE 5; FILENAME hr.*``)."""
    text = line.strip()
    if not text or text.split(None, 1)[0].upper() in _TO_THE_END:
        return [text] if text else []
    hidden = _PROTECTED.sub(lambda part: "x" * len(part[0]), text)
    edges = [-1, *(match.start() for match in re.finditer(";", hidden)), len(text)]
    found: list[str] = []
    for low, high in itertools.pairwise(edges):
        part = text[low + 1 : high].strip()
        words = part.upper().split()
        if not words:
            continue
        if found and _is_condition(words, found[-1]):
            found[-1] = f"{found[-1]}; {part}"
        else:
            found.append(part)
    return found


def _is_condition(words: list[str], before: str) -> bool:
    return before.upper().startswith("FILTER ") and words[0] in SUBJECTS | {"MATCH"} and "SHOW" not in before.upper()


def earlier(history: list[str], which: str) -> str:
    """Return a statement of the history: the last one, or by number, distance (``-2``) or beginning.

    Raises NotFoundError."""
    wanted = which.strip()
    found: str | None = None
    if not wanted:
        found = history[-1] if history else None
    elif wanted.lstrip("-").isdigit():
        number = int(wanted)
        index = number - 1 if number > 0 else len(history) + number
        found = history[index] if number and 0 <= index < len(history) else None
    else:
        found = next((text for text in reversed(history) if text.upper().startswith(wanted.upper())), None)
    if found is None:
        raise NotFoundError(f"the history has no {wanted or 'statement'}", hint="HISTORY lists it")
    return found


def _crash(session: LogdumpSession, text: str, error: Exception) -> GgsError:
    """Write a bug's traceback to a file and return the error to print; it also reports if the file cannot be written."""
    what = f"{type(error).__name__}: {' '.join(str(error).split())}"
    path = Path(f"ggshell-crash-{local_text(session.clock.now(), '%Y%m%d-%H%M%S')}.txt").absolute()
    try:
        path.write_text(f"{text}\n\n{''.join(traceback.format_exception(error))}", encoding="utf-8")
        path.chmod(0o600)
        hint = f"the full traceback is in {path}"
    except OSError as failure:
        hint = f"the traceback cannot be written to {path}: {failure.strerror}"
    return GgsError(f"internal error: {what}", code="GGS-00999", hint=hint)
