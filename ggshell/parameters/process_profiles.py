"""Profiles of managed processes: when Manager starts and restarts a group to which the REST API gave a profile.

A profile is a document with ``autoStart`` and ``autoRestart``. A group names one, or has settings of its own; otherwise the
profile Default applies. A path has the settings of ALTER DISTPATH or ALTER RECVPATH … OPTIONS instead.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from ggshell.home import checkpoint as checkpoints
from ggshell.home.checkpoint import GroupKind, PathSettings
from ggshell.home.documents import Documents
from ggshell.home.home import Home
from ggshell.parameters.process_parameters import RestartRule

PROFILES: Final = "ogg:managedProcessSettings"
DEFAULT_PROFILE: Final = f"{PROFILES}:Default"
PROFILE_VALUES: Final = f"configValue.{PROFILES}"
"""The kind of the documents with the profiles."""
GROUP_SETTINGS: Final = "groupSettings"
"""The kind of the documents with what clients set for a group and no statement does."""


SETTLED_SECONDS: Final = 1200
"""How long a path must have run since its restarts until their count starts over, in addition to their own time."""


class Profile(NamedTuple):
    """What a profile means for one group.

    ``start_delay``: seconds after the start of Manager, None if it does not start the group. ``restart``: None if it does not
    restart the group.
    """

    start_delay: float | None = None
    restart: RestartRule | None = None


def profile_of(home: Home, group: tuple[str, GroupKind]) -> Profile:
    """Return what the profile of a group says. Raises StoreError if a document or a checkpoint file is damaged."""
    name, kind = group
    if kind.is_path:
        return Profile(restart=_rule_of_path(home, group))
    settings = Documents(home, GROUP_SETTINGS).find(f"{kind} {name}") or {}
    chosen = settings.get("managedProcessSettings") or DEFAULT_PROFILE
    found = chosen if isinstance(chosen, dict) else Documents(home, PROFILE_VALUES).find(full_name(str(chosen)))
    return _profile(found or {}, group)


def _rule_of_path(home: Home, group: tuple[str, GroupKind]) -> RestartRule | None:
    """Return the AUTORESTART of a path; None if mgr.prm decides."""
    path = home.checkpoint(*group)
    found = checkpoints.load(path).options.path if path.exists() else PathSettings()
    if not found.retries:
        return None
    reset = SETTLED_SECONDS + found.retries * found.delay
    return RestartRule(str(group[1]), group[0], found.retries, found.delay, reset, gives_up=True)


def full_name(profile: str) -> str:
    """Return the name of a profile with its type, which clients may leave out."""
    return profile if profile.startswith(f"{PROFILES}:") else f"{PROFILES}:{profile}"


def _profile(settings: dict[str, Any], group: tuple[str, GroupKind]) -> Profile:
    start, again = settings.get("autoStart", {}), settings.get("autoRestart", {})
    rule = RestartRule(
        str(group[1]),
        group[0],
        retries=again.get("retries", 9),
        wait=again.get("delay", 0),
        reset=again.get("window", 60),
        gives_up=again.get("disableOnFailure", True),
    )
    delay = float(start.get("delay", 0)) if start.get("enabled") else None
    return Profile(delay, rule if again.get("enabled") else None)
