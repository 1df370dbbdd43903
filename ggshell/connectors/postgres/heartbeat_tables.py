"""The heartbeat objects of a PostgreSQL database, as commands ask for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ggshell.connectors.postgres import heartbeat, heartbeat_spreads
from ggshell.pipeline.heartbeat.names import HeartbeatNames

if TYPE_CHECKING:
    import psycopg

    from ggshell.connectors.heartbeat_tables import (
        ChangedObject,
        HeartbeatState,
        HeartbeatTableChanges,
        HeartbeatTableSettings,
    )
    from ggshell.monitoring.heartbeat_lag import Lag, Way
    from ggshell.monitoring.spreads import Objective, Spread


class PostgresHeartbeatTables(NamedTuple):
    """The heartbeat objects with these names in a database."""

    connection: psycopg.Connection[Any]
    names: HeartbeatNames

    def require(self) -> None:
        heartbeat.require(self.connection, self.names)

    def add(self, settings: HeartbeatTableSettings) -> list[ChangedObject]:
        return heartbeat.add(self.connection, self.names, settings)

    def alter(self, changes: HeartbeatTableChanges) -> list[ChangedObject]:
        return heartbeat.alter(self.connection, self.names, changes)

    def delete(self) -> list[ChangedObject]:
        return heartbeat.delete(self.connection, self.names)

    def upgrade(self) -> list[ChangedObject]:
        return heartbeat.upgrade(self.connection, self.names)

    def state(self) -> HeartbeatState:
        return heartbeat.info(self.connection, self.names)

    def delete_entries(self, group: str) -> int:
        return heartbeat.delete_entries(self.connection, self.names, group)

    def lags(self, remote: str = "") -> list[Lag]:
        return heartbeat.read_lags(self.connection, self.names, remote)

    def least_lags(self, since: int) -> Mapping[Way, tuple[float | None, float | None]]:
        return heartbeat.read_least_lags(self.connection, self.names, since)

    def time(self) -> int:
        return heartbeat.database_time(self.connection)

    def spreads(self, period: str, since: int, remote: str = "") -> list[Spread]:
        return heartbeat_spreads.read_spreads(self.connection, self.names, period, since, remote)

    def objectives(self, service: tuple[float, float], since: int, remote: str = "") -> list[Objective]:
        return heartbeat_spreads.read_objectives(self.connection, self.names, service, since, remote)

    def history(self, columns: Sequence[str], since: int) -> Iterator[bytes]:
        return heartbeat_spreads.copy_history(self.connection, self.names, columns, since)
