"""GTID sets of MySQL: transactions of servers, as ``uuid:1-5:7,uuid:tag:1-3``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ggshell.errors import UsageError

_SERVER: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TAG: Final = re.compile(r"[a-z_][a-z0-9_]{0,31}")
_INTERVAL: Final = re.compile(r"([1-9]\d*)(?:-([1-9]\d*))?")


@dataclass(frozen=True, slots=True)
class GtidSet:
    """The intervals of transaction numbers, both ends included, by the server and its tag: ``uuid`` or ``uuid:tag``."""

    intervals: dict[str, list[tuple[int, int]]]

    def __contains__(self, gtid: str) -> bool:
        """Whether it has a transaction, given as ``uuid:number`` or ``uuid:tag:number``; it has no anonymous one."""
        domain, _, number = gtid.rpartition(":")
        return any(first <= int(number) <= last for first, last in self.intervals.get(domain, ()))

    def __str__(self) -> str:
        found = (
            ":".join([domain, *(f"{first}-{last}" if last > first else str(first) for first, last in intervals)])
            for domain, intervals in sorted(self.intervals.items())
        )
        return ",".join(found)


def parse_set(text: str) -> GtidSet:
    """Read a set as MySQL writes it. Raises UsageError if it is not one."""
    found: dict[str, list[tuple[int, int]]] = {}
    for part in filter(None, ("".join(each.split()).lower() for each in text.split(","))):
        server, *rest = part.split(":")
        if not _SERVER.fullmatch(server) or not rest:
            raise _not_a_set(part)
        domain = server
        for word in rest:
            interval = _INTERVAL.fullmatch(word)
            if interval is not None:
                first = int(interval[1])
                found.setdefault(domain, []).append((first, int(interval[2] or first)))
            elif _TAG.fullmatch(word):
                domain = f"{server}:{word}"
            else:
                raise _not_a_set(part)
    return GtidSet(found)


def set_of(gtids: Iterable[str]) -> GtidSet:
    """The set of some transactions; anonymous ones are left out."""
    found: dict[str, list[tuple[int, int]]] = {}
    numbers = sorted((domain, int(number)) for domain, _, number in (each.rpartition(":") for each in gtids if each))
    for domain, number in numbers:
        intervals = found.setdefault(domain, [])
        if intervals and number <= intervals[-1][1] + 1:
            intervals[-1] = intervals[-1][0], number
        else:
            intervals.append((number, number))
    return GtidSet(found)


def _not_a_set(part: str) -> UsageError:
    return UsageError(
        f"{part} is not a valid GTID set",
        hint="use uuid:first-last, for example 3e11fa47-71ca-11e1-9e33-c80aa9429562:1-100",
    )
