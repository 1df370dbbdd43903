"""Every @function by its name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ggshell.pipeline.transform.compiler import Maker
from ggshell.pipeline.transform.functions import choices, conversions, dates, facts

MAKERS: Final[Mapping[str, Maker]] = MappingProxyType(
    {**conversions.FUNCTIONS, **choices.FUNCTIONS, **dates.FUNCTIONS, **facts.FUNCTIONS}
)
