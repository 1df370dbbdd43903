"""Which images Extract makes of a change, out of what the log holds of it."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Unified(Enum):
    """UPDATERECORDFORMAT: an update's images before and after in one record."""

    COMPACT = "COMPACT"
    FULL = "FULL"


class ImageRules(NamedTuple):
    """What the parameters above a TABLE line ask for; the defaults are GoldenGate's.

    ``whole_updates``: NOCOMPRESSUPDATES; ``whole_deletes``: NOCOMPRESSDELETES; ``supplemental``: LOGALLSUPCOLS; ``befores``:
    GETUPDATEBEFORES; ``unified``: UPDATERECORDFORMAT, which takes the place of the other rules of updates.
    """

    whole_updates: bool = False
    whole_deletes: bool = False
    supplemental: bool = False
    befores: bool = False
    unified: Unified | None = None

    @property
    def plain_updates(self) -> bool:
        """Whether an update of which the log holds no old values is one record of what the log holds, and nothing more."""
        return not (self.befores or self.unified or self.whole_updates)

    @property
    def all_of_deletes(self) -> bool:
        """Whether a delete has all columns that the log holds."""
        return self.whole_deletes or self.supplemental


DEFAULT_IMAGES = ImageRules()
