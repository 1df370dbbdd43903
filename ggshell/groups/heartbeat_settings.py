"""The heartbeat settings in parameter files: where the heartbeat objects are, and whether a process uses them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ggshell.errors import NotFoundError, ParameterError
from ggshell.home.home import Home
from ggshell.pipeline.heartbeat.names import HeartbeatNames, heartbeat_names

if TYPE_CHECKING:
    from ggshell.monitoring.lag_stats import LagStats
    from ggshell.parameters.lines import Parameter

_SWITCHES = {"ENABLE_HEARTBEAT_TABLE": True, "DISABLE_HEARTBEAT_TABLE": False}


class HeartbeatSettings(NamedTuple):
    """The heartbeat settings of a process.

    ``names``: the heartbeat objects, or None if there are none. ``enabled``: whether this process uses heartbeats.
    ``archive``: whether Replicat writes the lag archive. ``lag_stats``: the lag statistics that Replicat collects.
    """

    names: HeartbeatNames | None = None
    enabled: bool = True
    archive: bool = False
    lag_stats: LagStats | None = None


def home_names(home: Home) -> HeartbeatNames | None:
    """Return the names of the heartbeat objects from GLOBALS, or None. Raises ParameterError, StoreError."""
    return _names(home, _in_globals(home))


def required_names(home: Home, table: str = "") -> HeartbeatNames:
    """Return the names of the heartbeat objects from GLOBALS, or with another table.

    Raises NotFoundError if neither has a schema.
    """
    found = home_names(home)
    if table:
        found = heartbeat_names(found.schema if found is not None else "", table)
    if found is None:
        raise NotFoundError(
            "GLOBALS does not specify a schema for heartbeat objects",
            code="OGG-14036",
            hint="add GGSCHEMA schema_name to GLOBALS",
        )
    return found


def _in_globals(home: Home) -> list[Parameter]:
    from ggshell.parameters.lines import read_parameters

    return read_parameters(home.globals, "GLOBALS") if home.globals.exists() else []


def _names(home: Home, found: list[Parameter]) -> HeartbeatNames | None:
    try:
        return heartbeat_names(_last(found, "GGSCHEMA", "schema"), _last(found, "HEARTBEATTABLE", "table"))
    except ValueError as error:
        raise ParameterError(str(error), where=str(home.globals)) from error


def load_heartbeats(home: Home, parameters: Path | None = None, process: str = "") -> HeartbeatSettings:
    """Load the settings from GLOBALS and a group's parameter file, which takes precedence.

    Raises ParameterError, StoreError.
    """
    from ggshell.monitoring.lag_stats import lag_stats
    from ggshell.parameters.lines import read_parameters

    found = _in_globals(home)
    own = read_parameters(parameters, process) if parameters is not None and parameters.exists() else []
    switches = [_SWITCHES[item.name] for item in (*found, *own) if item.name in _SWITCHES]
    archive = any(item.name == "LAGARCHIVE" for item in own)
    return HeartbeatSettings(_names(home, found), switches[-1] if switches else True, archive, lag_stats(own))


def _last(found: list[Parameter], name: str, argument: str) -> str:
    values = [str(item.args[argument]) for item in found if item.name == name and argument in item.args]
    return values[-1] if values else ""
