"""Purging trails, as commands/execute asks for it: by the rule of PURGEOLDEXTRACTS, once."""

from __future__ import annotations

from typing import Literal

from ggshell.errors import UsageError
from ggshell.groups.purge import purge
from ggshell.parameters.process_parameters import PurgeRule
from ggshell.service.answers import Said
from ggshell.service.bodies import Body
from ggshell.service.call import Call
from ggshell.service.named_files import require_inside
from ggshell.service.trail_names import FOLDERS, known_trail, trail_text

_HOURS = {"hours": 1, "days": 24}
_MOST = 1_000_000_000


class TrailPattern(Body, kw_only=True):
    """A trail, or a wildcard for several, in a folder."""

    name: str
    path: str = ""


class Keep(Body):
    """How many files to keep, or for how long."""

    type: Literal["min"] = "min"
    units: Literal["files", "hours", "days"] = "files"
    value: int = 0


def purge_trails(call: Call, trails: list[TrailPattern], keep: list[Keep], *, use_checkpoints: bool) -> list[str]:
    """Remove trail files and return their paths.

    Raises UsageError without trails, HttpError 403 for trails outside the home, StoreError, DiskError.
    """
    if not trails:
        raise UsageError("purge requires trails")
    if any(not 0 <= each.value <= _MOST for each in keep):
        raise UsageError(f"a value of keep is not between 0 and {_MOST}")
    hours = max((each.value * _HOURS[each.units] for each in keep if each.units in _HOURS), default=0)
    files = max((each.value for each in keep if each.units == "files"), default=0)
    removed: list[str] = []
    patterns = dict.fromkeys(each for trail in trails for each in _patterns(call, trail))
    for pattern in patterns:
        require_inside(call.bounds, call.principal, pattern, written=True, exact=True)
    for pattern in patterns:
        rule = PurgeRule(pattern, use_checkpoints, hours, files)
        removed += [str(path) for path in purge(call.home, rule, call.state.clock.now())]
    call.said += [Said("OGG-00957", f"Purged old trail file {path}.") for path in removed]
    return removed


def _patterns(call: Call, trail: TrailPattern) -> list[str]:
    """Return the trails as rules name them; a wildcard without a folder is looked for in every usual folder."""
    if not trail.path and ("*" in trail.name or "?" in trail.name):
        return [trail_text(trail.name, folder) for folder in FOLDERS]
    return [known_trail(call.home, trail.name, trail.path, "./dirdat")]
