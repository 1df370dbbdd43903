"""``ggshell logdump [TRAILFILE]``: a session at the terminal, from a heredoc, or of ``-c`` statements and obey files."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ggshell import __version__
from ggshell.clock import SystemClock
from ggshell.errors import GgsError, StatementError, UsageError
from ggshell.logdump import data, layout
from ggshell.logdump.answers import Answer
from ggshell.logdump.registry import actions
from ggshell.logdump.session import Session
from ggshell.syntax import grammar
from ggshell.syntax.statement import without_comment

USAGE = """usage: ggshell logdump [--format text|json] [--no-shell] [-c STATEMENT]... [TRAILFILE]

Looks at trail files.  Without -c statements are read from the terminal or from standard input; HELP lists them.
"""
DEEPEST = 16
_NOTICE_SECONDS = 0.5


def main(arguments: Sequence[str]) -> int:
    """Run Logdump; its exit code: 0, or 1 when a statement failed outside a session."""
    options = _options(list(arguments))
    if options is None:
        sys.stdout.write(USAGE)
        return 0
    as_json, shell, statements, file = options
    session = Session(SystemClock(), _Progress() if sys.stderr.isatty() else None)
    session.shell = shell
    talk = Talk(session, as_json=as_json)
    try:
        if statements:
            first = [f"OPEN {file}"] if file else []
            return int(sum(not talk.say(text) for text in (*first, *statements)) > 0)
        return _converse(talk, file)
    finally:
        session.close()


def _options(words: list[str]) -> tuple[bool, bool, list[str], str] | None:
    """(JSON or not, whether X may run, statements, trail file); None when help is wanted.  Raises UsageError."""
    form, shell, statements, files = "text", True, list[str](), list[str]()
    while words:
        word = words.pop(0)
        if word in ("--help", "-h"):
            return None
        if word == "--no-shell":
            shell = False
        elif word in ("--format", "-c") and words:
            value = words.pop(0)
            if word == "-c":
                statements += [line for line in value.splitlines() if line.strip()]
            else:
                form = value
        elif word.startswith("-"):
            raise UsageError(f"logdump does not take {word}", hint="ggshell logdump --help")
        else:
            files.append(word)
    if len(files) > 1 or form not in ("text", "json", "ggsci"):
        raise UsageError("logdump takes one file, and the formats text and json", hint="ggshell logdump --help")
    return form == "json", shell, statements, files[0] if files else ""


class Talk:
    """Statements to answers, written as they come."""

    def __init__(self, session: Session, *, as_json: bool = False) -> None:
        self._session = session
        self._json = as_json
        self._depth = 0

    @property
    def session(self) -> Session:
        return self._session

    def say(self, line: str) -> bool:
        """Carry out one statement; whether it went well.  Errors are written, never raised."""
        text = without_comment(line).strip()
        if not text:
            return True
        self._session.history.append(text)
        try:
            for answer in self._answers(text):
                self._write(data.json_lines(answer) if self._json else layout.text(answer, self._session.display))
        except GgsError as error:
            where = (
                f"  {text}\n  {' ' * (error.column - 1)}^\n"
                if isinstance(error, StatementError) and error.column
                else ""
            )
            self._write(f"{'' if self._json else where}ERROR: {error}\n", error=True)
            return False
        except KeyboardInterrupt:
            self._write("interrupted\n", error=True)
            return False
        return True

    def _answers(self, text: str) -> Iterable[Answer]:
        parsed = grammar.parse(text.rstrip(";") if not text.upper().startswith("FILTER") else text, grammar.LOGDUMP)
        if parsed.notes:
            raise UsageError(parsed.notes[0].about(parsed.key), code="GGS-00103")
        if parsed.key in ("OBEY", "O"):
            self._obey(Path(parsed.args["file"]))
            return ()
        if parsed.key == "FC":
            return self._again(str(parsed.args.get("rest", "")))
        function, bound = actions()[parsed.key]
        return function(self._session, *bound, **parsed.args)

    def _obey(self, path: Path) -> None:
        if self._depth >= DEEPEST:
            raise UsageError(f"OBEY goes deeper than {DEEPEST}", hint="does the file name itself?")
        try:
            lines = path.read_text(encoding="utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"cannot read {path}: {getattr(error, 'strerror', None) or 'it is not UTF-8'}") from None
        self._depth += 1
        try:
            for line in lines:
                self.say(line)
        finally:
            self._depth -= 1

    def _again(self, which: str) -> Iterable[Answer]:
        """A statement of the history once more, by its number or its beginning; the last one without."""
        before = self._session.history[:-1]
        wanted = which.strip().upper()
        if wanted.isdigit() and 0 < int(wanted) <= len(before):
            return self._answers(before[int(wanted) - 1])
        found = [text for text in before if text.upper().startswith(wanted) and not text.upper().startswith("FC")]
        if not found:
            raise UsageError(f"the history has no {which or 'statement'}", hint="HISTORY lists it")
        return self._answers(found[-1])

    def _write(self, text: str, *, error: bool = False) -> None:
        stream = sys.stderr if error and self._json else sys.stdout
        stream.write(text)
        stream.flush()
        if self._session.log is not None:
            with self._session.log.open("a", encoding="utf-8") as log:
                log.write(text)


class _Progress:
    """A line on the terminal once a look takes long."""

    def __init__(self) -> None:
        self._next = time.monotonic() + _NOTICE_SECONDS
        self._calls = 0

    def __call__(self, done: int, size: int) -> None:
        self._calls += 1
        if self._calls & 0xFFF:
            return
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _NOTICE_SECONDS
            sys.stderr.write(f"\r{done * 100 // max(1, size):>3} % of {size >> 20} MB\r")
            sys.stderr.flush()


def _converse(talk: Talk, file: str) -> int:
    """A session: banner, prompts, statements to the end of the input or EXIT; 1 when the file cannot be opened."""
    if sys.stdin.isatty():
        import readline  # noqa: F401 - history and editing of the line

    sys.stdout.write(f"\nggshell Log File Dump Utility\nVersion {__version__}\n\n\n")
    if file and not talk.say(f"OPEN {file}"):
        return 1
    for line in _typed(talk):
        talk.say(line)
        if talk.session.finished:
            break
    return 0


def _typed(talk: Talk) -> Iterator[str]:
    while True:
        prompt = f"Logdump {len(talk.session.history) + 1} >"
        try:
            yield input(prompt)
        except EOFError:
            sys.stdout.write("\n")
            return
        except KeyboardInterrupt:
            sys.stdout.write("\n")
