"""Times as statements write them: ``90 sec``, ``20M``, ``4H``, ``1 HOUR``."""

from __future__ import annotations

_SECONDS = {"": 1, "S": 1, "M": 60, "H": 3600, "D": 86_400, "W": 604_800}


def interval_seconds(text: str) -> float:
    """The seconds; a bare number is seconds.  The language has checked the form."""
    number = text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ")
    unit = text[len(number) :].strip().upper()[:1]
    return float(number) * _SECONDS[unit]
