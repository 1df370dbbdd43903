"""The results of Logdump's commands, as data: ``layout`` formats them as text, ``data`` as JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from ggshell.logdump.filters import Filters
from ggshell.trail.inspection import InspectedFile, InspectedRecord, InspectedTable


class Lines(NamedTuple):
    """Lines of text."""

    lines: tuple[str, ...]


class Facts(NamedTuple):
    """Names and values, one pair per line."""

    pairs: tuple[tuple[str, str], ...]


class Shown(NamedTuple):
    """A record to show, and its table if the file defines it."""

    file: InspectedFile
    seen: InspectedRecord
    table: InspectedTable | None = None


class Lost(NamedTuple):
    """A place without a valid record, and what was expected there."""

    file: InspectedFile
    rba: int
    expected: str


class Differences(NamedTuple):
    """The differences between two records: (field, value in the first, value in the second)."""

    first: int
    second: int
    found: tuple[tuple[str, str, str], ...]


class TransactionSize(NamedTuple):
    """One transaction in TRANSHIST."""

    xid: str
    records: int
    size: int
    rba: int


class LargeTransactions(NamedTuple):
    """The result of TRANSHIST."""

    transactions: tuple[TransactionSize, ...]


class FilterList(NamedTuple):
    """The result of FILTER SHOW."""

    filters: Filters


class RecordTypes(NamedTuple):
    """The result of SHOW RECTYPE: numbers and names."""

    types: tuple[tuple[int, str], ...]


class Dumped(NamedTuple):
    """The result of DUMP: the bytes at a place of a file."""

    rba: int
    data: bytes


@dataclass(slots=True)
class Tally:
    """Counts of records by type, and their size in bytes; ``images`` counts before and after images."""

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
        """Add several records of one type; ``size`` is their total size in bytes."""
        self.records += number
        self.size += size
        self.types[kind] = self.types.get(kind, 0) + number
        self.images[image] = self.images.get(image, 0) + number

    @property
    def average(self) -> int:
        return self.size // self.records if self.records else 0


class CountedInterval(NamedTuple):
    """One time interval of COUNT."""

    begin: datetime
    end: datetime
    tally: Tally


@dataclass(slots=True)
class Counted:
    """The result of COUNT: totals and counts by table, by interval and by transaction."""

    files: list[str]
    first: int = 0
    total: Tally = field(default_factory=Tally)
    tables: dict[str, Tally] = field(default_factory=dict)
    intervals: list[CountedInterval] = field(default_factory=list)
    transactions: int = 0
    transaction_records: int = 0
    transaction_bytes: int = 0
    transaction_tables: int = 0
    damaged: list[Lost] = field(default_factory=list)
    detail: bool = False


Answer = Lines | Facts | Shown | Lost | Differences | Counted | LargeTransactions | FilterList | RecordTypes | Dumped
