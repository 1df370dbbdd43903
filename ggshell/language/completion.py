"""What can follow at the cursor, by the manual's syntax lines: keywords and kinds of values.

The parser itself reads the text before the cursor. What its lines expect at the end of that text is what can follow, so
completion and parser cannot disagree.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ggshell.language import pages
from ggshell.language.grammar import COMMANDS, candidates, verbs, words_of
from ggshell.language.notation import Slot
from ggshell.language.parser import Attempt

_PARTIAL = re.compile(r"(?:\"[^\"\n]*|'[^'\n]*|[^\s,;()=!\"']+)\Z")
_QUOTED = re.compile(r"\"[^\"\n]*\"|'[^'\n]*'")


class Expectation(NamedTuple):
    """A candidate at the cursor: a keyword or the name of a placeholder, and the page that it comes from."""

    word: str
    slot: str
    page: str


def partial_word(text: str, cursor: int) -> str:
    """The part of the word at the cursor that is already typed."""
    before = text[:cursor]
    hidden = _QUOTED.sub(lambda quoted: ";" * len(quoted[0]), before)
    match = _PARTIAL.search(hidden)
    return before[match.start() :] if match else ""


def expected(text: str, cursor: int, kind: str = COMMANDS) -> list[Expectation]:
    """What can follow at the cursor, in the manual's order. Empty if the text before the cursor does not fit any line."""
    before = text[: cursor - len(partial_word(text, cursor))]
    if before.rstrip().endswith(";"):
        return []
    words = words_of(before)
    if not words:
        return [Expectation(verb, "", "") for verb in verbs(kind)] if not before.strip(" \t\r\n,") else []
    found: dict[Expectation, None] = {}
    for line, depth in candidates(words, kind, whole=False):
        if depth < len(line.leading):
            if depth == len(words):
                found.setdefault(Expectation(line.leading[depth], "", line.page))
            continue
        run = Attempt(before)
        pages.parser_of(line).parse(run)
        for leaf in run.wanted() if run.far == len(before) else ():
            is_slot = isinstance(leaf, Slot)
            found.setdefault(Expectation("" if is_slot else leaf[0], leaf[0] if is_slot else "", line.page))
    seen: dict[tuple[str, str], Expectation] = {}
    for each in found:
        seen.setdefault((each.word, each.slot), each)
    return list(seen.values())
