"""Profiles of managed processes in the API: their form, the default, and the groups that use one.

Manager reads them: ``ggshell/parameters/process_profiles.py``.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeVar

import msgspec

from ggshell.errors import HttpError, UsageError
from ggshell.home.documents import Documents
from ggshell.home.home import Home
from ggshell.parameters.process_profiles import DEFAULT_PROFILE, GROUP_SETTINGS, PROFILE_VALUES, PROFILES, full_name
from ggshell.service.answers import Object
from ggshell.service.bodies import Body
from ggshell.service.call import Call
from ggshell.service.refusals import stored_only

DESCRIPTIONS: Final = "ogg:configDataDescription"
_STOPPED_HINT: Final = "a group that stops without an error stays stopped until START"

_Seconds = Annotated[int, msgspec.Meta(ge=0, le=3600)]


class AutoStart(Body):
    """Whether a process starts with Manager. ``delay``: seconds."""

    enabled: bool = False
    delay: _Seconds = 0


class AutoRestart(Body):
    """Whether a process that ended is restarted. ``delay`` and ``window``: seconds."""

    enabled: bool = False
    on_success: bool = False
    delay: _Seconds = 0
    retries: _Seconds = 9
    window: Annotated[int, msgspec.Meta(ge=0, le=604_800)] = 60
    disable_on_failure: bool = True
    failures: int | None = None


class ProcessSettings(Body):
    """A profile of managed processes."""

    auto_start: AutoStart = msgspec.field(default_factory=AutoStart)
    auto_restart: AutoRestart = msgspec.field(default_factory=AutoRestart)


_Form = TypeVar("_Form", bound=Body)


def values_kind(name: str) -> str:
    """Return the kind of the documents with the values of a configuration type."""
    return f"configValue.{name}"


def default_profile(home: Home) -> str:
    """Return the name of the profile that a new group gets."""
    descriptions, profiles = Documents(home, values_kind(DESCRIPTIONS)), Documents(home, PROFILE_VALUES)
    chosen = (name for name in profiles.names() if (descriptions.find(name) or {}).get("isDefault"))
    return next(chosen, DEFAULT_PROFILE)


def known_profile(call: Call, profile: str | Object) -> str | Object:
    """Return a profile's name, or the settings that a group has instead. Raises UsageError, HttpError 400."""
    if isinstance(profile, dict):
        return plain(converted(call, profile, ProcessSettings))
    name = full_name(profile)
    if name != DEFAULT_PROFILE and Documents(call.home, PROFILE_VALUES).find(name) is None:
        raise UsageError(
            f"profile {profile[:80]} does not exist", hint=f"GET config/types/{PROFILES}/values lists them"
        )
    return profile


def converted(call: Call, body: Object, form: type[_Form]) -> _Form:
    """Return a value in its form. Raises HttpError 400; what has no effect becomes a message of the answer."""
    try:
        found = msgspec.convert(body, form)
    except msgspec.ValidationError as error:
        raise HttpError(400, f"the value is not valid: {error}") from error
    if isinstance(found, ProcessSettings) and found.auto_restart.on_success:
        call.said.append(stored_only("onSuccess of a profile", _STOPPED_HINT))
    return found


def users_of(home: Home, profile: str) -> list[str]:
    """Return the groups that use a profile, which clients also name without the name of its type."""
    settings = Documents(home, GROUP_SETTINGS)
    found = {name: settings.get(name).get("managedProcessSettings") for name in settings.names()}
    return [name for name, used in found.items() if isinstance(used, str) and full_name(used) == profile]


def plain(body: Body) -> Object:
    """Return a body with its defaults as a document."""
    found: Object = _without_none(msgspec.to_builtins(body))
    return found


def _without_none(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: _without_none(each) for key, each in value.items() if each is not None and key != "$schema"}
