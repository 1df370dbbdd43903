"""Temporary databases on the servers of the tests."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator

import psycopg

from ggshell.demo.postgres_server import PostgresServer

_NUMBERS = itertools.count(1)


def new_database(server: PostgresServer) -> Iterator[str]:
    """The DSN of a new, empty database; it and its slots are dropped afterwards."""
    name = f"t{next(_NUMBERS)}"
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} STRATEGY FILE_COPY")  # a third of the time, without fsync
    yield server.dsn(name)
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE database = %s AND active", [name]
        )
        slots = connection.execute("SELECT slot_name FROM pg_replication_slots WHERE database = %s", [name]).fetchall()
        for (slot,) in slots:
            _drop_slot(connection, slot)
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@contextlib.contextmanager
def all_origins_in_use(connection: psycopg.Connection) -> Iterator[None]:
    """No session of the server can use another replication origin within the block. The connection can be used."""
    names: list[str] = []
    try:
        while True:
            names.append(f"t_used_{len(names)}")
            connection.execute("SELECT pg_replication_origin_create(%s)", [names[-1]])
            connection.execute("SELECT pg_replication_origin_session_setup(%s)", [names[-1]])
            connection.execute("SELECT pg_replication_origin_session_reset()")
    except psycopg.errors.ConfigurationLimitExceeded:
        yield
    finally:
        connection.execute("SELECT pg_replication_origin_drop(name) FROM unnest(%s::text[]) name", [names])


def _drop_slot(connection: psycopg.Connection, slot: str) -> None:
    """Drop a slot as soon as its walsender has ended (the server takes a moment to notice)."""
    connection.execute("SET statement_timeout = '20s'")
    connection.execute(
        f"""DO $$ BEGIN LOOP
             IF NOT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = '{slot}' AND active) THEN EXIT; END IF;
             PERFORM pg_sleep(0.01);
           END LOOP; END $$"""
    )
    with contextlib.suppress(psycopg.errors.UndefinedObject):  # a temporary slot ends with its session
        connection.execute("SELECT pg_drop_replication_slot(%s)", [slot])
