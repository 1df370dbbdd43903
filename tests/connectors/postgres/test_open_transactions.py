"""The open transactions of a database, as users with and without the right to see other sessions see them."""

from __future__ import annotations

import psycopg
import pytest

from ggshell.clock import SystemClock
from ggshell.connectors.postgres.open_transactions import open_transactions


@pytest.mark.parametrize("role", ["superuser", "a user who cannot see when the transactions of others began"])
def test_open_transactions_of_others_are_listed(north: str, role: str) -> None:
    """Regression: SEND EXTRACT SHOWTRANS ended in an internal error if Extract's user lacked pg_read_all_stats."""
    with psycopg.connect(north) as writer, psycopg.connect(north, autocommit=True) as reader:
        if role != "superuser":
            reader.execute("DROP ROLE IF EXISTS reader_of_open; CREATE ROLE reader_of_open; SET ROLE reader_of_open")
        xid = writer.execute("SELECT pg_current_xact_id()::text::bigint").fetchall()[0][0]
        found = {each.xid: each for each in open_transactions(reader)}
        assert xid in found
        assert abs(found[xid].begin_time - SystemClock().now()) < 60_000_000
        reader.execute("RESET ROLE; DROP ROLE IF EXISTS reader_of_open")
