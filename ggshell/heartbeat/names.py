"""What the heartbeat objects and their columns are called."""

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
"""Of the heartbeat table, and of the seed beside it."""

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
    """The objects of one database, all in one schema."""

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
        """The table of the two jobs: how often they are due, when they ran."""
        return TableName(self.schema, f"{self.table}_jobs")

    @property
    def captured(self) -> frozenset[TableName]:
        """The tables whose changes Extract takes without a TABLE line."""
        return frozenset((self.seed, self.heartbeat))

    @property
    def kept(self) -> frozenset[TableName]:
        """The tables that stay in their database whatever a TABLE line says."""
        return frozenset((self.history, self.jobs))

    def of(self, name: str) -> TableName:
        """Another object of the same schema: a view, a procedure."""
        return TableName(self.schema, name)


def heartbeat_names(schema: str, table: str = "") -> HeartbeatNames | None:
    """The names by GGSCHEMA and HEARTBEATTABLE (``[schema.]table``), None when neither gives a schema.

    Raises ValueError for a text that is no name.
    """
    parts = split_name(table) if table else [DEFAULT_TABLE]
    if len(parts) > 2:
        raise ValueError(f"a heartbeat table is written schema.table: {table!r}")
    owner = parts[0] if len(parts) == 2 else (split_name(schema)[-1] if schema else "")
    return HeartbeatNames(owner, parts[-1]) if owner else None
