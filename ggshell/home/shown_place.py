"""A log position as answers show it: the source labels its parts, and commands print them without knowing the database."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ggshell.home.typed_fields import read_fields


class PlacePart(NamedTuple):
    """A part of a position.

    ``key``: its column. ``value``: a number or a text. ``text``: how it is shown, if not as ``value``.
    """

    key: str
    label: str
    value: Any
    text: str = ""

    @property
    def shown(self) -> str:
        return self.text or str(self.value)


class ShownPlace(NamedTuple):
    """A log position. ``csn``: the position as a CSN; ``before``: the parts shown before its time, ``after``: those after."""

    csn: str = ""
    before: tuple[PlacePart, ...] = ()
    after: tuple[PlacePart, ...] = ()

    @property
    def parts(self) -> tuple[PlacePart, ...]:
        return self.before + self.after

    @property
    def values(self) -> dict[str, Any]:
        """The values by the keys of their columns."""
        return {part.key: part.value for part in self.parts}

    @property
    def text(self) -> str:
        """The position on one line."""
        return ", ".join(f"{part.label} {part.value}" for part in self.parts)

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> ShownPlace:
        """The position in an answer of a process; one without parts if the answer has none."""
        return read_fields(cls, facts.get("place") or {}, "place")
