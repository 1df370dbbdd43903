"""Rules for the row images that Extract builds from the log's data of a change."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Unified(Enum):
    """UPDATERECORDFORMAT: the before and after images of an update in one record."""

    COMPACT = "COMPACT"
    FULL = "FULL"


class ImageRules(NamedTuple):
    """The image parameters in effect for a TABLE statement; the defaults are GoldenGate's.

    ``whole_updates``: NOCOMPRESSUPDATES; ``whole_deletes``: NOCOMPRESSDELETES; ``supplemental``: LOGALLSUPCOLS; ``befores``:
    GETUPDATEBEFORES; ``unified``: UPDATERECORDFORMAT, which replaces the other rules for updates.
    """

    whole_updates: bool = False
    whole_deletes: bool = False
    supplemental: bool = False
    befores: bool = False
    unified: Unified | None = None

    @property
    def all_of_deletes(self) -> bool:
        """Whether the image of a delete holds all columns in the log."""
        return self.whole_deletes or self.supplemental


DEFAULT_IMAGES = ImageRules()
