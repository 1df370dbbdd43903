"""What parameter files say of heartbeats: where their objects are, and whether a process takes part."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from ggshell.errors import ParameterError
from ggshell.heartbeat.names import HeartbeatNames, heartbeat_names
from ggshell.params.lines import Parameter, read_parameters
from ggshell.process.lag_stats import LagStats, lag_stats
from ggshell.store.home import Home

_SWITCHES = {"ENABLE_HEARTBEAT_TABLE": True, "DISABLE_HEARTBEAT_TABLE": False}


class HeartbeatSettings(NamedTuple):
    """Where the objects are (None: nowhere), whether this process takes part, whether Replicat keeps an archive, and
    what it counts of lag."""

    names: HeartbeatNames | None = None
    enabled: bool = True
    archive: bool = False
    lag_stats: LagStats | None = None


def home_names(home: Home) -> HeartbeatNames | None:
    """The names that GLOBALS gives the objects.  Raises ParameterError."""
    return load_heartbeats(home).names


def load_heartbeats(home: Home, parameters: Path | None = None, process: str = "") -> HeartbeatSettings:
    """What GLOBALS and a group's own file say; the group has the last word.  Raises ParameterError, StoreError."""
    found = read_parameters(home.globals, "GLOBALS") if home.globals.exists() else []
    own = read_parameters(parameters, process) if parameters is not None and parameters.exists() else []
    switches = [_SWITCHES[item.name] for item in (*found, *own) if item.name in _SWITCHES]
    try:
        names = heartbeat_names(_last(found, "GGSCHEMA", "schema"), _last(found, "HEARTBEATTABLE", "table"))
    except ValueError as error:
        raise ParameterError(str(error), where=str(home.globals)) from error
    archive = any(item.name == "LAGARCHIVE" for item in own)
    return HeartbeatSettings(names, switches[-1] if switches else True, archive, lag_stats(own))


def _last(found: list[Parameter], name: str, argument: str) -> str:
    values = [str(item.args[argument]) for item in found if item.name == name and argument in item.args]
    return values[-1] if values else ""
