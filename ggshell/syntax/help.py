"""Pages of the manual as pieces of styled text: a terminal colours them, and without their styles they are the plain page.

Styles: ``title``, ``heading``, ``fact`` (its name), ``keyword``, ``slot``, ``mark`` (of the notation), ``code`` (an example or
a word in backticks), ``text``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ggshell.syntax import pages

KINDS = ("commands", "parameters", "functions", "logdump", "topics")
_PART = re.compile(
    r"(?P<keyword>@?[A-Z][A-Z0-9_$#]*(?:\[[A-Z0-9_]+\])?(?![a-z\w]))|(?P<slot>[a-z][a-z0-9_-]*)|(?P<mark>\[|\]|[{}|]|\.\.\.)"
    r"|(?P<text>[^\[\]{}|A-Za-z@]+|.)"
)
_CODE = re.compile(r"`([^`]+)`")
_TERMS = ("Options", "Arguments", "Values", "Not yet")


class Fragment(NamedTuple):
    """A piece of text and how it is shown."""

    style: str
    text: str


Line = list[Fragment]


def notation(text: str) -> Line:
    """A syntax line in pieces."""
    return [Fragment(str(part.lastgroup), part[0]) for part in _PART.finditer(text)]


def find(subject: str) -> list[Path]:
    """The pages about a subject: those of that name in each kind with all actions below it, else those that begin with it,
    else with fewer of its words (``ADD EXTRACT ext1`` finds ADD EXTRACT)."""
    words = re.findall(r"[^\s;,]+", subject.lower().replace("@", ""))
    kinds = ("functions",) if "@" in subject else KINDS
    indexes = [pages.index(kind) for kind in kinds]
    for size in range(len(words), 0, -1):
        stem = "_".join(words[:size])
        exact = [index[stem] for index in indexes if stem in index]
        below = [path for index in indexes for name, path in index.items() if name.startswith(f"{stem}_")]
        if exact:
            return exact if size == 1 else exact + below
        near = below or [path for index in indexes for name, path in index.items() if name.startswith(stem)]
        if near:
            return near
    return []


def fragments(paths: list[Path]) -> list[Fragment]:
    """Pages in pieces, one behind the other, with line ends among them."""
    found: list[Fragment] = []
    for path in paths:
        if found:
            found.append(Fragment("text", "\n"))
        for line in _page(path.read_text(encoding="utf-8")):
            found += [*line, Fragment("text", "\n")]
    return found


def plain(found: list[Fragment]) -> str:
    """The text without styles."""
    return "".join(fragment.text for fragment in found)


def _page(text: str) -> Iterator[Line]:
    section = ""
    for line in text.rstrip().splitlines():
        if line.startswith("# "):
            yield [Fragment("title", line[2:].strip())]
        elif line.startswith("## "):
            section = line[3:].strip()
            yield [Fragment("heading", section)]
        elif section == "Syntax" and line.startswith("    "):
            indent = len(line) - len(line.lstrip())
            yield [Fragment("text", line[:indent]), *notation(line[indent:])]
        elif section in _TERMS:
            yield _term(line)
        elif section in ("Examples", "See") and line.startswith("    "):
            yield [Fragment("code" if section == "Examples" else "text", line)]
        else:
            yield _prose(line)


def _term(line: str) -> Line:
    """A line of options: the option itself, or what is said of it."""
    if not line.strip():
        return []
    if line.startswith((":", " ")) and not re.match(r"    [A-Za-z_ ]+:", line):
        return [Fragment("text", "        "), *_prose(line.lstrip(": "))]
    name, colon, rest = line.strip().partition(":")
    return [Fragment("text", "    "), *notation(name), *([Fragment("text", colon + rest)] if colon else [])]


def _prose(line: str) -> Line:
    """A line of sentences, with words in backticks; a fact ``- Name: value`` with its name."""
    found: Line = []
    fact = re.match(r"- (\w+):", line)
    if fact is not None:
        found = [Fragment("text", "  "), Fragment("fact", f"{fact[1]}:")]
        line = line[fact.end() :]
    place = 0
    for match in _CODE.finditer(line):
        found += [Fragment("text", line[place : match.start()]), Fragment("code", match[1])]
        place = match.end()
    return [fragment for fragment in [*found, Fragment("text", line[place:])] if fragment.text]
