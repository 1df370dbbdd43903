"""Why a statement is refused: the spot, what could stand there, what was perhaps meant, and the page to read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ggshell.errors import StatementError
from ggshell.syntax.attempt import Leaf
from ggshell.syntax.slots import slot_type
from ggshell.syntax.suggest import did_you_mean
from ggshell.syntax.tree import Slot

_MOST = 8
_FOUND = re.compile(r"[^\s,;()=]+|\S")


class Failure(NamedTuple):
    """How far a line came, and what it wanted there."""

    place: int
    wanted: Sequence[Leaf]
    reasons: Sequence[str]
    page: str


def refused(text: str, failures: Sequence[Failure]) -> StatementError:
    """The error of the lines that came furthest."""
    place = max(failure.place for failure in failures)
    best = [failure for failure in failures if failure.place == place]
    found = _FOUND.match(text, place)
    leaves = list(dict.fromkeys(leaf for failure in best for leaf in failure.wanted))
    words = [leaf.text for leaf in leaves if not isinstance(leaf, Slot)]
    reason = next((reason for failure in best for reason in failure.reasons), "")
    what = reason or (f"unexpected {found[0]}" if found else "the statement ends too early")
    could = (
        "" if reason else _listed([*words, *(slot_type(leaf.name).called for leaf in leaves if isinstance(leaf, Slot))])
    )
    return StatementError(
        f"{what}; expected {could}" if could else what,
        column=place + 1,
        source=text,
        hint=did_you_mean(found[0].upper(), words) if found else "",
        page=best[0].page,
    )


def _listed(names: Iterable[str]) -> str:
    unique = list(dict.fromkeys(names))
    return ", ".join(unique[:_MOST]) + (", …" if len(unique) > _MOST else "")


def unknown(text: str, verb: str, place: int, what: str, known: Iterable[str]) -> StatementError:
    """The error of a statement that begins with no verb of the manual."""
    hint = did_you_mean(verb.upper(), known)
    shown = verb or text[place : place + 1]
    return StatementError(
        f"unknown {what} {shown}", column=place + 1, source=text, hint=hint or "HELP lists what there is"
    )
