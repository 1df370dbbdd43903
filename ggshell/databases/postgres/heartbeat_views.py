"""GG_LAG and GG_LAG_HISTORY in PostgreSQL.

The parts of a lag add up to the whole: a way without a path has no part for it, and what follows begins where the last
known time stands.  What an outgoing heartbeat took from Replicat's clock to the other database's commit is not told back,
so that part of the outgoing direction is NULL.
"""

from __future__ import annotations

from ggshell.databases.postgres.describe import quote_table
from ggshell.heartbeat.names import HeartbeatNames

LAG_VIEW, LAG_HISTORY_VIEW = "gg_lag", "gg_lag_history"


def path_sql(row: str, side: str) -> str:
    """A way as text: ``==> EXT1 ==> PMP1 ==> REP1 ==>``; NULL where nothing is known."""
    names = ", ".join(f"{row}.{side}_{name}" for name in ("extract", "routing_path", "replicat"))
    return f"'==> ' || nullif(concat_ws(' ==> ', {names}), '') || ' ==>'"


def _seconds(later: str, earlier: str) -> str:
    return f"extract(epoch FROM {later} - {earlier})"


def lag_view(names: HeartbeatNames) -> str:
    """The state of every way now.  The incoming lag ends with the target's commit where the history still has it."""
    history = quote_table(names.history)
    received = (
        f"coalesce((SELECT max(r.heartbeat_received_ts) FROM {history} r"
        " WHERE r.incoming_heartbeat_ts = h.incoming_heartbeat_ts AND r.remote_database = h.remote_database"
        " AND r.incoming_replicat = h.incoming_replicat AND r.incoming_extract IS NOT DISTINCT FROM h.incoming_extract"
        " AND r.incoming_routing_path IS NOT DISTINCT FROM h.incoming_routing_path), h.incoming_replicat_ts)"
    )
    return f"""CREATE VIEW {quote_table(names.of(LAG_VIEW))} AS
SELECT h.local_database, n.current_local_ts, h.remote_database,
       {_seconds("n.current_local_ts", "h.incoming_heartbeat_ts")} AS incoming_heartbeat_age,
       {path_sql("h", "incoming")} AS incoming_path,
       {_seconds(received, "h.incoming_heartbeat_ts")} AS incoming_lag,
       {_seconds("n.current_local_ts", "h.outgoing_heartbeat_ts")} AS outgoing_heartbeat_age,
       {path_sql("h", "outgoing")} AS outgoing_path,
       {_seconds("h.outgoing_replicat_ts", "h.outgoing_heartbeat_ts")} AS outgoing_lag,
       h.incoming_extract_restart_csn AS remote_extract_restart_csn,
       h.remote_database AS remote_database_db_unique_name,
       h.incoming_extract_restart_ts AS remote_extract_restart_csn_time,
       {_seconds("n.current_local_ts", "h.incoming_extract_restart_ts")} AS remote_db_oldest_open_txn_age,
       h.incoming_replicat_lw_csn AS local_replicat_lwm_csn
  FROM {quote_table(names.heartbeat)} h
 CROSS JOIN (SELECT (statement_timestamp() AT TIME ZONE 'UTC')::timestamp(6) AS current_local_ts) n"""


def _parts(side: str, received: str | None) -> str:
    sent, extract = f"h.{side}_heartbeat_ts", f"h.{side}_extract_ts"
    routing, replicat = f"h.{side}_routing_ts", f"h.{side}_replicat_ts"
    applied = _seconds(received, replicat) if received else "NULL::numeric"
    return f"""{_seconds(extract, sent)} AS {side}_extract_lag,
       {_seconds(routing, extract)} AS {side}_routine_lag,
       {_seconds(replicat, f"coalesce({routing}, {extract})")} AS {side}_replicat_read_lag,
       {applied} AS {side}_replicat_lag"""


def lag_history_view(names: HeartbeatNames) -> str:
    """Every heartbeat that came, with its parts."""
    received = "h.heartbeat_received_ts"
    return f"""CREATE VIEW {quote_table(names.of(LAG_HISTORY_VIEW))} AS
SELECT h.local_database, h.heartbeat_received_ts, h.remote_database,
       h.remote_database AS db_name, h.remote_database AS db_unique_name,
       {_seconds(received, "h.incoming_heartbeat_ts")} AS incoming_heartbeat_age,
       {path_sql("h", "incoming")} AS incoming_path,
       {_seconds(received, "h.incoming_heartbeat_ts")} AS incoming_lag,
       {_seconds(received, "h.outgoing_heartbeat_ts")} AS outgoing_heartbeat_age,
       {path_sql("h", "outgoing")} AS outgoing_path,
       {_seconds("h.outgoing_replicat_ts", "h.outgoing_heartbeat_ts")} AS outgoing_lag,
       h.source_extract_restart_csn AS remote_extract_restart_csn,
       h.source_extract_restart_csn_ts AS remote_extract_restart_csn_time,
       {_seconds(received, "h.source_extract_restart_csn_ts")} AS remote_db_oldest_open_txn_age,
       h.replicat_low_watermark_csn AS local_replicat_lwm_csn,
       {_parts("incoming", received)},
       {_parts("outgoing", None)}
  FROM {quote_table(names.history)} h"""
