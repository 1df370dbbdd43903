"""What a statement means, once it was understood."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ggshell.syntax.expression_tree import Span

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Note(NamedTuple):
    """What is missing of a statement: all of it (``what`` empty), or one of its options; why; and where that stands."""

    what: str
    reason: str
    column: int = 1

    @property
    def option(self) -> str:
        return self.what

    def about(self, key: str) -> str:
        """The gap in words, for a statement with this key."""
        what = f"{self.what} of {key}" if self.what else key
        return f"{what} is understood but not carried out: {self.reason}"


class Parsed(NamedTuple):
    """What a statement means: the action's key, its arguments by name, the page it stands on.

    ``notes``: what of it is understood and not carried out; ``spans``: where each argument's values stand in the text.
    """

    key: str
    args: dict[str, Any]
    page: str
    notes: tuple[Note, ...] = ()
    spans: Mapping[str, tuple[Span, ...]] = _NOTHING
