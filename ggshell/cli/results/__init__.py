"""Results of the command handlers: immutable values, each with its columns and rows and its text in GGSCI's layout.

Existing scripts parse GGSCI's layout; the data formats use ``columns`` and ``rows``. The modules of this folder have
the results of one noun each, and are imported when they are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

from ggshell.errors import GgsError

Row = tuple[object, ...]
NONE_RUNS = "Nothing to do: none of the groups is running."
"""What a request shows that a wildcard sends to no group."""
_T = TypeVar("_T")


def shown_groups(groups: Sequence[_T], errors: Sequence[GgsError], show: Callable[[_T], str]) -> str:
    """The texts of the groups that answered; a sentence if a wildcard matched none that runs."""
    return "".join(map(show, groups)) if groups or errors else f"\n{NONE_RUNS}\n"


class Result(Protocol):
    """A command's result.

    ``columns`` and ``rows``: for the data formats; ``layout``: the text in GGSCI's layout, empty or ending with a newline.
    """

    @property
    def columns(self) -> tuple[str, ...]: ...

    @property
    def rows(self) -> list[Row]: ...

    @property
    def layout(self) -> str: ...


@runtime_checkable
class Narrowing(Protocol):
    """A result whose layout has tables that may be wider than a terminal.

    ``narrow_layout``: the layout with these tables as narrow as their contents, or vertical.
    """

    @property
    def narrow_layout(self) -> str: ...


class Note(NamedTuple):
    """A code and a sentence that accompany a result and do not make it a failure."""

    code: str
    message: str


class Message(NamedTuple):
    """Sentences, in order.

    ``apart``: print an empty line first. ``errors``: what failed for some of several groups.
    """

    lines: tuple[str, ...] = ()
    errors: tuple[GgsError, ...] = ()
    apart: bool = False
    notes: tuple[Note, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        return ("message",)

    @property
    def rows(self) -> list[Row]:
        return [(line,) for line in self.lines if line]

    @property
    def layout(self) -> str:
        lines = "".join(f"{line}\n" for line in self.lines)
        return f"\n{lines}" if self.apart and lines else lines


class Text(NamedTuple):
    """A file or a page, line by line."""

    name: str
    text: str

    @property
    def columns(self) -> tuple[str, ...]:
        return ("line",)

    @property
    def rows(self) -> list[Row]:
        return [(line,) for line in self.text.splitlines()]

    @property
    def layout(self) -> str:
        return self.text if self.text.endswith("\n") or not self.text else self.text + "\n"


class Script(NamedTuple):
    """An obey file to run now; each of its statements produces its own result."""

    name: str
    text: str

    @property
    def columns(self) -> tuple[str, ...]:
        return ()

    @property
    def rows(self) -> list[Row]:
        return []

    @property
    def layout(self) -> str:
        return ""


class Repeat(NamedTuple):
    """A statement to repeat, with a pause of ``seconds``, until the user interrupts it."""

    seconds: int
    statement: str

    @property
    def columns(self) -> tuple[str, ...]:
        return ()

    @property
    def rows(self) -> list[Row]:
        return []

    @property
    def layout(self) -> str:
        return ""


class NamedValues(NamedTuple):
    """Name-value pairs (SHOW, VERSIONS). ``layout`` is the text in GGSCI's layout."""

    pairs: tuple[tuple[str, str], ...]
    layout: str
    notes: tuple[Note, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        return ("name", "value")

    @property
    def rows(self) -> list[Row]:
        return [tuple(pair) for pair in self.pairs]


class Listing(NamedTuple):
    """Any other table (TRANDATA, checkpoint tables, answers of queries …), with its text in GGSCI's layout.

    ``errors``: what failed for some of several objects.
    """

    heads: tuple[str, ...]
    values: Sequence[Row]
    layout: str
    notes: tuple[Note, ...] = ()
    errors: tuple[GgsError, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        return self.heads

    @property
    def rows(self) -> list[Row]:
        return list(self.values)
