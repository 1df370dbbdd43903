"""FORMAT RELEASE: the trail format (the header's compatibility) of each release."""

from __future__ import annotations

from typing import Final

_FORMATS: Final = {"12.1": 3, "12.2": 5, "12.3": 6, "18.1": 6, "19.1": 6, "21": 7, "23": 7, "26": 7}
"""The vendor's numbers up to 12.3, as public listings show them; from 21 on, a number of ggshell's own."""


def compatibility_of(release: str) -> int:
    """Return the format of a release such as ``12.3`` or ``21.1.0``. Raises ValueError with the known releases."""
    parts = release.split(".")
    for length in (2, 1):
        found = _FORMATS.get(".".join(parts[:length]))
        if found is not None:
            return found
    raise ValueError(f"not a supported release ({', '.join(_FORMATS)}); older trails do not contain table definitions")
