"""The SQL of the heartbeat objects in PostgreSQL: the tables, the trigger that receives heartbeats, and the jobs.

A Replicat inserts arriving heartbeats into the history as ordinary rows. The trigger there maintains the heartbeat
table, so both changes are part of the transaction that moves the checkpoint row.
"""

from __future__ import annotations

from functools import partial

from ggshell.pipeline.heartbeat.lag_views import LAG_HISTORY_VIEW, LAG_VIEW, LagSql
from ggshell.pipeline.heartbeat.names import (
    HEARTBEAT_COLUMNS,
    HISTORY_COLUMNS,
    HISTORY_POSITIONS,
    INCOMING,
    OUTGOING,
    POSITIONS,
    PURGE_JOB,
    UPDATE_JOB,
    HeartbeatNames,
)
from ggshell.types import postgres_literal, quote, quote_table

UTC_NOW = "clock_timestamp() AT TIME ZONE 'UTC'"
AHEAD_DAYS = 3
"""Partitions of the history are created for this many days beyond the next purge."""

UPDATE_PROCEDURE, PURGE_PROCEDURE = "gg_update_hb_tab", "gg_purge_hb_tab"
RECEIVE_FUNCTION, RUN_FUNCTION = "gg_receive_hb", "gg_hb_job_run"

_LENGTHS = {"database": 512, "extract": 128, "replicat": 128, "path": 4000, "csn": 128}
_WAY = [f"{side}_{name}" for side in ("incoming", "outgoing") for name in ("extract", "routing_path", "replicat")]


def column_type(name: str) -> str:
    """The type of a column of the three heartbeat tables."""
    if name.endswith(("_ts", "_timestamp")):
        return "timestamp(6)"
    return f"varchar({_LENGTHS[name.rpartition('_')[2]]})"


def _columns(names: tuple[str, ...]) -> str:
    return ", ".join(f"{name} {column_type(name)}" for name in names)


def seed_table(names: HeartbeatNames) -> str:
    return f"CREATE TABLE {quote_table(names.seed)} ({_columns(HEARTBEAT_COLUMNS)}, PRIMARY KEY (local_database))"


def heartbeat_table(names: HeartbeatNames) -> list[str]:
    """The table, and the unique index on incoming and outgoing path that identifies a row."""
    return [
        f"CREATE TABLE {quote_table(names.heartbeat)} ({_columns(HEARTBEAT_COLUMNS)}) WITH (fillfactor = 50)",
        f"CREATE UNIQUE INDEX {quote(names.table + '_way')} ON {quote_table(names.heartbeat)} ({_identity()})",
    ]


def _identity() -> str:
    return ", ".join(["local_database", "coalesce(remote_database, '')", *(f"coalesce({name}, '')" for name in _WAY)])


def history_table(names: HeartbeatNames, *, partitioned: bool) -> list[str]:
    table = quote_table(names.history)
    columns = _columns(HISTORY_COLUMNS).replace(
        "heartbeat_received_ts timestamp(6)", f"heartbeat_received_ts timestamp(6) NOT NULL DEFAULT ({UTC_NOW})"
    )
    made = [f"CREATE TABLE {table} ({columns}){' PARTITION BY RANGE (heartbeat_received_ts)' if partitioned else ''}"]
    if partitioned:
        rest = quote_table(names.of(f"{names.history.name}_rest"))
        made.append(f"CREATE TABLE {rest} PARTITION OF {table} DEFAULT")
    made += [
        f"CREATE INDEX {quote(names.history.name + '_received')} ON {table} (heartbeat_received_ts)",
        f"CREATE INDEX {quote(names.history.name + '_sent')} ON {table} (incoming_heartbeat_ts)",
    ]
    return made


def jobs_table(names: HeartbeatNames) -> str:
    return (
        f"CREATE TABLE {quote_table(names.jobs)} (job_name varchar(30) PRIMARY KEY, every_seconds numeric NOT NULL,"
        " retention_days integer, last_run timestamp(6), next_run timestamp(6), runs bigint NOT NULL DEFAULT 0)"
    )


def receive_function(names: HeartbeatNames) -> list[str]:
    """The trigger function that handles a heartbeat inserted into the history.

    A heartbeat without an outgoing path updates the rows of its incoming path that have one. It gets a row of its own
    only if there are none.
    """
    table, function = quote_table(names.heartbeat), quote_table(names.of(RECEIVE_FUNCTION))
    incoming = [name for name in INCOMING if name not in _WAY]
    moved = ["heartbeat_timestamp", *incoming, *POSITIONS]
    values = {name: f"NEW.{name}" for name in HEARTBEAT_COLUMNS}
    values["heartbeat_timestamp"] = "NEW.incoming_heartbeat_ts"
    values |= {ours: f"NEW.{theirs}" for ours, theirs in zip(POSITIONS, HISTORY_POSITIONS, strict=True)}
    sets = ", ".join(f"{name} = {values[name]}" for name in moved)
    way_in = " AND ".join(f"h.{name} IS NOT DISTINCT FROM NEW.{name}" for name in ("remote_database", *INCOMING[:3]))
    here = f"h.local_database = NEW.local_database AND {way_in} AND h.outgoing_replicat"
    conflict = ", ".join(
        f"{name} = excluded.{name}" for name in (*moved, *(name for name in OUTGOING if name not in _WAY))
    )
    return [
        f"""CREATE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS $hb$
BEGIN
  NEW.local_database := coalesce(NEW.local_database, current_database());
  IF NEW.outgoing_replicat IS NULL THEN
    UPDATE {table} h SET {sets} WHERE {here} IS NOT NULL;
    IF FOUND THEN RETURN NULL; END IF;
  ELSE
    DELETE FROM {table} h WHERE {here} IS NULL;
  END IF;
  INSERT INTO {table} ({", ".join(HEARTBEAT_COLUMNS)})
  VALUES ({", ".join(values[name] for name in HEARTBEAT_COLUMNS)})
  ON CONFLICT ({_identity()}) DO UPDATE SET {conflict};
  RETURN NEW;
END $hb$""",
        f"CREATE TRIGGER {quote(RECEIVE_FUNCTION)} BEFORE INSERT ON {quote_table(names.history)}"
        f" FOR EACH ROW EXECUTE FUNCTION {function}()",
        f"ALTER TABLE {quote_table(names.history)} ENABLE ALWAYS TRIGGER {quote(RECEIVE_FUNCTION)}",
    ]


def update_procedure(names: HeartbeatNames) -> str:
    """The procedure that sends a heartbeat.

    It updates the seed, and every row of the heartbeat table, which reports to the other end what has arrived here.
    """
    return f"""CREATE PROCEDURE {quote_table(names.of(UPDATE_PROCEDURE))}() LANGUAGE plpgsql AS $hb$
DECLARE moment timestamp(6) := {UTC_NOW};
BEGIN
  INSERT INTO {quote_table(names.seed)} (local_database, heartbeat_timestamp) VALUES (current_database(), moment)
    ON CONFLICT (local_database) DO UPDATE SET heartbeat_timestamp = excluded.heartbeat_timestamp;
  UPDATE {quote_table(names.heartbeat)} SET heartbeat_timestamp = moment
   WHERE remote_database IS DISTINCT FROM local_database;
END $hb$"""


def purge_procedure(names: HeartbeatNames) -> str:
    """The procedure that deletes rows older than the retention time. A partitioned history drops whole days at once."""
    history, jobs = quote_table(names.history), quote_table(names.jobs)
    rest = quote_table(names.of(f"{names.history.name}_rest"))
    schema, name, prefix = map(postgres_literal, (names.schema, history, f"{names.history.name}_d"))
    return f"""CREATE PROCEDURE {quote_table(names.of(PURGE_PROCEDURE))}() LANGUAGE plpgsql AS $hb$
DECLARE
  today date := ({UTC_NOW})::date;
  job record;
  kept timestamp;
  day date;
  part text;
BEGIN
  SELECT retention_days, every_seconds INTO job FROM {jobs} WHERE job_name = '{PURGE_JOB}';
  kept := {UTC_NOW} - make_interval(days => coalesce(job.retention_days, 30));
  IF (SELECT relkind = 'p' FROM pg_class WHERE oid = {name}::regclass) THEN
    FOR part IN SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
                 WHERE i.inhparent = {name}::regclass AND c.relname ~ ('^' || {prefix} || '[0-9]{{8}}$')
                   AND to_date(right(c.relname, 8), 'YYYYMMDD') + 1 <= kept LOOP
      EXECUTE format('DROP TABLE %I.%I', {schema}, part);
    END LOOP;
    FOR day IN SELECT generate_series(today, today + (coalesce(job.every_seconds, 0) / 86400)::int + {AHEAD_DAYS}, '1 day')
    LOOP
      part := {prefix} || to_char(day, 'YYYYMMDD');
      IF to_regclass(format('%I.%I', {schema}, part)) IS NULL
         AND NOT EXISTS (SELECT FROM {rest} WHERE heartbeat_received_ts >= day AND heartbeat_received_ts < day + 1) THEN
        EXECUTE format('CREATE TABLE %I.%I PARTITION OF %s FOR VALUES FROM (%L) TO (%L)',
                       {schema}, part, {name}, day, day + 1);
      END IF;
    END LOOP;
  END IF;
  DELETE FROM {history} WHERE heartbeat_received_ts < kept;
END $hb$"""


def run_function(names: HeartbeatNames) -> str:
    """The function that runs the jobs that are due. It may be called by anyone at any time.

    It returns how many ran, and the seconds until the next one.
    """
    jobs = quote_table(names.jobs)
    call = {
        UPDATE_JOB: quote_table(names.of(UPDATE_PROCEDURE)),
        PURGE_JOB: quote_table(names.of(PURGE_PROCEDURE)),
    }
    return f"""CREATE FUNCTION {quote_table(names.of(RUN_FUNCTION))}(OUT ran integer, OUT seconds_to_next numeric)
LANGUAGE plpgsql AS $hb$
DECLARE job record;
BEGIN
  ran := 0;
  FOR job IN SELECT * FROM {jobs} WHERE next_run <= {UTC_NOW} ORDER BY job_name FOR UPDATE SKIP LOCKED LOOP
    IF job.job_name = '{UPDATE_JOB}' THEN CALL {call[UPDATE_JOB]}(); ELSE CALL {call[PURGE_JOB]}(); END IF;
    UPDATE {jobs} SET runs = runs + 1, last_run = {UTC_NOW},
      next_run = greatest(job.next_run + make_interval(secs => job.every_seconds::float8), {UTC_NOW})
     WHERE job_name = job.job_name;
    ran := ran + 1;
  END LOOP;
  SELECT extract(epoch FROM min(next_run) - {UTC_NOW}) INTO seconds_to_next FROM {jobs};
END $hb$"""


# The views GG_LAG and GG_LAG_HISTORY in PostgreSQL.


def path_sql(row: str, side: str) -> str:
    """SQL for a path as text: ``==> EXT1 ==> PMP1 ==> REP1 ==>``, or NULL if nothing is known."""
    names = ", ".join(f"{row}.{side}_{name}" for name in ("extract", "routing_path", "replicat"))
    return f"'==> ' || nullif(concat_ws(' ==> ', {names}), '') || ' ==>'"


def _seconds(later: str, earlier: str) -> str:
    return f"extract(epoch FROM {later} - {earlier})"


_LAG = LagSql(_seconds, "NULL::numeric", partial(path_sql, "h"))


def lag_view(names: HeartbeatNames) -> str:
    """The view with the current state of every path.

    The incoming lag ends at the target's commit, as long as the history contains it.
    """
    history = quote_table(names.history)
    received = (
        f"coalesce((SELECT max(r.heartbeat_received_ts) FROM {history} r"
        " WHERE r.incoming_heartbeat_ts = h.incoming_heartbeat_ts AND r.remote_database = h.remote_database"
        " AND r.incoming_replicat = h.incoming_replicat AND r.incoming_extract IS NOT DISTINCT FROM h.incoming_extract"
        " AND r.incoming_routing_path IS NOT DISTINCT FROM h.incoming_routing_path), h.incoming_replicat_ts)"
    )
    return f"""CREATE VIEW {quote_table(names.of(LAG_VIEW))} AS
SELECT {_LAG.lag_columns("n.current_local_ts", received)}
  FROM {quote_table(names.heartbeat)} h
 CROSS JOIN (SELECT (statement_timestamp() AT TIME ZONE 'UTC')::timestamp(6) AS current_local_ts) n"""


def lag_history_view(names: HeartbeatNames) -> str:
    """The view with every received heartbeat and the parts of its lag."""
    return f"""CREATE VIEW {quote_table(names.of(LAG_HISTORY_VIEW))} AS
SELECT {_LAG.history_columns()}
  FROM {quote_table(names.history)} h"""
