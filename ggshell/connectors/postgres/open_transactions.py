"""The open transactions of a PostgreSQL database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ggshell.connectors.postgres.session import execute
from ggshell.connectors.source import Unread

if TYPE_CHECKING:
    import psycopg

# Without pg_read_all_stats, the server hides when the transactions of other users began: they count as just begun.
_OPEN = """
SELECT backend_xid::text::bigint, extract(epoch FROM coalesce(xact_start, clock_timestamp())) * 1000000, pid,
       coalesce(usename::text, '')
  FROM pg_stat_activity WHERE backend_xid IS NOT NULL AND datname = current_database()
 UNION ALL
SELECT transaction::text::bigint, extract(epoch FROM prepared) * 1000000, 0, owner::text
  FROM pg_prepared_xacts WHERE database = current_database() ORDER BY 2"""


def open_transactions(connection: psycopg.Connection[Any]) -> list[Unread]:
    """Return the transactions that have written something, the oldest first."""
    return [Unread(int(xid), int(begin), pid, user) for xid, begin, pid, user in execute(connection, _OPEN)]
