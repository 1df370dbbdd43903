"""A lake as one side of COMPARE: its location stands for a login."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ggshell.connectors.lake.credentials import applied, group_environment
from ggshell.connectors.lake.data_files import unreadable_files
from ggshell.connectors.lake.outages import errors_by_cause
from ggshell.connectors.lake.readable import require_lake
from ggshell.connectors.lake.target import LakeTarget, lake_target
from ggshell.connectors.logged_in import Credentials, LoggedIn
from ggshell.errors import StateError
from ggshell.home.checkpoint import ReplicatKind
from ggshell.home.home import Home

if TYPE_CHECKING:
    from ggshell.connectors.connector import Connector
    from ggshell.connectors.lake.compare_side import LakeComparison
    from ggshell.pipeline.compare.table_side import QueryEngine


class LakeLogin(LoggedIn):
    """A lake. If a Replicat of the home delivers to it, the USERIDALIAS of its parameter file applies."""

    def __init__(self, connector: Connector, home: Home, target: LakeTarget) -> None:
        super().__init__(connector, target.text, "lake", target.location)
        self._target = target
        self._environment = group_environment(home, _delivering_group(home, target), target)
        with applied(self._environment), unreadable_files(f"lake {target.location}"), errors_by_cause(target):
            require_lake(target)

    def __str__(self) -> str:
        return self.conninfo

    def refused(self) -> StateError:
        return StateError(
            f"{self.conninfo} is a lake: this command requires a database.",
            hint="DBLOGIN to a database; a lake can be compared with COMPARE",
        )

    def comparison(self, engine: Callable[[], QueryEngine]) -> LakeComparison:
        from ggshell.connectors.lake.compare_side import LakeComparison

        return LakeComparison(self._target, self._environment, engine())


def log_in(connector: Connector, given: Credentials, home: Path) -> LakeLogin:
    """The lake of a location. Raises ParameterError, NotFoundError, StoreError, ConnectionLostError."""
    found = Home(home)
    return LakeLogin(connector, found, lake_target(found, given.names_kind))


def _delivering_group(home: Home, target: LakeTarget) -> str:
    """The first Replicat of the home that delivers to a lake; empty if there is none."""
    for entry in home.groups():
        options = entry.checkpoint.options if entry.checkpoint is not None else None
        if options is None or options.replicat_kind is not ReplicatKind.LAKE:
            continue
        if lake_target(home, options.target) == target:
            return entry.group
    return ""
