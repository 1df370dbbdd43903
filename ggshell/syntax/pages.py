"""The manual's pages: where they lie, and what stands in them.  Only the pages of the typed verb are read."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

KEYWORDS = frozenset({"from", "in", "for", "global", "with", "and", "or", "not", "is"})
"""Words of the language that are Python's too: an argument of that name has a ``_`` behind it."""


class Page(NamedTuple):
    """A page of the manual: facts by name (For, Databases, Default, Status …), syntax lines and the rest as text."""

    title: str
    path: Path
    summary: str
    facts: dict[str, str]
    syntax: tuple[str, ...]
    options: str
    examples: tuple[str, ...]


@cache
def folder() -> Path:
    """The folder of the manual: beside the package in a checkout, inside it in an installation."""
    package = Path(__file__).resolve().parent.parent
    inside = package / "_grammar"
    return inside if inside.is_dir() else package.parent / "grammar"


@cache
def index(kind: str) -> dict[str, Path]:
    """The pages of a kind (``commands``, ``parameters``) by file name without its ending."""
    return {path.stem: path for path in sorted((folder() / kind).glob("*.md"))}


def of_verb(kind: str, verb: str) -> list[Page]:
    """The pages whose names begin with a verb."""
    wanted = verb.lower()
    return [read(path) for stem, path in index(kind).items() if stem == wanted or stem.startswith(wanted + "_")]


@cache
def read(path: Path) -> Page:
    """Read a page."""
    sections: dict[str, list[str]] = {"": []}
    current, title = "", ""
    for line in path.read_text().splitlines():
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
    """The lines of one section of a page, without the blank ones."""
    found, current = [], ""
    for line in path.read_text().splitlines():
        if line.startswith("## "):
            current = line[3:].strip()
        elif current == name and line.strip():
            found.append(line.strip())
    return tuple(found)


def argument(subject: str) -> str:
    """The argument that a page's keyword or placeholder stands for: the Python name of its first word."""
    name = subject.split(maxsplit=1)[0].lower().replace("-", "_") if subject.strip() else ""
    return f"{name}_" if name in KEYWORDS else name


def _block(lines: list[str]) -> tuple[str, ...]:
    """The indented lines; one that is indented further continues the one before."""
    found: list[str] = []
    for line in lines:
        if line.startswith("        ") and found:
            found[-1] += " " + line.strip()
        elif line.startswith("    ") and line.strip():
            found.append(line.strip())
    return tuple(found)
