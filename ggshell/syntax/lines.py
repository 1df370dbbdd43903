"""The manual's syntax lines by their verbs, read without being compiled: which of them could a statement be?

A line is told by its fixed words, those that begin it and those behind a placeholder; only lines whose words all stand in the
statement are compiled, so that SEND with a hundred lines costs what one line costs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from ggshell.syntax import pages

if TYPE_CHECKING:
    from ggshell.syntax.parser import LineParser
    from ggshell.syntax.tree import Line

_WORD = re.compile(r"([A-Z@#_][A-Z0-9_@#$]*)(?:\[([A-Z0-9_]+)\])?(?![a-z\w[])")
_NAME = re.compile(r"[a-z][a-z0-9_-]*")
Spellings = frozenset[str]


class LineText(NamedTuple):
    """A syntax line as the page has it.  ``leading``: its fixed words at the begin, ``later``: those that must follow.

    ``bare``: a name follows the verb (``INFO group_name``).
    """

    text: str
    page: str
    leading: tuple[str, ...]
    spellings: tuple[Spellings, ...]
    later: tuple[Spellings, ...]
    bare: bool

    def depth(self, words: Sequence[str]) -> int:
        """How many of the leading words a statement's words are."""
        count = 0
        for word, forms in zip(words, self.spellings, strict=False):
            if word not in forms:
                break
            count += 1
        return count


def _forms(match: re.Match[str]) -> Spellings:
    least, rest = match[1], match[2] or ""
    return frozenset(least + rest[:size] for size in range(len(rest) + 1))


def line_text(text: str, page: str) -> LineText:
    """The fixed words of a syntax line."""
    leading: list[str] = []
    spellings: list[Spellings] = []
    later: list[Spellings] = []
    named = False
    place = 0
    while place < len(text):
        if text[place] == " ":
            place += 1
            continue
        word, name = _WORD.match(text, place), _NAME.match(text, place)
        if word is not None and not named:
            leading.append(word[1] + (word[2] or ""))
            spellings.append(_forms(word))
        elif word is not None:
            later.append(_forms(word))
        elif name is not None:
            named = True
        else:
            break
        place = (word or name).end()  # type: ignore[union-attr]  # one of them is there
    bare = len(leading) == 1 and bool(re.match(r"\S+ (?:\[,? ?)?[a-z]", text))
    return LineText(text, page, tuple(leading), tuple(spellings), tuple(later), bare)


@cache
def _of_page(kind: str, stem: str) -> tuple[LineText, ...]:
    return tuple(line_text(text, stem) for text in pages.read(pages.index(kind)[stem]).syntax)


@cache
def texts_of(verb: str, kind: str) -> tuple[LineText, ...]:
    """The lines that begin with a verb in any spelling, those with the most fixed words first: a keyword beats a value."""
    wanted = verb.lower()
    stems = [stem for stem in pages.index(kind) if stem == wanted or stem.startswith(f"{wanted}_")]
    found = [line for stem in stems for line in _of_page(kind, stem) if verb in line.spellings[0]]
    if not found:
        # An abbreviation, or a second name of what a page is about.
        found = [line for line in all_texts(kind) if line.spellings and verb in line.spellings[0]]
    return tuple(sorted(found, key=lambda line: -len(line.leading) - len(line.later)))


@cache
def all_texts(kind: str) -> tuple[LineText, ...]:
    """Every line of a kind of pages."""
    return tuple(line for stem in pages.index(kind) for line in _of_page(kind, stem))


@cache
def second_words(verb: str, kind: str) -> Spellings:
    """The words that are actions or things behind a verb, and so no names there."""
    lines = texts_of(verb, kind)
    return frozenset(form for line in lines if len(line.spellings) > 1 for form in line.spellings[1])


@cache
def compiled(line: LineText) -> Line:
    """The tree of a line."""
    from ggshell.syntax.notation import compile_line

    return compile_line(line.text, line.page)


@cache
def parser_of(line: LineText) -> LineParser:
    """The parser of a line."""
    from ggshell.syntax.parser import LineParser

    return LineParser(compiled(line))
