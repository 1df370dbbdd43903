"""Pages of the manual as styled text. A terminal colors the styles; without them the text is the plain page.

Styles: ``title``, ``heading``, ``fact`` (its name), ``keyword``, ``slot``, ``mark`` (of the notation), ``code`` (an example,
a statement or text in backticks), ``text``.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ggshell.language import pages

MESSAGES = "messages"
LOGDUMP = "logdump"
KINDS = ("commands", "parameters", "functions", LOGDUMP, "topics", MESSAGES)
_PART = re.compile(
    r"(?P<keyword>@?[A-Z][A-Z0-9_$#]*(?:\[[A-Z0-9_]+\])?(?![a-z\w]))|(?P<slot>[a-z][a-z0-9_-]*)|(?P<mark>\[|\]|[{}|]|\.\.\.)"
    r"|(?P<text>[^\[\]{}|A-Za-z@]+|.)"
)
_MESSAGE = re.compile(r"(?:(ggs|ogg)-?)?(\d{1,5})")
"""The code of a message: GGS-00503, or 503."""
_FULL = 110
"""A longer line of a page was broken by the width of the file, so the next line continues it."""
_ALIASES = {"mgr": "manager"}
"""Words of statements whose pages have a different name."""
_CODE = re.compile(r"`([^`]+)`")
_CODE_WIDTH = 40
"""Longer code can be broken at a blank."""
_VALUE = re.compile(r"    [A-Za-z_ ]+:")
_ITEM = re.compile(r"(?: {1,3}(?! )|(?:\d+\.|-) )?")
"""The marker of a step (``1. ``) or a bullet (``- ``), or the indent of their continuation lines."""
_TERMS = ("Options", "Arguments", "Values", "Not supported", "Without effect")


class Fragment(NamedTuple):
    """A piece of text with its style."""

    style: str
    text: str


Line = list[Fragment]


def notation(text: str) -> Line:
    """A syntax line as styled text."""
    return [Fragment(str(part.lastgroup), part[0]) for part in _PART.finditer(text)]


def find(subject: str) -> list[Path]:
    """The pages about a subject.

    These are the pages with that name in each kind (a name of several words also finds the pages below it); else the pages
    whose names begin with it; else the same with fewer words (``ADD EXTRACT ext1`` finds ADD EXTRACT); else the pages with
    its first word in their names. A message is found by its code only, with or without its letters and leading zeros. A command
    of Logdump can follow the word LOGDUMP.
    """
    words = [_ALIASES.get(word, word) for word in re.findall(r"[^\s;,]+", subject.lower().replace("@", ""))]
    explained = _messages(words)
    if explained:
        return explained
    if words[:1] == [LOGDUMP] and len(words) > 1:
        return _of_logdump(words[1:])
    kinds = ("functions",) if "@" in subject else tuple(kind for kind in KINDS if kind != MESSAGES)
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


def _of_logdump(words: list[str]) -> list[Path]:
    """The page of a Logdump command (``HELP LOGDUMP OPEN``), or the pages whose names begin with its first word."""
    index = pages.index(LOGDUMP)
    stems = ("_".join(words[:size]) for size in range(len(words), 0, -1))
    exact = next((index[stem] for stem in stems if stem in index), None)
    return [exact] if exact is not None else [path for stem, path in index.items() if stem.startswith(words[0])]


def is_refused(page: pages.Page) -> bool:
    """Whether the whole page is not supported."""
    return bool(page.facts.get("Not supported")) and "Carried out" not in page.facts


def index_line(page: pages.Page) -> str:
    """The description of a page in an index: its first sentence, or why the whole page is not supported."""
    if is_refused(page):
        return f"Not supported: {page.facts['Not supported'].rstrip('.')}."
    first = page.summary.partition(". ")[0].rstrip(".")
    return f"{first}." if first else ""


def _messages(words: list[str]) -> list[Path]:
    """The page of a message code.

    A code with letters can be followed by the message text; a bare number must stand alone.
    """
    code = _MESSAGE.fullmatch(words[0].rstrip(":.")) if words else None
    if code is None or not (code[1] or len(words) == 1):
        return []
    prefixes = (code[1],) if code[1] else ("ggs", "ogg")
    index = pages.index(MESSAGES)
    stems = (f"{prefix}-{int(code[2]):05d}" for prefix in prefixes)
    return [index[stem] for stem in stems if stem in index]


def fragments(paths: list[Path], width: int = 0) -> list[Fragment]:
    """Pages as fragments, one after another, with line ends.

    Lines longer than ``width`` (0: no limit) are wrapped, syntax lines between options.
    """
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
        elif line.startswith("    "):
            yield [Fragment("text" if section == "See" else "code", line)]
        else:
            yield from (_prose if section else _fact)(line, width)


def _paragraphs(text: str) -> str:
    """Join the wrapped lines of a page, so that it can be wrapped again to the terminal's width."""
    found: list[str] = []
    full = False
    for line in text.splitlines():
        said = line.removeprefix(":   ")
        hang = _hang(found[-1]) if found else 0
        described = bool(found) and found[-1].startswith(":   ") and line.startswith("    ") and not _VALUE.match(line)
        if described:
            said, goes_on = line.strip(), full
        elif hang and line[:hang].isspace() and _hang(line) == hang:
            said, goes_on = line[hang:], full
        else:
            goes_on = full and not hang and bool(said) and (said != line) == found[-1].startswith(":   ")
            goes_on = goes_on and said[0] not in "#-: " and not _hang(said)
        if goes_on:
            found[-1] += f" {said}"
        else:
            found.append(line)
        full = len(line) > _FULL and (described or not line.startswith(("#", "    ")))
    return "\n".join(found)


def _hang(line: str) -> int:
    """The indent of the text of a step or bullet; 0 for other lines."""
    match = _ITEM.match(line)
    return len(match[0]) if match is not None else 0


def _logical(text: str) -> Iterator[str]:
    """The lines of a page, with each syntax line joined into one."""
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
    """Split a syntax line to a width, at the blanks where the fewest brackets are open."""
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
    """Wrap a sentence to a width and indent each line. Short code is not broken."""
    if not width:
        return [indent + line]
    whole = _CODE.sub(lambda code: code[0].replace(" ", "\xa0") if len(code[0]) <= _CODE_WIDTH else code[0], line)
    parts = textwrap.wrap(whole, width - len(indent), break_on_hyphens=False) or [""]
    return [indent + part.replace("\xa0", " ") for part in parts]


def _term(line: str, width: int) -> Iterator[Line]:
    """A line of a section of options: the option, or its description."""
    if not line.strip():
        yield []
    elif line.startswith((":", " ")) and not _VALUE.match(line):
        for part in _broken(line.lstrip(": "), width, " " * 8):
            yield _sentence(part)
    else:
        name, colon, rest = line.strip().partition(":")
        if not colon:
            for part in _between_options(name, width - 4):
                yield [Fragment("text", "    "), *notation(part)]
            return
        first, *more = _broken(name + colon + rest, width and width - 4, "    ")
        yield [Fragment("text", "    "), *notation(name), Fragment("text", first[4 + len(name) :])]
        yield from ([Fragment("text", "    " + part)] for part in more)


def _fact(line: str, width: int) -> Iterator[Line]:
    """A fact ``- Name: value`` with its name styled."""
    fact = re.match(r"- (\w[\w ]*):", line)
    if fact is None:
        yield from _prose(line, width)
        return
    first, *more = _broken(line[2:], width, "  ")
    yield [Fragment("text", "  "), Fragment("fact", f"{fact[1]}:"), *_sentence(first[3 + len(fact[1]) :])]
    yield from (_sentence("  " + part) for part in more)


def _prose(line: str, width: int) -> Iterator[Line]:
    """Sentences, with words in backticks as code. Continuation lines of a step or bullet are indented like its text."""
    hang = _hang(line)
    first, *more = _broken(line[hang:], width and width - hang, "")
    yield _sentence(line[:hang] + first)
    yield from (_sentence(" " * hang + part) for part in more)


def _sentence(line: str) -> Line:
    found: Line = []
    place = 0
    for match in _CODE.finditer(line):
        found += [Fragment("text", line[place : match.start()]), Fragment("code", match[1])]
        place = match.end()
    return [fragment for fragment in [*found, Fragment("text", line[place:])] if fragment.text]
