"""A last transaction that goes the whole way: where it is visible, every transaction before it is."""

from __future__ import annotations

from uuid import uuid4

import psycopg
from psycopg import sql

from ggshell.demo.load import SCHEMA


def send_marker(source: str) -> str:
    """Commit one row in the source's shop; the text by which it is known."""
    text = f"last {uuid4()}"
    statement = 'INSERT INTO {} ("User", "When", "select") VALUES (%s, now(), NULL)'
    with psycopg.connect(source, autocommit=True) as connection:
        connection.execute(sql.SQL(statement).format(sql.Identifier(SCHEMA, "Audit Trail")), (text,))
    return text


def has_marker(target: psycopg.Connection, schema: str, text: str) -> bool:
    """Whether the row has reached a schema of the target."""
    query = sql.SQL('SELECT FROM {} WHERE "User" = %s').format(sql.Identifier(schema, "Audit Trail"))
    return bool(target.execute(query, (text,)).fetchall())
