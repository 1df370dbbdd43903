"""What the manual knows and this version does not carry out: ``Status`` and ``Not yet`` of pages."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ggshell.syntax import pages

if TYPE_CHECKING:
    from ggshell.syntax.grammar import Parsed

CODE = "GGS-00103"


class Gaps(NamedTuple):
    """What a page says is missing: all of it (``status``, the reason), or lines and options with theirs."""

    status: str = ""
    missing: tuple[tuple[str, str], ...] = ()


class Gap(NamedTuple):
    """What is missing of a statement: all of it (``option`` empty), or one of its options; and why."""

    option: str
    reason: str

    def about(self, key: str) -> str:
        """The gap in words, for a statement with this key."""
        what = f"{self.option} of {key}" if self.option else key
        return f"{what} is understood but not carried out: {self.reason}"


@cache
def gaps_of(path: Path) -> Gaps:
    """The gaps that a page names."""
    parts = (line.partition(":") for line in pages.section(path, "Not yet"))
    missing = ((subject.strip().upper(), reason.strip()) for subject, colon, reason in parts if colon)
    return Gaps(pages.read(path).facts.get("Status", ""), tuple(missing))


def gaps_of_statement(kind: str, parsed: Parsed) -> list[Gap]:
    """Everything of a statement that is not carried out; one gap alone when that is all of it."""
    path = pages.index(kind).get(parsed.page)
    gaps = gaps_of(path) if path is not None else Gaps()
    if not gaps.status and not gaps.missing:
        return []
    from ggshell.syntax.tree import python_name

    whole = gaps.status or dict(gaps.missing).get(parsed.key, "")
    if whole:
        return [Gap("", whole)]
    return [Gap(*gap) for gap in gaps.missing if gap[0] and parsed.args.get(python_name(gap[0].split()[0]))]


def gap_of(kind: str, parsed: Parsed) -> Gap | None:
    """The first thing of a statement that is not carried out, None when all of it is."""
    return next(iter(gaps_of_statement(kind, parsed)), None)


def changes_rows(page: str) -> bool:
    """Whether a parameter or clause decides what arrives at the target (``Changes: rows`` on its page), so that it must not be
    passed over; of what has no page of its own nobody knows."""
    path = pages.index("parameters").get(page.lower())
    return path is None or pages.read(path).facts.get("Changes", "") == "rows"
