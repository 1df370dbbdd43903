"""Texts in SQL statements keep quotes and backslashes, whatever the value of standard_conforming_strings."""

from __future__ import annotations

import pytest
from psycopg import sql

from ggshell.connectors.heartbeat_tables import HeartbeatTableSettings
from ggshell.connectors.postgres import heartbeat, session
from ggshell.pipeline.heartbeat.names import HeartbeatNames
from ggshell.types import postgres_literal

TEXTS = ("", "plain", "it's", "\\", "\\'", "'\\", "a\\nb", "\\'; SELECT 1; --", "Ä\\u0041")


@pytest.mark.parametrize("setting", ["on", "off"])
def test_a_literal_has_the_value_of_its_text(north: str, setting: str) -> None:
    with session.connect(north) as connection:
        connection.execute(f"SET standard_conforming_strings = {setting}")
        found = connection.execute(f"SELECT {', '.join(map(postgres_literal, TEXTS))}").fetchone()
    assert found == TEXTS


@pytest.mark.parametrize("setting", ["on", "off"])
def test_the_heartbeat_tables_may_be_in_a_schema_with_an_odd_name(north: str, setting: str) -> None:
    schema = "it's \\odd"
    with session.connect(north) as connection:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        connection.execute(f"SET standard_conforming_strings = {setting}")
        heartbeat.add(connection, HeartbeatNames(schema), HeartbeatTableSettings(partitioned=True))
        days = connection.execute(
            "SELECT count(*) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE c.relname ~ '_d[0-9]{8}$'"
        ).fetchone()
    assert days is not None
    assert days[0] > 1
