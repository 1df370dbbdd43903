"""What the manual knows and this version does not carry out: ``Status`` and ``Not yet`` of pages."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ggshell.syntax import pages
from ggshell.syntax.parsed import Note, Parsed

if TYPE_CHECKING:
    from ggshell.syntax.expression_tree import Span

CODE = "GGS-00103"


class Gaps(NamedTuple):
    """What a page says is missing: all of it (``status``, the reason), or lines and options with theirs."""

    status: str = ""
    missing: tuple[tuple[str, str], ...] = ()


@cache
def gaps_of(path: Path) -> Gaps:
    """The gaps that a page names."""
    parts = (line.partition(":") for line in pages.section(path, "Not yet"))
    missing = ((subject.strip().upper(), reason.strip()) for subject, colon, reason in parts if colon)
    return Gaps(pages.read(path).facts.get("Status", ""), tuple(missing))


def notes_of(path: Path, key: str, args: Mapping[str, Any], spans: Mapping[str, tuple[Span, ...]]) -> tuple[Note, ...]:
    """Everything of a statement that its page says is not carried out."""
    gaps = gaps_of(path)
    if not gaps.status and not gaps.missing:
        return ()
    whole = gaps.status or dict(gaps.missing).get(key, "")
    if whole:
        return (Note("", whole),)
    found = []
    for subject, reason in gaps.missing:
        name = pages.argument(subject)
        if subject and args.get(name):
            place = spans[name][0][0] if name in spans else 0
            found.append(Note(subject, reason, place + 1))
    return tuple(found)


def gaps_of_statement(kind: str, parsed: Parsed) -> tuple[Note, ...]:
    """Everything of a statement that is not carried out; one note alone when that is all of it."""
    path = pages.index(kind).get(parsed.page)
    return parsed.notes or (notes_of(path, parsed.key, parsed.args, parsed.spans) if path is not None else ())


def gap_of(kind: str, parsed: Parsed) -> Note | None:
    """The first thing of a statement that is not carried out, None when all of it is."""
    return next(iter(gaps_of_statement(kind, parsed)), None)


def changes_rows(page: str) -> bool:
    """Whether a parameter or clause decides what arrives at the target (``Changes: rows`` on its page), so that it must not be
    passed over; of what has no page of its own nobody knows."""
    path = pages.index("parameters").get(page.lower())
    return path is None or pages.read(path).facts.get("Changes", "") == "rows"


def keeps_rows(page: str) -> bool:
    """Whether a page says of all its options that they may be passed over (``Changes: no rows``)."""
    path = pages.index("parameters").get(page.lower())
    return path is not None and pages.read(path).facts.get("Changes", "") == "no rows"
