"""The views GG_LAG and GG_LAG_HISTORY. Their columns are the same in every database, which only writes a few expressions.

The parts of a lag add up to the total: without a routing path that part is missing, and the next part counts from the last
known time. The time from the other Replicat's clock to the commit in the other database is not reported back, so that part
is NULL for the outgoing direction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

LAG_VIEW: Final = "gg_lag"
LAG_HISTORY_VIEW: Final = "gg_lag_history"
_RECEIVED: Final = "h.heartbeat_received_ts"


class LagSql(NamedTuple):
    """How a database writes a lag: the seconds from the second time to the first, and a lag that is not known."""

    seconds: Callable[[str, str], str]
    unknown: str
    path: Callable[[str], str]
    """The path of a direction of row ``h`` as text: ``==> EXT1 ==> PMP1 ==> REP1 ==>``, or NULL if nothing is known."""

    def lag_columns(self, now: str, received: str) -> str:
        """The columns of the state of every path, of row ``h`` of the heartbeat table.

        ``received``: when its heartbeat was committed here, by which the incoming lag ends.
        """
        return f"""h.local_database, {now} AS current_local_ts, h.remote_database,
       {self._directions(now, received)},
       h.incoming_extract_restart_csn AS remote_extract_restart_csn,
       h.remote_database AS remote_database_db_unique_name,
       h.incoming_extract_restart_ts AS remote_extract_restart_csn_time,
       {self.seconds(now, "h.incoming_extract_restart_ts")} AS remote_db_oldest_open_txn_age,
       h.incoming_replicat_lw_csn AS local_replicat_lwm_csn"""

    def history_columns(self) -> str:
        """The columns of a received heartbeat and the parts of its lag, of row ``h`` of the history."""
        return f"""h.local_database, h.heartbeat_received_ts, h.remote_database,
       h.remote_database AS db_name, h.remote_database AS db_unique_name,
       {self._directions(_RECEIVED, _RECEIVED)},
       h.source_extract_restart_csn AS remote_extract_restart_csn,
       h.source_extract_restart_csn_ts AS remote_extract_restart_csn_time,
       {self.seconds(_RECEIVED, "h.source_extract_restart_csn_ts")} AS remote_db_oldest_open_txn_age,
       h.replicat_low_watermark_csn AS local_replicat_lwm_csn,
       {self._parts("incoming", _RECEIVED)},
       {self._parts("outgoing", None)}"""

    def _directions(self, now: str, received: str) -> str:
        return f"""{self.seconds(now, "h.incoming_heartbeat_ts")} AS incoming_heartbeat_age,
       {self.path("incoming")} AS incoming_path,
       {self.seconds(received, "h.incoming_heartbeat_ts")} AS incoming_lag,
       {self.seconds(now, "h.outgoing_heartbeat_ts")} AS outgoing_heartbeat_age,
       {self.path("outgoing")} AS outgoing_path,
       {self.seconds("h.outgoing_replicat_ts", "h.outgoing_heartbeat_ts")} AS outgoing_lag"""

    def _parts(self, side: str, received: str | None) -> str:
        sent, extract, routing, replicat = (
            f"h.{side}_{name}_ts" for name in ("heartbeat", "extract", "routing", "replicat")
        )
        applied = self.seconds(received, replicat) if received else self.unknown
        return f"""{self.seconds(extract, sent)} AS {side}_extract_lag,
       {self.seconds(routing, extract)} AS {side}_routine_lag,
       {self.seconds(replicat, f"COALESCE({routing}, {extract})")} AS {side}_replicat_read_lag,
       {applied} AS {side}_replicat_lag"""
