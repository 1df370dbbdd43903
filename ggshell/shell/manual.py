"""HELP: pages of the manual for the terminal, with the syntax coloured where colours are wanted."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from ggshell.errors import NotFoundError
from ggshell.syntax import pages
from ggshell.syntax.suggest import did_you_mean

KINDS = ("commands", "parameters", "functions", "logdump", "topics")
_MARGIN = 30
_BOLD, _CYAN, _YELLOW, _GREEN, _END = "\x1b[1m", "\x1b[36m", "\x1b[33m", "\x1b[32m", "\x1b[0m"
_PART = re.compile(
    r"(?P<word>@?[A-Z][A-Z0-9_]*(?:\[[A-Z0-9]+\])?(?![a-z]))|(?P<slot>[a-z][a-z0-9_-]*)|(?P<mark>[\[\]{}|])"
)
_STYLES = {"word": _BOLD + _CYAN, "slot": _GREEN, "mark": _YELLOW}


def overview(width: int = 0) -> str:
    """All commands with what they do, wrapped to a width (0: not), and how many pages of other kinds there are."""
    lines = ["", "Commands (HELP command shows its page):", ""]
    for page in map(pages.read, pages.index("commands").values()):
        parts = textwrap.wrap(page.summary, width - _MARGIN) if width > 2 * _MARGIN else [page.summary]
        lines.append(f"  {page.title:<28}{parts[0] if parts else ''}")
        lines += [" " * _MARGIN + part for part in parts[1:]]
    others = [f"{len(pages.index(kind))} {kind}" for kind in KINDS[1:] if pages.index(kind)]
    return "\n".join([*lines, "", f"HELP name also shows {', '.join(others)}.", ""])


def help_text(subject: str, *, color: bool = False, width: int = 0) -> str:
    """The pages about a subject: the one of that name in each kind, else all that begin with it, else those that begin with
    fewer of its words.  Raises NotFoundError with the names that come near."""
    words = re.findall(r"[^\s;,]+", subject.lower().replace("@", ""))
    if not words:
        return overview(width)
    for size in range(len(words), 0, -1):
        found = _pages("_".join(words[:size]), function="@" in subject)
        if found:
            return "\n" + "\n".join(rendered(path.read_text(), color=color) for path in found)
    known = {stem.replace("_", " ").upper() for kind in KINDS for stem in pages.index(kind)}
    near = did_you_mean(" ".join(words).upper(), known)
    raise NotFoundError(f"the manual has no page about {subject.strip()}", hint=near or "HELP lists all commands")


def _pages(stem: str, *, function: bool) -> list[Path]:
    kinds = ("functions",) if function else KINDS
    indexes = [pages.index(kind) for kind in kinds]
    exact = [index[stem] for index in indexes if stem in index]
    # HELP SEND EXTRACT shows every action of it, wherever the pages divide them.
    below = [path for index in indexes for name, path in index.items() if name.startswith(f"{stem}_")]
    if exact and "_" not in stem:
        return exact
    return exact + below or [path for index in indexes for name, path in index.items() if name.startswith(stem)]


def rendered(text: str, *, color: bool) -> str:
    """A page without its Markdown marks."""
    section, lines = "", []
    for line in text.splitlines():
        if line.startswith("# "):
            lines.append(_styled(line[2:].strip(), _BOLD, color=color))
        elif line.startswith("## "):
            section = line[3:].strip()
            lines.append(_styled(section, _BOLD, color=color))
        elif section == "Syntax" and line.startswith("    "):
            lines.append(_notation(line) if color else line)
        elif section == "Options" and line and not line.startswith((" ", ":")):
            lines.append("    " + (_notation(line) if color else line))
        elif section == "Options":
            lines.append("        " + line.lstrip(": ") if line.strip() else "")
        else:
            lines.append(line.replace("- ", "  ", 1) if line.startswith("- ") else line)
    return "\n".join(lines).rstrip() + "\n"


def _styled(text: str, style: str, *, color: bool) -> str:
    return f"{style}{text}{_END}" if color else text


def _notation(line: str) -> str:
    return _PART.sub(lambda part: f"{_STYLES[str(part.lastgroup)]}{part[0]}{_END}", line)
