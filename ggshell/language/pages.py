"""The manual's pages: where they are, what they contain, and their syntax lines by verb.

Only the pages of the typed verb are read. A line is recognized by its fixed words, those that begin it and those after a
placeholder. Only lines whose fixed words all occur in the statement are compiled, so SEND with a hundred lines costs as much
as a single line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ggshell.language.notation import Line
    from ggshell.language.parser import LineParser

KEYWORDS = frozenset({"from", "in", "as", "for", "global", "with", "and", "or", "not", "is"})
"""Keywords that are also Python keywords: an argument with such a name gets a trailing ``_``."""
_WORD = re.compile(r"([A-Z@#_][A-Z0-9_@#$]*)(?:\[([A-Z0-9_]+)\])?(?![a-z\w[])")
_NAME = re.compile(r"[a-z][a-z0-9_-]*")
Spellings = frozenset[str]


class Page(NamedTuple):
    """A page of the manual: facts by name (For, Databases, Default, Changes …), syntax lines and the rest as text."""

    title: str
    path: Path
    summary: str
    facts: dict[str, str]
    syntax: tuple[str, ...]
    options: str
    examples: tuple[str, ...]


@cache
def folder() -> Path:
    """The folder of the manual: inside the package in an installation, next to it in a checkout."""
    package = Path(__file__).resolve().parent.parent
    inside = package / "_grammar"
    return inside if inside.is_dir() else package.parent / "grammar"


@cache
def index(kind: str) -> dict[str, Path]:
    """The pages of a kind (``commands``, ``parameters``) by file name without extension."""
    return {path.stem: path for path in sorted((folder() / kind).glob("*.md"))}


def of_verb(kind: str, verb: str) -> list[Page]:
    """The pages whose names begin with a verb."""
    wanted = verb.lower()
    return [read(path) for stem, path in index(kind).items() if stem == wanted or stem.startswith(wanted + "_")]


@cache
def read(path: Path) -> Page:
    """Read and parse a page."""
    sections: dict[str, list[str]] = {"": []}
    current, title = "", ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            title = line[2:].strip()
        elif line.startswith("## "):
            current = line[3:].strip()
            sections[current] = []
        else:
            sections[current].append(line)
    facts, summary = {}, []
    for line in sections[""]:
        if line.startswith("- ") and ":" in line:
            name, _, value = line[2:].partition(":")
            facts[name.strip()] = value.strip()
        elif line.strip():
            summary.append(line.strip())
    return Page(
        title,
        path,
        " ".join(summary),
        facts,
        _block(sections.get("Syntax", [])),
        "\n".join(sections.get("Options", [])).strip(),
        _block(sections.get("Examples", [])),
    )


@cache
def section(path: Path, name: str) -> tuple[str, ...]:
    """The lines of one section of a page, without blank lines."""
    found, current = [], ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            current = line[3:].strip()
        elif current == name and line.strip():
            found.append(line.strip())
    return tuple(found)


@lru_cache(maxsize=4096)
def argument(subject: str) -> str:
    """The argument name of a page's keyword or placeholder: its first word as a Python name."""
    name = subject.split(maxsplit=1)[0].lower().replace("-", "_") if subject.strip() else ""
    return f"{name}_" if name in KEYWORDS else name


def _block(lines: list[str]) -> tuple[str, ...]:
    """The indented lines of a section. A line with a deeper indent continues the line before it."""
    found: list[str] = []
    for line in lines:
        if line.startswith("        ") and found:
            found[-1] += " " + line.strip()
        elif line.startswith("    ") and line.strip():
            found.append(line.strip())
    return tuple(found)


class SyntaxLine(NamedTuple):
    """A syntax line as written on its page.

    ``leading``: its fixed words at the beginning; ``later``: fixed words that must follow; ``bare``: a name follows the verb
    (``INFO group_name``).
    """

    text: str
    page: str
    leading: tuple[str, ...]
    spellings: tuple[Spellings, ...]
    later: tuple[Spellings, ...]
    bare: bool

    def depth(self, words: Sequence[str]) -> int:
        """How many of the leading words match the beginning of a statement."""
        count = 0
        for word, forms in zip(words, self.spellings, strict=False):
            if word not in forms:
                break
            count += 1
        return count


def _forms(match: re.Match[str]) -> Spellings:
    least, rest = match[1], match[2] or ""
    return frozenset(least + rest[:size] for size in range(len(rest) + 1))


def line_text(text: str, page: str) -> SyntaxLine:
    """Extract the fixed words of a syntax line."""
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
    return SyntaxLine(text, page, tuple(leading), tuple(spellings), tuple(later), bare)


@cache
def _of_page(kind: str, stem: str) -> tuple[SyntaxLine, ...]:
    return tuple(line_text(text, stem) for text in read(index(kind)[stem]).syntax)


@cache
def syntax_lines(verb: str, kind: str) -> tuple[SyntaxLine, ...]:
    """The lines that begin with a verb in any spelling, those with the most fixed words first: a keyword beats a value."""
    wanted = verb.lower()
    stems = [stem for stem in index(kind) if stem == wanted or stem.startswith(f"{wanted}_")]
    found = [line for stem in stems for line in _of_page(kind, stem) if verb in line.spellings[0]]
    if not found:
        # An abbreviation, or a second name for the subject of a page.
        found = [line for line in all_syntax_lines(kind) if line.spellings and verb in line.spellings[0]]
    return tuple(sorted(found, key=lambda line: -len(line.leading) - len(line.later)))


@cache
def all_syntax_lines(kind: str) -> tuple[SyntaxLine, ...]:
    """Every line of a kind of pages."""
    return tuple(line for stem in index(kind) for line in _of_page(kind, stem))


@cache
def second_words(verb: str, kind: str) -> Spellings:
    """The keywords that can follow a verb, and so are not names there."""
    lines = syntax_lines(verb, kind)
    return frozenset(form for line in lines if len(line.spellings) > 1 for form in line.spellings[1])


@cache
def later_words(verb: str, kind: str) -> Spellings:
    """The keywords of a verb's lines that cannot be names: options, and words that follow a placeholder."""
    found = {form for line in syntax_lines(verb, kind) for forms in line.later for form in forms}
    for line in syntax_lines(verb, kind):
        if line.bare:
            found |= {form for word in keywords_of(line) for form in word}
    return frozenset(found)


@cache
def leading_vocabulary(verb: str, kind: str) -> tuple[Spellings, int]:
    """The words that decide which lines of a verb a statement can fit, and how many of its words matter, the verb included."""
    lines = syntax_lines(verb, kind)
    leading = frozenset(form for line in lines for forms in line.spellings[1:] for form in forms)
    return leading | later_words(verb, kind), max((3, *(len(line.leading) for line in lines)))


@cache
def keywords_of(line: SyntaxLine) -> tuple[Spellings, ...]:
    """The keywords of a line after its first word."""
    return tuple(_forms(match) for match in _WORD.finditer(line.text))[1:]


@cache
def is_abbreviation(verb: str, word: str, kind: str) -> bool:
    """Whether a word is only an abbreviation of a keyword that follows a verb."""
    lines = [line for line in syntax_lines(verb, kind) if len(line.spellings) > 1 and word in line.spellings[1]]
    return bool(lines) and all(line.leading[1] != word for line in lines)


@cache
def compiled(line: SyntaxLine) -> Line:
    """The compiled tree of a line."""
    from ggshell.language.compiled import compiled_line

    return compiled_line(line.text, line.page)


@cache
def parser_of(line: SyntaxLine) -> LineParser:
    """The parser of a line."""
    from ggshell.language.parser import LineParser

    return LineParser(compiled(line))
