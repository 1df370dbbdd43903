"""What Logdump's commands give: data, which ``layout`` makes text of, or JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from ggshell.logdump.filters import Filters
from ggshell.trail.look import LookedFile, Seen, Table


class Lines(NamedTuple):
    """Sentences."""

    lines: tuple[str, ...]


class Facts(NamedTuple):
    """Names and values, one a line."""

    pairs: tuple[tuple[str, str], ...]


class Shown(NamedTuple):
    """A record that is to be shown, with what its file knows of its table."""

    file: LookedFile
    seen: Seen
    table: Table | None = None


class Lost(NamedTuple):
    """A place where no record stands, and what was expected there."""

    file: LookedFile
    rba: int
    expected: str


class Differences(NamedTuple):
    """In what two records differ: (what, in the first, in the second)."""

    first: int
    second: int
    found: tuple[tuple[str, str, str], ...]


class TransactionSize(NamedTuple):
    """A transaction of TRANSHIST."""

    xid: str
    records: int
    size: int
    rba: int


class LargeTransactions(NamedTuple):
    """TRANSHIST."""

    transactions: tuple[TransactionSize, ...]


class FilterList(NamedTuple):
    """FILTER SHOW."""

    filters: Filters


class RecordTypes(NamedTuple):
    """SHOW RECTYPE: numbers and names."""

    types: tuple[tuple[int, str], ...]


class Dumped(NamedTuple):
    """DUMP: bytes of a file from a place on."""

    rba: int
    data: bytes


@dataclass(slots=True)
class Tally:
    """Records by type, with their bytes; ``images`` counts before and after images."""

    records: int = 0
    size: int = 0
    types: dict[str, int] = field(default_factory=dict)
    images: dict[str, int] = field(default_factory=dict)

    def add(self, kind: str, size: int, image: str) -> None:
        self.records += 1
        self.size += size
        self.types[kind] = self.types.get(kind, 0) + 1
        if image:
            self.images[image] = self.images.get(image, 0) + 1

    def add_many(self, kind: str, number: int, size: int, image: str) -> None:
        """So many records of one type, with their bytes together."""
        self.records += number
        self.size += size
        self.types[kind] = self.types.get(kind, 0) + number
        self.images[image] = self.images.get(image, 0) + number

    @property
    def average(self) -> int:
        return self.size // self.records if self.records else 0


class Interval(NamedTuple):
    """A part of the time that COUNT went through."""

    begin: datetime
    end: datetime
    tally: Tally


@dataclass(slots=True)
class Counted:
    """COUNT: everything, by table where asked for, by interval where asked for, and by transaction."""

    files: list[str]
    first: int = 0
    total: Tally = field(default_factory=Tally)
    tables: dict[str, Tally] = field(default_factory=dict)
    intervals: list[Interval] = field(default_factory=list)
    transactions: int = 0
    transaction_records: int = 0
    transaction_bytes: int = 0
    transaction_tables: int = 0
    damaged: list[Lost] = field(default_factory=list)
    detail: bool = False


Answer = Lines | Facts | Shown | Lost | Differences | Counted | LargeTransactions | FilterList | RecordTypes | Dumped
