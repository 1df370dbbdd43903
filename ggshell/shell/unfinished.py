"""What the manual understands and this version does not carry out: pages say so, in ``Status`` and ``Not yet``.

A whole statement of that kind is accepted with a note, so that old scripts run on; a statement with such an option is refused,
since carrying out the rest of it would be something else than what was asked for.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ggshell.errors import UsageError
from ggshell.shell.results import Note
from ggshell.syntax import pages
from ggshell.syntax.grammar import COMMANDS

if TYPE_CHECKING:
    from ggshell.syntax.grammar import Parsed

CODE = "GGS-00103"


class Gaps(NamedTuple):
    """What a page says is missing: all of it (``status``, the reason), or lines and options with theirs."""

    status: str = ""
    missing: tuple[tuple[str, str], ...] = ()


def unfinished(parsed: Parsed) -> Note | None:
    """The note for a statement that is accepted without being carried out, None for one that is.

    Raises UsageError when one of its options is not carried out.
    """
    path = pages.index(COMMANDS).get(parsed.page)
    gaps = gaps_of(path) if path is not None else Gaps()
    if not gaps.status and not gaps.missing:
        return None
    from ggshell.syntax.tree import python_name

    reasons = dict(gaps.missing)
    whole = gaps.status or reasons.get(parsed.key, "")
    if whole:
        return Note(CODE, f"{parsed.key} is understood but not carried out: {whole}")
    for subject, reason in gaps.missing:
        if subject and parsed.args.get(python_name(subject.split()[0])):
            raise UsageError(
                f"{subject} of {parsed.key} is understood but not carried out: {reason}", code=CODE, hint="leave it out"
            )
    return None


@cache
def gaps_of(path: Path) -> Gaps:
    """The gaps that a page names."""
    parts = (line.partition(":") for line in pages.section(path, "Not yet"))
    missing = ((subject.strip().upper(), reason.strip()) for subject, colon, reason in parts if colon)
    return Gaps(pages.read(path).facts.get("Status", ""), tuple(missing))
