"""Syntax highlighting at the prompt: keywords, names, numbers, strings, comments.

It uses the terminal's own colors, which fit dark and light backgrounds.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.styles import Style

from ggshell.language import pages
from ggshell.language.grammar import COMMANDS

STYLE = Style.from_dict(
    {
        "keyword": "bold ansicyan",
        "unknown": "ansired",
        "string": "ansigreen",
        "number": "ansimagenta",
        "comment": "italic ansibrightblack",
        "mark": "ansiyellow",
        "bottom-toolbar": "reverse",
    }
)
_PART = re.compile(
    r"(?P<comment>--.*)|(?P<string>\"[^\"]*\"?|'[^']*'?)|(?P<number>\d[\w:/.-]*)|(?P<word>[@A-Za-z_][\w@$#./*?-]*)"
    r"|(?P<mark>[;,&!()=]+)|(?P<blank>\s+)|(?P<other>.)"
)
_WORD = re.compile(r"([A-Z@#_][A-Z0-9_@#$]*)(?:\[([A-Z0-9]+)\])?(?![a-z])")


@lru_cache(maxsize=256)
def words_of(verb: str) -> frozenset[str]:
    """All spellings of the keywords in the syntax lines of a verb; empty for an unknown verb."""
    found: set[str] = set()
    for page in pages.of_verb(COMMANDS, verb):
        for line in page.syntax:
            for least, rest in _WORD.findall(line):
                found |= {least + rest[:size] for size in range(len(rest) + 1)}
    return frozenset(found)


def colored(line: str, verb: str = "") -> StyleAndTextTuples:
    """Split a line into colored pieces; ``verb``: the verb of the statement that the line continues, or empty."""
    pieces: StyleAndTextTuples = []
    for part in _PART.finditer(line):
        kind, text = str(part.lastgroup), part[0]
        if kind == "word" and not verb:
            verb = text.upper()
            kind = "keyword" if words_of(verb) else "unknown"
        elif kind == "word":
            kind = "keyword" if text.upper() in words_of(verb) else "blank"
        elif kind == "mark" and ";" in text:
            verb = ""
        pieces.append(("" if kind in ("blank", "other") else f"class:{kind}", text))
    return pieces


class StatementLexer(Lexer):
    """Highlights statements at the prompt."""

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        lines = document.lines

        def line(number: int) -> StyleAndTextTuples:
            if number >= len(lines):
                return []
            first = number
            while first and lines[first - 1].rstrip().endswith("&"):
                first -= 1
            verb = lines[first].split()[0].upper() if first != number and lines[first].split() else ""
            return colored(lines[number], verb)

        return line
