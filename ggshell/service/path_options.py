"""``options`` in the body of a path: what ALTER DISTPATH … OPTIONS sets."""

from __future__ import annotations

from typing import NamedTuple

from ggshell.errors import UsageError
from ggshell.home.checkpoint import PathSettings
from ggshell.service.answers import Object

_FIELDS = ("autoRestart", "critical", "eofDelayCSecs")


class PathOptions(NamedTuple):
    """The options that a client gave, None for each that it did not. ``others``: the names of those without effect."""

    retries: int | None = None
    delay: int | None = None
    critical: bool | None = None
    eof_delay: int | None = None
    others: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The options as a statement says them; empty if none was given."""
        found = []
        if self.retries is not None:
            found.append(f"AUTORESTART RETRIES {self.retries} DELAY {self.delay or 0}")
        if self.critical is not None:
            found.append(f"CRITICAL {'YES' if self.critical else 'NO'}")
        if self.eof_delay is not None:
            found.append(f"EOFDELAY {self.eof_delay}")
        return " ".join(found)

    def applied_to(self, settings: PathSettings) -> PathSettings:
        """Return the settings with these options."""
        if self.retries is not None:
            settings = settings._replace(retries=self.retries, delay=self.delay or 0)
        if self.critical is not None:
            settings = settings._replace(critical=self.critical)
        return settings if self.eof_delay is None else settings._replace(eof_delay=self.eof_delay)


def path_options(given: Object | None) -> PathOptions:
    """Return the options of a body. Raises UsageError for values of another type."""
    fields = {name: value for name, value in (given or {}).items() if value is not None and name != "$schema"}
    again = fields.get("autoRestart") or {}
    if not isinstance(again, dict):
        raise UsageError("autoRestart must be an object", hint='"autoRestart": {"retries": 9, "delay": 60}')
    retries, delay = _number(again, "retries"), _number(again, "delay")
    if delay is not None and retries is None:
        raise UsageError("autoRestart requires retries", hint='"autoRestart": {"retries": 9, "delay": 60}')
    critical = fields.get("critical")
    if critical is not None and not isinstance(critical, bool):
        raise UsageError("critical must be true or false")
    others = tuple(name for name, value in fields.items() if name not in _FIELDS and _has_value(value))
    return PathOptions(retries, delay, critical, _number(fields, "eofDelayCSecs"), others)


def shown_options(settings: PathSettings) -> Object:
    """Return the options of a path that differ from their defaults, as a client would give them."""
    found: Object = {}
    if settings.retries:
        found["autoRestart"] = {"retries": settings.retries, "delay": settings.delay}
    if settings.critical:
        found["critical"] = True
    if settings.eof_delay:
        found["eofDelayCSecs"] = settings.eof_delay
    return found


def _number(fields: Object, name: str) -> int | None:
    value = fields.get(name)
    if value is None:
        return None
    if isinstance(value, str) and value.isdecimal() and len(value) < 10:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise UsageError(f"{name} must be a number, 0 or more")
    return value


def _has_value(value: object) -> bool:
    if isinstance(value, dict):
        return any(_has_value(each) for each in value.values())
    return value not in (None, "", [])
