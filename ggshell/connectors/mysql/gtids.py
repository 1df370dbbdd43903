"""GTID positions of MariaDB: the last transaction of each replication domain, as ``0-1-100,1-2-50``."""

from __future__ import annotations

from collections.abc import Mapping

from ggshell.errors import UsageError


def parse_position(text: str) -> dict[str, str]:
    """Return the GTID of each domain. Raises UsageError if the text is not a GTID position."""
    found: dict[str, str] = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        numbers = part.split("-")
        if len(numbers) != 3 or not all(number.isdecimal() for number in numbers):
            raise UsageError(f"{part} is not a valid GTID", hint="use domain-server-sequence, for example 0-1-100")
        found[numbers[0]] = part
    return found


def position_text(position: Mapping[str, str], first: str = "") -> str:
    """Return the GTIDs as one text, that of the domain ``first`` before the others."""
    domains = sorted(position, key=lambda domain: (domain != first, int(domain)))
    return ",".join(position[domain] for domain in domains)


def same_position(one: str, other: str) -> bool:
    """Whether two texts name the same position."""
    return parse_position(one) == parse_position(other)
