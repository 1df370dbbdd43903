"""A lake as a kind of target: what the rest of ggshell may ask of it. Its location, as TARGET has it, stands for a login."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ggshell.connectors.connector import Connector
from ggshell.store_paths import path_of

if TYPE_CHECKING:
    from ggshell.connectors.folder_target import FolderTarget
    from ggshell.connectors.logged_in import Credentials, LoggedIn
    from ggshell.connectors.type_pairs import KindPairs
    from ggshell.home.home import Home
    from ggshell.time_limit import TimeLimit


class LakeConnector(Connector):
    """Folders of Parquet files, Delta tables or Iceberg tables."""

    kind = "lake"
    title = "A lake"

    # What commands ask

    def log_in(self, given: Credentials, home: Path, limit: TimeLimit | None = None) -> LoggedIn:
        from ggshell.connectors.lake.logged_in import log_in

        return log_in(self, given, home)

    def files(self, home: Path, login: str) -> tuple[Path, ...]:
        from ggshell.connectors.lake.target import lake_target
        from ggshell.home.home import Home

        return (path_of(lake_target(Home(home), login).location),)

    def folder_target(self, home: Home, text: str, group: str) -> FolderTarget:
        from ggshell.connectors.lake.lake_folder import LakeFolder

        return LakeFolder(home, text, group)

    def type_tables(self) -> tuple[KindPairs, ...]:
        from ggshell.connectors.lake.types import FROM_MARIADB, FROM_POSTGRESQL

        return FROM_POSTGRESQL, FROM_MARIADB

    # What processes ask

    vendor = "a Lake"
    program = "ggshell.connectors.lake"


CONNECTOR = LakeConnector()
