"""A lake as a kind of target: what the rest of ggshell may ask of it. It has no login; TARGET names its folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ggshell.connectors.connector import Connector

if TYPE_CHECKING:
    from ggshell.connectors.folder_target import FolderTarget
    from ggshell.connectors.type_pairs import KindPairs
    from ggshell.home.home import Home


class LakeConnector(Connector):
    """Folders of Parquet files, Delta tables or Iceberg tables."""

    kind = "lake"
    title = "A lake"

    # What commands ask

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
