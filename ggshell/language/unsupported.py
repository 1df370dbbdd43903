"""What the manual describes and this version does not support: the fact and the section ``Not supported`` of pages.

The section ``Without effect`` has the options that change nothing, because what they ask for is always so.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ggshell.errors import StatementError
from ggshell.language import pages
from ggshell.language.redaction import starred

if TYPE_CHECKING:
    from ggshell.language.grammar import Parsed
    from ggshell.language.statement import Span

CODE = "GGS-00103"


class UnsupportedPart(NamedTuple):
    """An unsupported option of a statement, or the whole statement (``what`` is empty), with reason and column."""

    what: str
    reason: str
    column: int = 1

    @property
    def option(self) -> str:
        return self.what

    def about(self, key: str) -> str:
        """The note as text, for a statement with this key."""
        what = f"{self.what} of {key}" if self.what else key
        return f"{what} is not supported: {self.reason}"


class Gaps(NamedTuple):
    """What a page says is not supported.

    ``status`` is the reason if it is the whole page, except for the arguments in ``carried``. ``missing`` has single lines
    and options with their reasons.
    """

    status: str = ""
    missing: tuple[tuple[str, str], ...] = ()
    arguments: tuple[str, ...] = ()
    """Of each of ``missing``."""
    carried: frozenset[str] = frozenset()


@cache
def gaps_of(path: Path) -> Gaps:
    """The gaps that a page declares."""
    parts = (line.partition(":") for line in pages.section(path, "Not supported"))
    missing = tuple((subject.strip().upper(), reason.strip()) for subject, colon, reason in parts if colon)
    names = tuple(pages.argument(subject) for subject, _ in missing)
    facts = pages.read(path).facts
    carried = (pages.argument(name.strip()) for name in facts.get("Carried out", "").split(",") if name.strip())
    return Gaps(facts.get("Not supported", ""), missing, names, frozenset(carried))


@cache
def idle_arguments(path: Path) -> frozenset[str]:
    """The arguments that a page declares as without effect: they are accepted, and no handler receives them."""
    return frozenset(pages.argument(line.partition(":")[0].strip()) for line in pages.section(path, "Without effect"))


def lacks(kind: str, page: str, word: str) -> bool:
    """Whether a word of a page's lines (an option, or the last word of a key) is not supported."""
    path = pages.index(kind).get(page)
    if path is None:
        return False
    found = gaps_of(path)
    if found.status:
        return pages.argument(word) not in found.carried
    return any(word in (subject, subject.split()[-1]) for subject, _ in found.missing if subject)


def notes_of(
    path: Path, key: str, args: Mapping[str, Any], spans: Mapping[str, tuple[Span, ...]]
) -> tuple[UnsupportedPart, ...]:
    """The parts of a statement that its page declares as not supported."""
    gaps = gaps_of(path)
    if not gaps.status and not gaps.missing:
        return ()
    whole = gaps.status or dict(gaps.missing).get(key, "")
    if whole and gaps.carried and {name for name, value in args.items() if value} <= gaps.carried:
        return ()
    if whole:
        return (UnsupportedPart("", whole),)
    found = []
    for name, (subject, reason) in zip(gaps.arguments, gaps.missing, strict=True):
        if subject and args.get(name):
            place = spans[name][0][0] if name in spans else 0
            found.append(UnsupportedPart(subject, reason, place + 1))
    return tuple(found)


def refuses(page: str, gap: UnsupportedPart) -> bool:
    """Whether a process refuses to start with this gap, as ignoring it would change the rows that arrive.

    The fact ``Changes: rows`` declares this on the page of the option, or on the parameter's page if the option does not
    have a page. ``Changes: no rows`` on the parameter's page takes precedence.
    """
    path, own = pages.index("parameters").get(page), None
    if gap.option:
        own = pages.index("parameters").get(gap.option.split()[0].lower())
    changes = pages.read(path).facts.get("Changes", "") if path is not None else ""
    if changes == "no rows":
        return False
    return (pages.read(own).facts.get("Changes", "") if own is not None else changes) == "rows"


def refusal_of(parsed: Parsed, text: str = "") -> StatementError | None:
    """The error for a statement with an unsupported option, as without the option it would do something else.

    None if the whole statement is supported, or if none of it is: that is only reported as a note.
    """
    gap = next(iter(parsed.notes), None)
    if gap is None or not gap.option:
        return None
    hint = "" if "Use " in gap.reason else "leave it out"  # a reason that names an alternative needs no other hint
    return StatementError(
        gap.about(parsed.key), code=CODE, hint=hint, column=gap.column, source=starred(text), page=parsed.page
    )
