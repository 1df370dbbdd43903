"""The end of a transaction raises the project's own errors, as a statement does."""

from __future__ import annotations

import psycopg
import pytest

from ggshell.connectors.postgres.session import execute, transaction
from ggshell.errors import ConnectionLostError, DatabaseError


def test_a_connection_lost_before_the_commit_is_reported_as_lost(north: str) -> None:
    connection = psycopg.connect(north, autocommit=True)
    with pytest.raises(ConnectionLostError), transaction(connection), psycopg.connect(north, autocommit=True) as other:
        execute(connection, "SELECT 1")
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [connection.info.backend_pid])
    assert connection.closed


def test_an_error_of_the_commit_is_reported_in_the_words_of_the_database(north: str) -> None:
    with psycopg.connect(north, autocommit=True) as connection:
        execute(connection, "CREATE TABLE twice (id int UNIQUE DEFERRABLE INITIALLY DEFERRED)")
        with pytest.raises(DatabaseError, match="duplicate key"), transaction(connection):
            execute(connection, "INSERT INTO twice VALUES (1), (1)")
