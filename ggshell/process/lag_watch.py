"""LAGREPORT, LAGINFO and LAGCRITICAL: when Manager says that a group is behind.  Arithmetic on checkpoints alone."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from ggshell.params.lines import Parameter, read_parameters
from ggshell.store.checkpoint import Checkpoint, SourceType
from ggshell.store.events import Severity

_SECONDS = {"SECONDS": 1, "MINUTES": 60, "HOURS": 3600}
_SECOND = 1_000_000
CHECKPOINT_GRACE = 15 * _SECOND
"""How old a running group's checkpoint may be, in microseconds, before its age counts as lag."""


class LagRules(NamedTuple):
    """How often lag is looked at, from which lag on it is told, and from which it is a warning; seconds, None: never."""

    every: float | None = None
    info: float | None = None
    critical: float | None = None


def load_lag_rules(path: Path) -> LagRules:
    """The rules in Manager's parameter file.  Raises ParameterError, StoreError."""
    return lag_rules(read_parameters(path, "Manager")) if path.exists() else LagRules()


def lag_rules(parameters: Iterable[Parameter]) -> LagRules:
    """``LAG{REPORT|INFO|CRITICAL}{SECONDS|MINUTES|HOURS} number``; the last of each counts."""
    found: dict[str, float] = {}
    for item in parameters:
        for word in ("REPORT", "INFO", "CRITICAL"):
            unit = _SECONDS.get(item.name.removeprefix(f"LAG{word}"))
            if unit is not None and "number" in item.args:
                found[word] = item.args["number"] * unit
    return LagRules(found.get("REPORT"), found.get("INFO"), found.get("CRITICAL"))


def lag_seconds(checkpoint: Checkpoint, now: int, *, running: bool) -> float | None:
    """How far a group is behind at this moment, None when nothing is known of it yet.

    Everything committed before the last record processed, or before the last moment without any input left, has been
    processed.  A running group says so at its checkpoints, so the time since the last one is no lag, unless that stays
    away; a group that does not run gets further behind all the time, since nobody looks.
    """
    if checkpoint.read.source is SourceType.TABLE:
        return None
    known = max(checkpoint.record_time, checkpoint.caught_up) or checkpoint.begin_time
    if not known:
        return None
    age = min(max(0, now - checkpoint.updated), CHECKPOINT_GRACE) if running else 0
    return max(0, now - known - age) / _SECOND


def judge(rules: LagRules, lag: float) -> Severity | None:
    """What a lag is worth: a warning, an information, or nothing."""
    if rules.critical is not None and lag >= rules.critical:
        return Severity.WARNING
    if rules.info is not None and lag >= rules.info:
        return Severity.INFO
    return None
