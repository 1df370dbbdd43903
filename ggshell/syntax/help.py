"""Pages of the manual as pieces of styled text: a terminal colours them, and without their styles they are the plain page.

Styles: ``title``, ``heading``, ``fact`` (its name), ``keyword``, ``slot``, ``mark`` (of the notation), ``code`` (an example or
a word in backticks), ``text``.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ggshell.syntax import pages

KINDS = ("commands", "parameters", "functions", "logdump", "topics")
_PART = re.compile(
    r"(?P<keyword>@?[A-Z][A-Z0-9_$#]*(?:\[[A-Z0-9_]+\])?(?![a-z\w]))|(?P<slot>[a-z][a-z0-9_-]*)|(?P<mark>\[|\]|[{}|]|\.\.\.)"
    r"|(?P<text>[^\[\]{}|A-Za-z@]+|.)"
)
_FULL = 110
"""A line of a page that is longer was broken for its length."""
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
    else with fewer of its words (``ADD EXTRACT ext1`` finds ADD EXTRACT), else those with its first word in their names."""
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
    # A noun: SPARK is in INFO SPARK and START SPARK.
    return [path for index in indexes for name, path in index.items() if words and words[0] in name.split("_")]


def fragments(paths: list[Path], width: int = 0) -> list[Fragment]:
    """Pages in pieces, one behind the other, with line ends among them; lines longer than ``width`` (0: any) are broken, those
    of the syntax between options."""
    found: list[Fragment] = []
    for path in paths:
        if found:
            found.append(Fragment("text", "\n"))
        text = path.read_text(encoding="utf-8")
        for line in _page(_paragraphs(text) if width else text, width):
            found += [*line, Fragment("text", "\n")]
    return found


def plain(found: list[Fragment]) -> str:
    """The text without styles."""
    return "".join(fragment.text for fragment in found)


def _page(text: str, width: int) -> Iterator[Line]:
    section = ""
    for line in _logical(text):
        if line.startswith("# "):
            yield [Fragment("title", line[2:].strip())]
        elif line.startswith("## "):
            section = line[3:].strip()
            yield [Fragment("heading", section)]
        elif section == "Syntax" and line.startswith("    "):
            for number, part in enumerate(_between_options(line.strip(), width - 8)):
                yield [Fragment("text", "        " if number else "    "), *notation(part)]
        elif section in _TERMS:
            yield from _term(line, width)
        elif section in ("Examples", "See") and line.startswith("    "):
            yield [Fragment("code" if section == "Examples" else "text", line)]
        else:
            yield from _prose(line, width)


def _paragraphs(text: str) -> str:
    """A page with the lines of a sentence joined that only its file's width has broken, since they are broken anew."""
    found: list[str] = []
    full = False
    for line in text.splitlines():
        said = line.removeprefix(":   ")
        goes_on = full and said and (said != line) == found[-1].startswith(":   ") and said[0] not in "#-: "
        if goes_on:
            found[-1] += f" {said}"
        else:
            found.append(line)
        full = len(line) > _FULL and not line.startswith(("#", " "))
    return "\n".join(found)


def _logical(text: str) -> Iterator[str]:
    """A page's lines, those of the syntax whole, however the page breaks them."""
    section, whole = "", ""
    for line in text.rstrip().splitlines():
        deeper = section == "Syntax" and line.startswith("     ")
        if deeper:
            whole += " " + line.strip()
            continue
        if whole:
            yield whole
            whole = ""
        if section == "Syntax" and line.startswith("    "):
            whole = line
            continue
        if line.startswith("## "):
            section = line[3:].strip()
        yield line
    if whole:
        yield whole


def _between_options(line: str, width: int) -> list[str]:
    """A syntax line in parts of a width, broken where fewest brackets are open."""
    if width <= 0 or len(line) <= width:
        return [line]
    depth, best, place = 0, (len(line), len(line)), 0
    for place, letter in enumerate(line):
        if place > width:
            break
        depth += (letter in "[{") - (letter in "]}")
        if letter == " " and place > width // 4 and (depth, -place) <= (best[0], -best[1]):
            best = (depth, place)
    cut = best[1]
    return [line[:cut], *_between_options(line[cut:].lstrip(), width)] if cut < len(line) else [line]


def _broken(line: str, width: int, indent: str) -> list[str]:
    """A sentence in lines of a width, each behind an indent."""
    return [indent + part for part in textwrap.wrap(line, width - len(indent)) or [""]] if width else [indent + line]


def _term(line: str, width: int) -> Iterator[Line]:
    """Lines of options: the option itself, or what is said of it."""
    if not line.strip():
        yield []
    elif line.startswith((":", " ")) and not re.match(r"    [A-Za-z_ ]+:", line):
        for part in _broken(line.lstrip(": "), width, " " * 8):
            yield _sentence(part)
    else:
        name, colon, rest = line.strip().partition(":")
        if not colon:
            for part in _between_options(name, width - 4):
                yield [Fragment("text", "    "), *notation(part)]
            return
        first, *more = _broken(name + colon + rest, width, "    ")
        yield [Fragment("text", "    "), *notation(name), Fragment("text", first[4 + len(name) :])]
        yield from ([Fragment("text", "    " + part)] for part in more)


def _prose(line: str, width: int) -> Iterator[Line]:
    """Lines of sentences, with words in backticks; a fact ``- Name: value`` with its name."""
    fact = re.match(r"- (\w+):", line)
    if fact is None:
        yield from map(_sentence, _broken(line, width, ""))
        return
    first, *more = _broken(line[2:], width, "  ")
    yield [Fragment("text", "  "), Fragment("fact", f"{fact[1]}:"), *_sentence(first[3 + len(fact[1]) :])]
    yield from (_sentence("  " + part) for part in more)


def _sentence(line: str) -> Line:
    found: Line = []
    place = 0
    for match in _CODE.finditer(line):
        found += [Fragment("text", line[place : match.start()]), Fragment("code", match[1])]
        place = match.end()
    return [fragment for fragment in [*found, Fragment("text", line[place:])] if fragment.text]
