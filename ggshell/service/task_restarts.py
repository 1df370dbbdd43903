"""The restarts of a task after an execution: how often within a window, after which delay, and when it is disabled."""

from __future__ import annotations

from typing import Any, NamedTuple

_MICRO = 1_000_000
_AGAIN, _SERIES = "again", "restarts"


class RestartRule(NamedTuple):
    """The ``restart`` of a task; ``delay`` and ``window`` in microseconds.

    ``on_success``: restart after every execution, not only after a failure. ``disables``: disable the task when its retries are
    used up.
    """

    on_success: bool
    delay: int
    retries: int
    window: int
    disables: bool


class Planned(NamedTuple):
    """The state of a task after an execution, and whether the task is disabled."""

    state: dict[str, Any]
    disabled: bool = False


def restart_rule(task: dict[str, Any]) -> RestartRule | None:
    """Return the rule of a task, None if it is not restarted."""
    given = task.get("restart") or {}
    if not given.get("enabled"):
        return None
    return RestartRule(
        bool(given.get("onSuccess")),
        int(given.get("delay", 0)) * _MICRO,
        int(given.get("retries", 9)),
        int(given.get("window", 60)) * _MICRO,
        bool(given.get("disableOnFailure", True)),
    )


def planned(state: dict[str, Any], rule: RestartRule | None, now: int, *, failed: bool) -> Planned:
    """Plan the restart after an execution that ended now (microseconds): ``again`` is its time.

    The window begins with the first restart. A success without ``on_success`` ends the series.
    """
    series, rest = state.get(_SERIES) or {"count": 0, "first": now}, without_restarts(state)
    if rule is None or not (failed or rule.on_success):
        return Planned(rest)
    if series["count"] and now - series["first"] >= rule.window:
        series = {"count": 0, "first": now}
    if series["count"] < rule.retries:
        first = series["first"] if series["count"] else now
        series = {"count": series["count"] + 1, "first": first}
        return Planned({**rest, _SERIES: series, _AGAIN: now + rule.delay})
    if failed and rule.disables:
        return Planned(rest, disabled=True)
    return Planned({**rest, _SERIES: series})


def without_restarts(state: dict[str, Any]) -> dict[str, Any]:
    """Return a state without a series of restarts."""
    return {name: value for name, value in state.items() if name not in (_AGAIN, _SERIES)}
