"""HELP: pages of the manual for the terminal, with the syntax coloured where colours are wanted."""

from __future__ import annotations

import re
import textwrap

from ggshell.errors import NotFoundError
from ggshell.syntax import pages
from ggshell.syntax.help import KINDS, Fragment, find, fragments
from ggshell.syntax.suggest import did_you_mean

_MARGIN = 30
_BOLD, _CYAN, _YELLOW, _GREEN, _END = "\x1b[1m", "\x1b[36m", "\x1b[33m", "\x1b[32m", "\x1b[0m"
_STYLES = {"title": _BOLD, "heading": _BOLD, "keyword": _BOLD + _CYAN, "slot": _GREEN, "mark": _YELLOW, "code": _CYAN}


def overview(width: int = 0) -> str:
    """All commands with what they do, wrapped to a width (0: not), and how many pages of other kinds there are."""
    lines = ["", "Commands (HELP command shows its page):", ""]
    for page in map(pages.read, pages.index("commands").values()):
        first = page.summary.partition(". ")[0].rstrip(".") + "." if page.summary else ""
        parts = textwrap.wrap(first, width - _MARGIN) if width > 2 * _MARGIN else [first]
        lines.append(f"  {page.title:<28}{parts[0] if parts else ''}")
        lines += [" " * _MARGIN + part for part in parts[1:]]
    others = [f"{len(pages.index(kind))} {kind}" for kind in KINDS[1:] if pages.index(kind)]
    return "\n".join([*lines, "", f"HELP name also shows {', '.join(others)}.", ""])


def help_text(subject: str, *, color: bool = False, width: int = 0) -> str:
    """The pages about a subject, lines broken at a width (0: not).  Raises NotFoundError with the names that come near."""
    if not re.search(r"[^\s;,@]", subject):
        return overview(width)
    found = find(subject)
    if not found:
        known = {stem.replace("_", " ").upper() for kind in KINDS for stem in pages.index(kind)}
        near = did_you_mean(" ".join(subject.split()).upper(), known)
        raise NotFoundError(f"the manual has no page about {subject.strip()}", hint=near or "HELP lists all commands")
    return "\n" + "".join(_styled(each, color=color) for each in fragments(found, width))


def _styled(fragment: Fragment, *, color: bool) -> str:
    style = _STYLES.get(fragment.style, "") if color else ""
    return f"{style}{fragment.text}{_END}" if style else fragment.text
