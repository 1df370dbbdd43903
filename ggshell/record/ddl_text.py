"""The text of a DDL statement, split into the command and its comments."""

from __future__ import annotations

import re
from typing import NamedTuple

_PART = re.compile(
    r"""
    (?P<line>--[^\n]*)
    | (?P<block>/\*)
    | [eE]'(?:[^'\\]|\\.|'')*(?:'|\Z)
    | '(?:[^']|'')*(?:'|\Z)
    | "(?:[^"]|"")*(?:"|\Z)
    | (?<![\w$])\$(?P<tag>[^\W\d]\w*)?\$.*?(?:\$(?P=tag)\$|\Z)
    | (?<![\w$])\$\$.*?(?:\$\$|\Z)
    | [\w$]+
    | .
    """,
    re.VERBOSE | re.DOTALL,
)
_EDGE = re.compile(r"/\*|\*/")
_BLANKS = re.compile(r"\s+")


class DdlText(NamedTuple):
    """A statement's text. ``command``: without comments; ``comments``: their texts without the comment signs."""

    command: str
    comments: tuple[str, ...] = ()


def split_comments(text: str) -> DdlText:
    """Split a statement; signs of comments in literals, quoted names and dollar-quoted bodies belong to the command.

    A space takes the place of each comment.
    """
    command: list[str] = []
    comments: list[str] = []
    place = 0
    while match := _PART.match(text, place):
        place = match.end()
        if match["line"] is not None:
            comments.append(match["line"][2:].strip())
        elif match["block"] is not None:
            place = _block_end(text, match.start())
            comments.append(text[match.end() : place].removesuffix("*/").strip())
        else:
            command.append(match[0])
            continue
        command.append(" ")
    return DdlText("".join(command).strip(), tuple(comments))


def _block_end(text: str, begin: int) -> int:
    """The end of a block comment; blocks within it are part of it. The end of the text if it is not closed."""
    depth = 0
    for edge in _EDGE.finditer(text, begin):
        depth += 1 if edge[0] == "/*" else -1
        if not depth:
            return edge.end()
    return len(text)


def has_words(text: str, words: tuple[str, ...]) -> bool:
    """Whether a text contains all words, in any order and in any case. A word with blanks is a phrase."""
    return all(_word(word).search(text) for word in words)


def _word(word: str) -> re.Pattern[str]:
    phrase = r"\s+".join(re.escape(part) for part in _BLANKS.split(word.strip()))
    return re.compile(rf"(?<!\w){phrase}(?!\w)", re.IGNORECASE)
