"""Completion for the prompt: what the grammar expects at the cursor, and the names that are there now."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from ggshell.errors import GgsError
from ggshell.shell.live_names import LiveNames
from ggshell.syntax.expect import expected, partial_word
from ggshell.syntax.grammar import LOGDUMP

_SECRET = "password"  # noqa: S105 - a placeholder's name


class Candidate(NamedTuple):
    """A completion: the text, what it is, and how much of what is typed it takes the place of."""

    text: str
    about: str
    replaces: int


def statement_before(text: str) -> str:
    """The part of a text that is the statement at its end."""
    flat = re.sub(r"&[ \t]*\n", "  ", text)
    last = re.split(r"[;\n]", flat)[-1]
    watched = re.match(r"\s*WATCH\s+\d+\s+(.*)", last, re.IGNORECASE | re.DOTALL)
    return (watched[1] if watched else last).lstrip()


def candidates(text: str, names: LiveNames) -> Iterator[Candidate]:
    """Completions at the end of a text: keywords in the case that the user types, then names."""
    statement = statement_before(text)
    partial = partial_word(statement, len(statement))
    typed = statement[: len(statement) - len(partial)].replace(",", " ").split()
    lower = (partial or "".join(typed)).islower()
    for each in expected(statement, len(statement)):
        if each.word and each.word.startswith(partial.upper()) and each.word[0].isalpha():
            yield Candidate(each.word.lower() if lower else each.word, "", len(partial))
        elif each.slot and each.slot != _SECRET:
            for name in names.of(each.slot, typed):
                if name.lower().startswith(partial.lower()):
                    yield Candidate(name, each.slot.replace("_", " "), len(partial))


class DumpCompleter(Completer):
    """What Logdump's grammar expects at the cursor."""

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        text = document.text_before_cursor.split(";")[-1].lstrip()
        partial = partial_word(text, len(text))
        lower = (partial or text).islower()
        words = {each.word for each in expected(text, len(text), LOGDUMP) if each.word[:1].isalpha()}
        for word in sorted(words):
            if word.startswith(partial.upper()):
                yield Completion(word.lower() if lower else word, -len(partial))


class StatementCompleter(Completer):
    """The same for the prompt."""

    def __init__(self, names: LiveNames) -> None:
        self._names = names

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        seen: set[str] = set()
        try:
            for each in candidates(document.text_before_cursor, self._names):
                if each.text not in seen:
                    seen.add(each.text)
                    yield Completion(each.text, -each.replaces, display_meta=each.about)
        except GgsError:
            return
