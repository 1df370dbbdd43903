"""Formats pages of the manual: for the terminal (HELP), with colored syntax if colors are on, and in troff (man page)."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from pathlib import Path

from ggshell import __version__
from ggshell.cli.options import USAGE
from ggshell.errors import NotFoundError
from ggshell.language import pages
from ggshell.language.help import KINDS, MESSAGES, Fragment, find, fragments, index_line
from ggshell.language.suggest import did_you_mean

_NAMED = tuple(kind for kind in KINDS if kind != MESSAGES)
_MARGIN = 30
_MOST_PAGES = 3
_MOST_NAMES = 8
_BOLD, _CYAN, _YELLOW, _GREEN, _END = "\x1b[1m", "\x1b[36m", "\x1b[33m", "\x1b[32m", "\x1b[0m"
_STYLES = {"title": _BOLD, "heading": _BOLD, "keyword": _BOLD + _CYAN, "slot": _GREEN, "mark": _YELLOW, "code": _CYAN}


def overview(width: int = 0) -> str:
    """List all commands, the topics, and the number of other pages.

    A command is listed with its summary, or with the reason why it is not supported. ``width``: the line width; 0 means
    no wrapping.
    """
    names = {"parameters": "parameters", "functions": "column functions", "logdump": "Logdump commands"}
    others = [f"{len(pages.index(kind))} {name}" for kind, name in names.items()]
    topics = f"Topics: {', '.join(pages.read(path).title.upper() for path in pages.index('topics').values())}."
    return "\n".join(
        [
            "",
            "Commands (HELP command shows its page):",
            "",
            *_listed(pages.index("commands").values(), width),
            "",
            *_wrapped(topics, width),
            *_wrapped(f"HELP also has pages for {', '.join(others[:-1])} and {others[-1]}.", width),
            f"HELP code explains one of {len(pages.index(MESSAGES))} messages: HELP GGS-00503.",
            "",
        ]
    )


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width) if width else [text]


def _listed(found: Iterable[Path], width: int) -> list[str]:
    """List titles with their summaries, wrapped to a width (0: not wrapped)."""
    lines: list[str] = []
    for page in map(pages.read, found):
        first = index_line(page)
        parts = textwrap.wrap(first, width - _MARGIN) if width > 2 * _MARGIN else [first]
        lines.append(f"  {page.title:<28}{parts[0] if parts else ''}")
        lines += [" " * _MARGIN + part for part in parts[1:]]
    return lines


def help_text(subject: str, *, color: bool = False, width: int = 0) -> str:
    """Return the pages about a subject, wrapped to a width (0: not wrapped).

    Raises NotFoundError with similar names.
    """
    if not re.search(r"[^\s;,@]", subject):
        return overview(width)
    found = find(subject)
    if not found or (len(found) > _MOST_PAGES and not _is_named(subject, found)):
        raise NotFoundError(f"the manual does not have a page about {subject.strip()}", hint=_near(subject, found))
    return "\n" + "".join(_styled(each, color=color) for each in fragments(found, width))


def _is_named(subject: str, found: list[Path]) -> bool:
    """Whether the subject is the name of a page or its first words, as in ``HELP ADD``."""
    stem = "_".join(re.findall(r"[^\s;,]+", subject.lower().replace("@", "")))
    return all(path.stem == stem or path.stem.startswith(f"{stem}_") for path in found)


def _near(subject: str, found: list[Path]) -> str:
    """Suggest a similar name, and pages that share a word with the subject."""
    known = {stem.replace("_", " ").upper() for kind in _NAMED for stem in pages.index(kind)}
    meant = did_you_mean(" ".join(subject.split()).upper(), known)
    shared = ", ".join(pages.read(path).title for path in found[:_MOST_NAMES])
    more = f", and {len(found) - _MOST_NAMES} more" if len(found) > _MOST_NAMES else ""
    parts = [meant, f"pages: {shared}{more}" if shared else ""]
    return "; ".join(filter(None, parts)) or "HELP lists all commands"


def _styled(fragment: Fragment, *, color: bool) -> str:
    style = _STYLES.get(fragment.style, "") if color else ""
    return f"{style}{fragment.text}{_END}" if style else fragment.text


def man_page() -> str:
    """The man page ``ggshell(1)``, generated from the usage text and the pages of the commands."""
    synopsis, _, options = USAGE.partition("\noptions:\n")
    lines = [
        f'.TH GGSHELL 1 "" "ggshell {__version__}" "ggshell manual"',
        ".SH NAME",
        r"ggshell \- replication with GoldenGate commands",
        ".SH SYNOPSIS",
        *_verbatim(synopsis.removeprefix("usage: ").replace("\n       ", "\n")),
        ".SH OPTIONS",
        *_verbatim("\n".join(line.removeprefix("  ") for line in options.splitlines())),
        ".SH COMMANDS",
        "HELP followed by a command shows its page.",
    ]
    for path in pages.index("commands").values():
        page = pages.read(path)
        lines += [".TP", f".B {_troff(page.title)}", _troff(index_line(page))]
    lines += [
        ".SH ENVIRONMENT",
        ".TP\n.B GGSHELL_HOME\nThe home directory, if \\-\\-home is not given.",
        ".TP\n.B NO_COLOR\nAny value turns colors off.",
        ".SH EXIT STATUS",
        "0: success. 1: a statement failed. 2: wrong usage. 3: a syntax error; nothing was run. 130: interrupted by Ctrl-C.",
    ]
    return "\n".join(lines) + "\n"


def _verbatim(text: str) -> list[str]:
    return [".nf", *(_troff(line) for line in text.rstrip().splitlines()), ".fi"]


def _troff(text: str) -> str:
    """ASCII text in which troff finds no commands."""
    plain = text.replace("\\", r"\e").replace("-", r"\-").replace("`", "").replace("…", "...")
    plain = "".join(letter if letter.isascii() else f"\\[u{ord(letter):04X}]" for letter in plain)
    return rf"\&{plain}" if plain.startswith((".", "'")) else plain
