"""The SQL of the heartbeat objects in MariaDB or MySQL: the tables, the trigger that receives heartbeats, and the views.

Times are in UTC with microseconds. A trigger cannot leave out the row that it is for: a heartbeat that only updates the
heartbeat table stays in the history with the time ``NEVER``, which no query and no view takes, until the next purge.
"""

from __future__ import annotations

from typing import Final

from ggshell.connectors.mysql.statements import quote_table
from ggshell.pipeline.heartbeat.lag_views import LAG_HISTORY_VIEW, LAG_VIEW, LagSql
from ggshell.pipeline.heartbeat.names import (
    HEARTBEAT_COLUMNS,
    HISTORY_COLUMNS,
    HISTORY_POSITIONS,
    INCOMING,
    OUTGOING,
    POSITIONS,
    HeartbeatNames,
)
from ggshell.types import TableName, text_literal

NEVER: Final = "1970-01-01 00:00:00"
NOW: Final = "UTC_TIMESTAMP(6)"
RECEIVE_TRIGGER: Final = "gg_receive_hb"
_LENGTHS: Final = {"database": 256, "extract": 128, "replicat": 128, "path": 4000, "csn": 128}
_WAY: Final = [
    f"{side}_{name}" for side in ("incoming", "outgoing") for name in ("extract", "routing_path", "replicat")
]
_FORM: Final = " ENGINE = InnoDB CHARACTER SET utf8mb4"


def column_type(name: str) -> str:
    """The type of a column of the three heartbeat tables."""
    if name.endswith(("_ts", "_timestamp")):
        return "datetime(6)"
    return f"varchar({_LENGTHS[name.rpartition('_')[2]]})"


def _columns(names: tuple[str, ...]) -> str:
    return ", ".join(f"{name} {column_type(name)}" for name in names)


def tables(names: HeartbeatNames) -> list[str]:
    """The four tables."""
    history = _columns(HISTORY_COLUMNS).replace(
        "heartbeat_received_ts datetime(6)", f"heartbeat_received_ts datetime(6) NOT NULL DEFAULT ({NOW})"
    )
    seed = f"{_columns(HEARTBEAT_COLUMNS)}, PRIMARY KEY (local_database)"
    return [
        f"CREATE TABLE {quote_table(names.seed)} ({seed}){_FORM}",
        f"CREATE TABLE {quote_table(names.heartbeat)} ({_columns(HEARTBEAT_COLUMNS)}){_FORM}",
        f"CREATE TABLE {quote_table(names.history)} ({history}, KEY received (heartbeat_received_ts),"
        f" KEY sent (incoming_heartbeat_ts)){_FORM}",
        f"CREATE TABLE {quote_table(names.jobs)} (job_name varchar(30) PRIMARY KEY, every_seconds decimal(12,3) NOT NULL,"
        f" retention_days integer, last_run datetime(6), next_run datetime(6), runs bigint NOT NULL DEFAULT 0){_FORM}",
    ]


def trigger(names: HeartbeatNames, database: str) -> str:
    """The trigger that handles a heartbeat inserted into the history; ``database``: the name of this database.

    A heartbeat without an outgoing path updates the rows of its incoming path that have one. It gets a row of its own
    only if there are none.
    """
    table = quote_table(names.heartbeat)
    values = {name: f"NEW.{name}" for name in HEARTBEAT_COLUMNS}
    values["heartbeat_timestamp"] = "NEW.incoming_heartbeat_ts"
    values |= {ours: f"NEW.{theirs}" for ours, theirs in zip(POSITIONS, HISTORY_POSITIONS, strict=True)}
    moved = ["heartbeat_timestamp", *(name for name in INCOMING if name not in _WAY), *POSITIONS]
    sets = ", ".join(f"{name} = {values[name]}" for name in moved)
    way_in = " AND ".join(f"{name} <=> NEW.{name}" for name in ("local_database", "remote_database", *INCOMING[:3]))
    way_out = " AND ".join(f"{name} <=> NEW.{name}" for name in OUTGOING[:3])
    # A name may be in the statement's own text, so it must be quoted for any sql_mode: it has no backslash.
    own = text_literal(database.replace("\\", "/"))
    return f"""CREATE TRIGGER {quote_table(names.of(RECEIVE_TRIGGER))} BEFORE INSERT ON {quote_table(names.history)}
FOR EACH ROW BEGIN
  DECLARE known INT DEFAULT 0;
  SET NEW.local_database = COALESCE(NEW.local_database, {own});
  IF NEW.outgoing_replicat IS NULL THEN
    SELECT COUNT(*) INTO known FROM {table} WHERE {way_in} AND outgoing_replicat IS NOT NULL;
  END IF;
  IF known > 0 THEN
    UPDATE {table} SET {sets} WHERE {way_in} AND outgoing_replicat IS NOT NULL;
    SET NEW.heartbeat_received_ts = '{NEVER}';
  ELSE
    DELETE FROM {table} WHERE {way_in} AND (outgoing_replicat IS NULL OR {way_out});
    INSERT INTO {table} ({", ".join(HEARTBEAT_COLUMNS)}) VALUES ({", ".join(values[name] for name in HEARTBEAT_COLUMNS)});
  END IF;
END"""


def send(names: HeartbeatNames, database: str) -> list[str]:
    """The statements that send a heartbeat.

    They update the seed, and every row of the heartbeat table, which reports to the other end what has arrived here.
    """
    own = text_literal(database.replace("\\", "/"))
    return [
        f"INSERT INTO {quote_table(names.seed)} (local_database, heartbeat_timestamp) VALUES ({own}, {NOW})"
        f" ON DUPLICATE KEY UPDATE heartbeat_timestamp = {NOW}",
        f"UPDATE {quote_table(names.heartbeat)} SET heartbeat_timestamp = {NOW}"
        " WHERE NOT remote_database <=> local_database",
    ]


def _path(side: str) -> str:
    names = ", ".join(f"h.{side}_{name}" for name in ("extract", "routing_path", "replicat"))
    return f"CONCAT('==> ', NULLIF(CONCAT_WS(' ==> ', {names}), ''), ' ==>')"


def seconds(later: str, earlier: str) -> str:
    """SQL for the seconds between two times."""
    return f"TIMESTAMPDIFF(MICROSECOND, {earlier}, {later}) / 1e6"


def received_of(history: TableName) -> str:
    """SQL for when the last heartbeat of a row ``h`` of the heartbeat table was committed here; NULL if unknown."""
    return (
        f"(SELECT MAX(r.heartbeat_received_ts) FROM {quote_table(history)} r"
        " WHERE r.incoming_heartbeat_ts = h.incoming_heartbeat_ts AND r.remote_database = h.remote_database"
        " AND r.incoming_replicat = h.incoming_replicat AND r.incoming_extract <=> h.incoming_extract"
        f" AND r.incoming_routing_path <=> h.incoming_routing_path AND r.heartbeat_received_ts > '{NEVER}')"
    )


_LAG: Final = LagSql(seconds, "CAST(NULL AS DECIMAL(20,6))", _path)


def lag_view(names: HeartbeatNames) -> str:
    """The view with the current state of every path."""
    received = f"COALESCE({received_of(names.history)}, h.incoming_replicat_ts)"
    return f"""CREATE OR REPLACE VIEW {quote_table(names.of(LAG_VIEW))} AS
SELECT {_LAG.lag_columns(NOW, received)}
  FROM {quote_table(names.heartbeat)} h"""


def lag_history_view(names: HeartbeatNames) -> str:
    """The view with every received heartbeat and the parts of its lag."""
    return f"""CREATE OR REPLACE VIEW {quote_table(names.of(LAG_HISTORY_VIEW))} AS
SELECT {_LAG.history_columns()}
  FROM {quote_table(names.history)} h WHERE h.heartbeat_received_ts > '{NEVER}'"""
