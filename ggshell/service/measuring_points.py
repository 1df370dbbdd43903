"""What the measuring points of the processes answer, one type for each kind of point.

The vendor has one address for all kinds, so its response is one of these types; ``$schema`` says which.
"""

from __future__ import annotations

from typing import Annotated, Any, Union

from ggshell.service.answers import Object
from ggshell.service.bodies import described
from ggshell.service.responses import Resource, Response, TrailPlace

Reply = Annotated[Object, described("What the process answers; its fields depend on the kind of process.")]


class ProcessFields(Response):
    """A process of the home. ``process_id`` and ``port_number``: 0 for none."""

    process_name: str
    process_type: str
    process_mode: str
    process_state: str
    process_id: int
    port_number: int
    start_time: str | None
    state_time: str | None
    last_heartbeat: str | None
    first_message: str | None
    last_message: str | None


class ProcessList(Resource, tag="mpoints:processes"):
    """The processes of the home."""

    processes: list[ProcessFields]


class ProcessPoint(ProcessFields, tag_field="$schema", tag="mpoints:process"):
    """A process."""


class ProcessPerformance(Resource, tag="mpoints:processPerformance", kw_only=True):
    """What a process uses: times in microseconds, sizes in bytes. Only its id if it does not run."""

    process_id: int
    process_start_time: str | None = None
    cpu_time_us: int | None = None
    user_time_us: int | None = None
    kernel_time_us: int | None = None
    working_set_size: int | None = None
    private_bytes: int | None = None
    page_faults: int | None = None
    io_read_bytes: int | None = None
    io_read_count: int | None = None
    io_write_bytes: int | None = None
    io_write_count: int | None = None
    thread_count: int | None = None


class ThreadFields(Response):
    """A thread of a process; times in microseconds."""

    thread_id: int
    thread_name: str
    thread_state: str
    cpu_time_us: int
    user_time_us: int
    kernel_time_us: int


class ThreadPerformance(Resource, tag="mpoints:threadPerformance"):
    """The threads of a process."""

    thread_performance: list[ThreadFields]


class ServiceHealth(Resource, tag="mpoints:serviceHealth"):
    """How many groups run as they should; one that has abended is unhealthy."""

    is_healthy: bool
    critical_resources_healthy: int
    critical_resources_unhealthy: int
    unhealthy_resources: list[str]


class Statistics(Resource):
    """The operations since the process started."""

    start_time: str | None
    mapped_total_inserts: int
    mapped_total_updates: int
    mapped_total_deletes: int
    mapped_total_upserts: int
    mapped_total_truncates: int
    mapped_total_discards: int
    mapped_total_ignores: int
    ddl_operations: int
    ddl_mapped: int
    ddl_unmapped: int
    ddl_other: int
    ddl_excluded: int
    ddl_errors: int
    ddl_retried: int
    ddl_discarded: int
    ddl_ignored: int
    heartbeats: int


class StatisticsExtract(Statistics, tag="mpoints:statisticsExtract"):
    """The operations of an Extract."""


class StatisticsReplicat(Statistics, tag="mpoints:statisticsReplicat"):
    """The operations of a Replicat."""


class PathStatistics(Statistics, tag="mpoints:distsrvrPathStats"):
    """The operations of a distribution path."""


class PathNetwork(Response, kw_only=True):
    """The connection of a path to another home. ``total_bytes_sent``: on the line; ``round_trip_time``: in microseconds."""

    path_name: str
    remote_uri: str
    connected: bool
    total_bytes_sent: int
    trail_bytes_sent: int
    bytes_in_flight: int
    round_trip_time: int


class PathNetworkStatistics(Resource, tag="mpoints:distsrvrNetworkStats"):
    """The connections of a path; none for a trail of this home, or while the path does not run."""

    distsrvr_network_stats: list[PathNetwork]


class ArrivingTrail(Response, kw_only=True):
    """What has arrived of a trail since the service started."""

    path_name: str
    target_file_name: str
    last_file_received: str
    total_bytes_received: int
    total_messages_received: int
    last_data_timestamp: str | None


class ReceiverStatistics(Resource, tag="mpoints:recvsrvrStats"):
    """The trails that arrive in this home."""

    recvsrvr_stats: list[ArrivingTrail]


class TableCounts(Response, forbid_unknown_fields=False):
    """A table. Each other field is a count: total, daily, hourly or latest with the kind, such as ``totalInserts``."""

    source_table: str
    target_table: str


class TableStatistics(Resource, kw_only=True):
    """The operations by table: the field of a Replicat, or that of the others."""

    statistics_table_extract: list[TableCounts] | None = None
    statistics_table_replicat: list[TableCounts] | None = None


class StatisticsTableExtract(TableStatistics, tag="mpoints:statisticsTableExtract"):
    """The operations of an Extract by table."""


class StatisticsTableReplicat(TableStatistics, tag="mpoints:statisticsTableReplicat"):
    """The operations of a Replicat by table."""


class PathTableStatistics(TableStatistics, tag="mpoints:distsrvrTableStats"):
    """The operations of a distribution path by table."""


class PositionEr(Resource, tag="mpoints:positionEr"):
    """How far a group is; lags in milliseconds."""

    low_watermark_lag: int
    high_watermark_lag: int
    last_operation_lag: int
    low_watermark_timestamp: str | None
    last_operation_timestamp: str | None
    end_of_file: bool
    csn: str | None


class TrailInput(Resource, tag="mpoints:trailInput"):
    """The trail that a group reads; none for a group that reads a database."""

    trail_input: list[TrailPlace]


class OutputTrail(TrailPlace):
    """A trail that a group writes. ``maximum_size``: of a file, in bytes."""

    maximum_size: int
    timestamp: str | None


class TrailOutput(Resource, tag="mpoints:trailOutput"):
    """The trails that a group writes."""

    trail_output: list[OutputTrail]


class CacheStatistics(Resource, tag="mpoints:cacheStatistics"):
    """The memory of open transactions; empty if the process does not run."""

    cache_statistics: Reply


class InflightTransaction(Response):
    """An open transaction. ``items``: the rows that were read."""

    xid: str
    extract: str
    redo_thread: int
    start_time: str
    scn: str
    redo_seq: int
    redo_rba: int
    status: str
    items: int


class InflightTransactions(Resource, tag="mpoints:currentInflightTransactions"):
    """The open transactions of an Extract."""

    current_inflight_transactions: list[InflightTransaction]


class HopLag(Response):
    """The lag of a hop in the last hour: the median and the 95th percentile, in seconds."""

    remote: str
    path: str
    hop: str
    count: int
    p50: float
    p95: float


class HeartbeatPoint(Resource, tag="mpoints:heartbeat", kw_only=True):
    """The heartbeats of a group."""

    heartbeat: list[HopLag]
    last_received: str | None = None


class Appliers(Resource, kw_only=True):
    """What a Replicat with several threads does; transactions: only of a parallel one.

    ``open_transactions``: not confirmed as applied; ``waiting_transactions``: those that wait for others before they go to an
    applier; ``dependent_transactions``: those that touched the keys of an open one, since the process started.
    """

    status: str
    appliers: list[Any]
    open_transactions: int | None = None
    waiting_transactions: int | None = None
    dependent_transactions: int | None = None


class ParallelReplicat(Appliers, tag="mpoints:parallelReplicat"):
    """What the appliers of a parallel Replicat do."""


class CoordinationReplicat(Appliers, tag="mpoints:coordinationReplicat"):
    """What the threads of a coordinated Replicat do."""


class BoundedRecoveryStatus(Resource, tag="mpoints:brStatus", kw_only=True):
    """Bounded Recovery of an Extract: NOT USED, or its checkpoints and what they hold, in bytes."""

    br_current_status: str
    last_checkpoint_number: int | None = None
    last_checkpoint_time: str | None = None
    next_checkpoint_time: str | None = None
    force_checkpoint_time: str | None = None
    checkpoint_interval_seconds: int | None = None
    total_num_objects_persisted: int | None = None
    total_state_bytes_persisted: int | None = None
    total_data_bytes_persisted: int | None = None
    outstanding_num_objects: int | None = None
    outstanding_data_bytes: int | None = None
    last_failure: str | None = None


class Bucket(Response):
    """How many transactions are at most this large (bytes) or old (seconds); the last bucket has no limit."""

    upper_limit: float | None
    count: int


class ObjectSizes(Resource, tag="mpoints:brObjectSizes"):
    """The sizes of the persisted transactions."""

    object_sizes: list[Bucket]


class ExtantObjectSizes(Resource, tag="mpoints:brExtantObjectSizes"):
    """The sizes of the persisted transactions that are still open."""

    extant_object_sizes: list[Bucket]


class ObjectAges(Resource, tag="mpoints:brObjectAges"):
    """The ages of the persisted transactions."""

    object_ages: list[Bucket]


class ExtantObjectAges(Resource, tag="mpoints:brExtantObjectAges"):
    """The ages of the persisted transactions that are still open."""

    extant_object_ages: list[Bucket]


class Pool(Response):
    """The pool of an Extract: how many buckets its sizes and ages have."""

    id: str
    instance: int
    object_size_buckets_len: int
    object_age_buckets_len: int
    extant_object_size_buckets_len: int
    extant_object_age_buckets_len: int


class PoolsInfo(Resource, tag="mpoints:brPoolsInfo"):
    """The pools of an Extract."""

    pools: list[Pool]


MeasuringPoint = Union[  # noqa: UP007 - a tuple of types is not an expression with |
    ProcessPoint,
    ProcessPerformance,
    ThreadPerformance,
    ServiceHealth,
    StatisticsExtract,
    StatisticsReplicat,
    PathStatistics,
    StatisticsTableExtract,
    StatisticsTableReplicat,
    PathTableStatistics,
    PathNetworkStatistics,
    ReceiverStatistics,
    PositionEr,
    TrailInput,
    TrailOutput,
    CacheStatistics,
    InflightTransactions,
    HeartbeatPoint,
    ParallelReplicat,
    CoordinationReplicat,
    BoundedRecoveryStatus,
    ObjectSizes,
    ExtantObjectSizes,
    ObjectAges,
    ExtantObjectAges,
    PoolsInfo,
]
