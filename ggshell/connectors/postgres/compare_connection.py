"""The connection on which COMPARE queries a PostgreSQL database."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ggshell.connectors.postgres.session import execute

if TYPE_CHECKING:
    import psycopg


class CompareConnection:
    """Runs queries, which another thread may cancel."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def ask(self, query: str, values: Sequence[str]) -> list[tuple[Any, ...]]:
        return execute(self._connection, query, list(values))

    def cancel(self) -> None:
        import psycopg

        with suppress(psycopg.Error):  # the connection is lost, so nothing runs any more
            self._connection.cancel()
