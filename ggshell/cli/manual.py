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
from ggshell.language.help import KINDS, MESSAGES, Fragment, find, fragments, index_line, is_refused
from ggshell.language.suggest import did_you_mean

LISTS = {
    "COMMANDS": "commands",
    "PARAMETERS": "parameters",
    "FUNCTIONS": "functions",
    "LOGDUMP": "logdump",
    "TOPICS": "topics",
    "CODES": MESSAGES,
    "MESSAGES": MESSAGES,
}
"""The subjects of HELP that list the pages of a kind."""
_NAMED = tuple(kind for kind in KINDS if kind != MESSAGES)
_MARGIN = 30
_MOST_PAGES = 3
_MOST_NAMES = 8
_BOLD, _CYAN, _YELLOW, _GREEN, _END = "\x1b[1m", "\x1b[36m", "\x1b[33m", "\x1b[32m", "\x1b[0m"
_STYLES = {"title": _BOLD, "heading": _BOLD, "keyword": _BOLD + _CYAN, "slot": _GREEN, "mark": _YELLOW, "code": _CYAN}
_USAGE_LINE = re.compile(r"(\S.*?)(?:\s{2,}(.*))?")
_ENVIRONMENT = {
    "GGSHELL_HOME": "The home directory, if --home is not given.",
    "XDG_CACHE_HOME": "The folder of the compiled syntax lines, ggshell/syntax (default: ~/.cache); it can be deleted.",
    "XDG_CONFIG_HOME": "The folder of the configuration file ggshell/config.toml (default: ~/.config).",
    "XDG_STATE_HOME": "The folder of the shell's history, ggshell/history (default: ~/.local/state).",
    "EDITOR, VISUAL, PAGER": "The programs of EDIT PARAMS and of long results.",
    "NO_COLOR": "Any value turns colors off.",
}
_FILES = {
    "~/.config/ggshell/config.toml": "Defaults for home, format, timing, color and key_bindings.",
    "GLOBALS": "In the home directory, as all files below: parameters of all processes.",
    "dirprm/*.prm": "Parameter files of the groups and of Manager.",
    "dirrpt/*.rpt, dirrpt/*.dsc": "Reports and discard files.",
    "dirchk": "Checkpoint files.",
    "dirdat": "Trails.",
    "dircrd, dirwlt": "The credential store and the wallet of the master keys.",
    "ggserr.log": "The error log.",
}
_STATUS = {
    "0": "Success. A statement that is not supported is skipped with a warning.",
    "1": "A statement failed.",
    "2": "Wrong usage.",
    "3": "A syntax error; no statement was run.",
    "130": "Interrupted by Ctrl-C.",
}


def overview(width: int = 0) -> str:
    """List all commands, the topics, and how to list the other pages.

    A command is listed with its summary, or with the reason why it is not supported. ``width``: the line width; 0 means
    no wrapping.
    """
    counts = {
        "PARAMETERS": "parameters",
        "FUNCTIONS": "column functions",
        "LOGDUMP": "Logdump commands",
        "CODES": "message codes",
        "TOPICS": "topics",
    }
    others = [f"HELP {name} ({len(pages.index(LISTS[name]))} {what})" for name, what in counts.items()]
    topics = f"Topics: {', '.join(pages.read(path).title.upper() for path in pages.index('topics').values())}."
    return "\n".join(
        [
            "",
            "Commands (HELP command shows its page):",
            "",
            *_listed(pages.index("commands").values(), width, "Commands"),
            "",
            *_wrapped(topics, width),
            *_wrapped(f"Lists of other pages: {', '.join(others)}.", width),
            "HELP code explains a message: HELP GGS-00503.",
            "",
        ]
    )


def listing(kind: str, width: int = 0) -> str:
    """List the pages of a kind, each with its summary or the reason why it is not supported."""
    page = "HELP LOGDUMP command" if kind == "logdump" else "HELP name"
    return "\n".join(["", f"{page} shows a page:", "", *_listed(pages.index(kind).values(), width, "Pages"), ""])


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width) if width else [text]


def _listed(found: Iterable[Path], width: int, what: str) -> list[str]:
    """List titles with their summaries, wrapped to a width (0: not wrapped); those that are not supported last.

    ``what``: the plural of what is listed, for the heading of those.
    """
    every = [pages.read(path) for path in found]
    lines = _index([page for page in every if not is_refused(page)], width)
    refused = _index([page for page in every if is_refused(page)], width)
    return [*lines, "", f"{what} that this version does not support:", "", *refused] if refused else lines


def _index(found: Iterable[pages.Page], width: int) -> list[str]:
    lines: list[str] = []
    for page in found:
        first = index_line(page)
        parts = textwrap.wrap(first, width - _MARGIN) if width > 2 * _MARGIN else [first]
        lines.append(f"  {page.title.upper():<28}{parts[0] if parts else ''}")
        lines += [" " * _MARGIN + part for part in parts[1:]]
    return lines


def help_text(subject: str, *, color: bool = False, width: int = 0) -> str:
    """Return the pages about a subject, wrapped to a width (0: not wrapped).

    Raises NotFoundError with similar names.
    """
    if not re.search(r"[^\s;,@]", subject):
        return overview(width)
    kind = LISTS.get(subject.strip(" ;,").upper())
    if kind == "commands":
        return overview(width)
    if kind is not None:
        return listing(kind, width)
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
    """Return the man page."""
    synopsis, _, rest = USAGE.partition("\noptions:\n")
    options, _, defaults = rest.partition("\n\n")
    commands = map(pages.read, pages.index("commands").values())
    lines = [
        f'.TH GGSHELL 1 "" "ggshell {__version__}" "ggshell manual"',
        ".SH NAME",
        r"ggshell \- replication with GoldenGate commands",
        ".SH SYNOPSIS",
        *_terms(_usage_terms(synopsis.removeprefix("usage: "))),
        ".SH OPTIONS",
        *_terms(_usage_terms(options)),
        ".PP",
        _troff(" ".join(defaults.split())),
        ".SH COMMANDS",
        "HELP followed by a command shows its page.",
        *_terms((page.title, index_line(page)) for page in commands),
    ]
    for title, facts in {"ENVIRONMENT": _ENVIRONMENT, "FILES": _FILES, "EXIT STATUS": _STATUS}.items():
        lines += [f".SH {title}", *_terms(facts.items())]
    return "\n".join(lines) + "\n"


def _usage_terms(text: str) -> Iterable[tuple[str, str]]:
    """The lines of the usage text: what to type, and what it does."""
    for line in text.splitlines():
        match = _USAGE_LINE.fullmatch(line.strip())
        if match is not None:
            yield match[1], match[2] or ""


def _terms(found: Iterable[tuple[str, str]]) -> list[str]:
    """Names with their descriptions, which the formatter wraps."""
    lines: list[str] = []
    for name, text in found:
        lines += [".TP", f".B {_troff(name)}", *([_troff(text)] if text else [])]
    return lines


def _troff(text: str) -> str:
    """ASCII text in which troff finds no commands."""
    plain = text.replace("\\", r"\e").replace("-", r"\-").replace("`", "").replace("…", "...")
    plain = "".join(letter if letter.isascii() else f"\\[u{ord(letter):04X}]" for letter in plain)
    return rf"\&{plain}" if plain.startswith((".", "'")) else plain
