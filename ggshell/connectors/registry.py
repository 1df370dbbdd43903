"""The kinds of databases, and which of them a login or an Extract belongs to. A new kind is one line here."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Final

from ggshell.connectors.connector import Connector
from ggshell.connectors.data_sources import data_source
from ggshell.home.checkpoint import ReplicatKind

if TYPE_CHECKING:
    from ggshell.connectors.source_log import SourceLog
    from ggshell.connectors.type_pairs import KindPairs
    from ggshell.home.checkpoint import GroupOptions

_KINDS: Final = {
    "redo://": "oracle_redo",
    "duckdb://": "duckdb",
    "mysql://": "mysql",
    "mariadb://": "mysql",
    "": "postgres",
}
"""The folder of a kind by the beginning of its logins; the first that matches."""

_LOCATIONS: Final = {"parquet:": "lake", "delta:": "lake", "iceberg:": "lake"}
"""The same for locations that stand for a login."""

_DRIVERS: Final = {"maria": "mysql", "mysql": "mysql", "maodbc": "mysql", "myodbc": "mysql"}
"""The folder of a kind by a part of the name of an ODBC driver, in lower case."""

_DELIVERIES: Final = {ReplicatKind.LAKE: "lake"}
"""The folder of a kind that has no logins, by the kind of Replicat that delivers to it."""


def connector_for(*logins: str) -> Connector:
    """Return the connector of the kind of database that a login names; the module is imported at the first call.

    Of several texts (SOURCEDB and USERID), any may name it.
    """
    texts = [login.strip().lower() for login in logins]
    kinds = {**_LOCATIONS, **_KINDS}
    found = next(kind for scheme, kind in kinds.items() if any(text.startswith(scheme) for text in texts))
    return connector_of(_kind_of_data_source(logins) or found if found == _KINDS[""] else found)


def _kind_of_data_source(logins: tuple[str, ...]) -> str:
    """Return the kind that the driver of a data source of ODBC names; empty for logins that name no such source."""
    for login in logins:
        name = login.strip().rpartition("@")[2]
        if name and not set("/:=") & set(name):
            driver = (data_source(name) or {}).get("driver", "").lower()
            kind = next((kind for part, kind in _DRIVERS.items() if part in driver), "")
            if kind:
                return kind
    return ""


def source_connector(options: GroupOptions) -> Connector:
    """Return the connector of the source that an Extract captures, from the options of its checkpoint."""
    return connector_of(options.source_kind) if options.source_kind else connector_for("")


def source_log(options: GroupOptions) -> SourceLog:
    """Return the log that an Extract captures, from the options of its checkpoint. Raises StateError for no such log."""
    return source_connector(options).log


def delivery_connector(kind: ReplicatKind) -> Connector:
    """Return the connector that a kind of Replicat delivers to, for a target without a login."""
    return connector_of(_DELIVERIES[kind])


def replicat_program(kind: ReplicatKind) -> str:
    """Return the package whose entry point runs a Replicat."""
    return delivery_connector(kind).program if kind in _DELIVERIES else Connector.program


def connectors() -> Iterator[Connector]:
    """Every kind of database that logins name."""
    return map(connector_of, sorted(set(_KINDS.values())))


def type_tables() -> list[KindPairs]:
    """How values are converted between the kinds, in the order of docs/types.md."""
    kinds = sorted({*_KINDS.values(), *_DELIVERIES.values()})
    return [table for kind in kinds for table in connector_of(kind).type_tables()]


@cache
def connector_of(kind: str) -> Connector:
    """Return the connector of a kind by its name."""
    found: Connector = import_module(f"ggshell.connectors.{kind}.connector").CONNECTOR
    return found
