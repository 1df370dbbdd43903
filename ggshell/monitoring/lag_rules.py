"""LAGREPORT, LAGINFO and LAGCRITICAL: when Manager reports lag. ``process.lag`` defines lag."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from ggshell.durations import HOUR, MINUTE
from ggshell.home.events import Severity
from ggshell.parameters.lines import Parameter, read_parameters

_SECONDS = {"SECONDS": 1, "MINUTES": MINUTE, "HOURS": HOUR}


class LagRules(NamedTuple):
    """The interval of lag checks, and the lags from which an event or a warning is reported; in seconds, None: never."""

    every: float | None = None
    info: float | None = None
    critical: float | None = None


def load_lag_rules(path: Path) -> LagRules:
    """Load the rules from Manager's parameter file. Raises ParameterError, StoreError."""
    return lag_rules(read_parameters(path, "Manager")) if path.exists() else LagRules()


def lag_rules(parameters: Iterable[Parameter]) -> LagRules:
    """Read ``LAG{REPORT|INFO|CRITICAL}{SECONDS|MINUTES|HOURS} number``; the last of each kind applies."""
    found: dict[str, float] = {}
    for item in parameters:
        for word in ("REPORT", "INFO", "CRITICAL"):
            unit = _SECONDS.get(item.name.removeprefix(f"LAG{word}"))
            if unit is not None and "number" in item.args:
                found[word] = item.args["number"] * unit
    return LagRules(found.get("REPORT"), found.get("INFO"), found.get("CRITICAL"))


def judge(rules: LagRules, lag: float) -> Severity | None:
    """Return the severity of a lag: a warning, information, or None."""
    if rules.critical is not None and lag >= rules.critical:
        return Severity.WARNING
    if rules.info is not None and lag >= rules.info:
        return Severity.INFO
    return None
