"""Answers that list: trails, aliases, facts by name, any other table.  The same kind of values as ``results``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ggshell.shell.results import Row


class TrailInfo(NamedTuple):
    """A trail that a group writes."""

    trail: str
    remote: bool
    group: str
    seqno: int
    rba: int
    megabytes: int


class Trails(NamedTuple):
    """INFO EXTTRAIL and INFO RMTTRAIL."""

    trails: tuple[TrailInfo, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return ("trail", "type", "extract", "seqno", "rba", "megabytes")

    @property
    def rows(self) -> list[Row]:
        return [(t.trail, trail_type(t.remote), t.group, t.seqno, t.rba, t.megabytes) for t in self.trails]


def trail_type(remote: bool) -> str:
    return "RMTTRAIL" if remote else "EXTTRAIL"


class CredentialLine(NamedTuple):
    """An alias of the credential store."""

    domain: str
    alias: str
    userid: str


class Credentials(NamedTuple):
    """INFO CREDENTIALSTORE; ``folder`` where it lies."""

    folder: str
    entries: tuple[CredentialLine, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return ("domain", "alias", "userid")

    @property
    def rows(self) -> list[Row]:
        return [tuple(entry) for entry in self.entries]


class Facts(NamedTuple):
    """Names with values: SHOW, VERSIONS.  ``layout`` is the text that GGSCI users see."""

    pairs: tuple[tuple[str, str], ...]
    layout: str

    @property
    def columns(self) -> tuple[str, ...]:
        return ("name", "value")

    @property
    def rows(self) -> list[Row]:
        return [tuple(pair) for pair in self.pairs]


class Listing(NamedTuple):
    """Any other table of facts, with its text for GGSCI beside it (TRANDATA, checkpoint tables, history …)."""

    heads: tuple[str, ...]
    values: Sequence[Row]
    layout: str

    @property
    def columns(self) -> tuple[str, ...]:
        return self.heads

    @property
    def rows(self) -> list[Row]:
        return list(self.values)
