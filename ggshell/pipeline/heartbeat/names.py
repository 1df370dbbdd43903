"""The names of the heartbeat objects and of their columns."""

from __future__ import annotations

from typing import NamedTuple

from ggshell.types import TableName, split_name

DEFAULT_TABLE = "gg_heartbeat"
UPDATE_JOB = "GG_UPDATE_HEARTBEATS"
PURGE_JOB = "GG_PURGE_HEARTBEATS"

PATHS = ("extract", "routing_path", "replicat")
TIMES = ("heartbeat_ts", "extract_ts", "routing_ts", "replicat_ts")
INCOMING = tuple(f"incoming_{name}" for name in PATHS + TIMES)
OUTGOING = tuple(f"outgoing_{name}" for name in PATHS + TIMES)
POSITIONS = (
    "incoming_replicat_lw_csn",
    "incoming_extract_heartbeat_csn",
    "incoming_extract_restart_csn",
    "incoming_extract_restart_ts",
)
HEARTBEAT_COLUMNS = ("local_database", "heartbeat_timestamp", "remote_database", *INCOMING, *OUTGOING, *POSITIONS)
"""The columns of the heartbeat table and of the seed table."""

HISTORY_POSITIONS = (
    "replicat_low_watermark_csn",
    "source_extract_heartbeat_csn",
    "source_extract_restart_csn",
    "source_extract_restart_csn_ts",
)
HISTORY_COLUMNS = (
    "local_database",
    "heartbeat_received_ts",
    "remote_database",
    *INCOMING,
    *OUTGOING,
    *HISTORY_POSITIONS,
)


class HeartbeatNames(NamedTuple):
    """The heartbeat objects of one database, all in one schema."""

    schema: str
    table: str = DEFAULT_TABLE

    @property
    def heartbeat(self) -> TableName:
        return TableName(self.schema, self.table)

    @property
    def seed(self) -> TableName:
        return TableName(self.schema, f"{self.table}_seed")

    @property
    def history(self) -> TableName:
        return TableName(self.schema, f"{self.table}_history")

    @property
    def jobs(self) -> TableName:
        """The table of the two jobs: their frequencies and when they last ran."""
        return TableName(self.schema, f"{self.table}_jobs")

    @property
    def captured(self) -> frozenset[TableName]:
        """The tables that Extract captures without a TABLE line."""
        return frozenset((self.seed, self.heartbeat))

    @property
    def kept(self) -> frozenset[TableName]:
        """The tables that are never captured, even if a TABLE line selects them."""
        return frozenset((self.history, self.jobs))

    def of(self, name: str) -> TableName:
        """Return the name of another object in the same schema, such as a view or a procedure."""
        return TableName(self.schema, name)


def heartbeat_names(schema: str, table: str = "") -> HeartbeatNames | None:
    """Return the names from GGSCHEMA and HEARTBEATTABLE (``[schema.]table``), or None if neither gives a schema.

    Raises ValueError if a text is not a valid name.
    """
    parts = split_name(table) if table else [DEFAULT_TABLE]
    if len(parts) > 2:
        raise ValueError(f"a heartbeat table must have the form schema.table: {table!r}")
    owner = parts[0] if len(parts) == 2 else (split_name(schema)[-1] if schema else "")
    return HeartbeatNames(owner, parts[-1]) if owner else None
