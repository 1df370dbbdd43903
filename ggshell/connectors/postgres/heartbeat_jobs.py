"""The heartbeat jobs of one PostgreSQL database, which Manager runs if the database has no scheduler."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ggshell.connectors.postgres import heartbeat, session
from ggshell.errors import GgsError
from ggshell.monitoring.heartbeat_lag import Lag
from ggshell.pipeline.heartbeat.names import HeartbeatNames

ABSENT_SECONDS = 30.0
"""Seconds between two checks of a database without heartbeat tables."""
USUAL_FREQUENCY = 60.0


class PostgresHeartbeats:
    """A database that a group of the home logs in to."""

    def __init__(self, login: str, names: HeartbeatNames) -> None:
        self.name = session.place(login)
        self._login = login
        self._names = names
        self._connection: Any = None

    def run(self) -> float | None:
        with self._connected() as connection:
            if not heartbeat.exists(connection, self._names):
                return ABSENT_SECONDS
            return heartbeat.run_jobs(connection, self._names)[1]

    def lags(self) -> tuple[list[Lag], float]:
        with self._connected() as connection:
            if not heartbeat.exists(connection, self._names):
                return [], USUAL_FREQUENCY
            frequency = float(heartbeat.info(connection, self._names).settings.frequency)
            return heartbeat.read_lags(connection, self._names), frequency or USUAL_FREQUENCY

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        """Yield the connection; after an error, the next use opens a new one."""
        try:
            if self._connection is None:
                self._connection = session.connect(self._login, program="ggshell heartbeat jobs")
            yield self._connection
        except GgsError:
            self.close()
            raise
