"""What Extracts, Replicats and distribution paths answer: their status, positions, checkpoints, and their settings."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from ggshell.service.answers import Object
from ggshell.service.bodies import described
from ggshell.service.responses import Resource, Response, TrailPlace, TrailRef

Status = Annotated[str, described("running, stopped, abended, killed, starting, …")]


class ReadPlace(TrailPlace, kw_only=True):
    """How far a group has read: in a trail, or in the log of the database."""

    csn: str | None = None


class GroupStatus(Resource, kw_only=True):
    """The status of a group. ``lag`` and ``since_lag_reported``: seconds; ``process_id``: only while it runs.

    ``last_error``: why it has abended, or what it waits for.
    """

    status: Status
    last_started: str | None
    lag: int
    since_lag_reported: int
    position: ReadPlace
    process_id: int | None = None
    last_error: str | None = None


class ExtractStatus(GroupStatus, tag="ogg:extractStatus"):
    """The status of an Extract."""


class ReplicatStatus(GroupStatus, tag="ogg:replicatStatus"):
    """The status of a Replicat."""


class DistPathInfo(GroupStatus, tag="ogg:distPathInfo"):
    """The status of a distribution path."""

    thread_id: int
    source_extract_name: str


class CheckpointPlace(ReadPlace, kw_only=True):
    """A position with the time of its record."""

    timestamp: str | None
    lsn: str | None = None


class InputPlaces(Response):
    """The positions in what a group reads."""

    starting: CheckpointPlace
    recovery: CheckpointPlace
    current: CheckpointPlace


class OutputPlaces(Response):
    """The position in a trail that a group writes."""

    current: CheckpointPlace


class CurrentCheckpoint(Response, kw_only=True):
    """The current checkpoint."""

    input: list[InputPlaces]
    output: list[OutputPlaces] | None = None


class Checkpoints(Resource):
    """The checkpoints of a group; ``history`` is empty."""

    current: CurrentCheckpoint
    history: list[Object]


class ExtractCheckpoints(Checkpoints, tag="ogg:extractCheckpoints"):
    """The checkpoints of an Extract."""


class ReplicatCheckpoints(Checkpoints, tag="ogg:replicatCheckpoints"):
    """The checkpoints of a Replicat."""


class DistPathCheckpoints(Checkpoints, tag="ogg:distPathCheckpoints"):
    """The checkpoints of a distribution path."""


class BeginCsn(Response):
    """A CSN."""

    csn: str


class BeginPlace(Response, kw_only=True):
    """A start position: a CSN, or a place in a trail or in the log."""

    at: BeginCsn | None = None
    sequence: int | None = None
    offset: int | None = None


class UsedAlias(Response):
    """The alias in the parameter file of a group."""

    domain: str
    alias: str


class Group(Resource, kw_only=True):
    """What Extracts and Replicats have in common, in the form in which POST accepts it."""

    begin: str | BeginPlace
    status: Status
    critical: bool
    encryption_profile: str | Object
    managed_process_settings: str | Object
    intent: str
    credentials: UsedAlias | None = None
    config: list[str] | None = None
    description: str | None = None


class WrittenTrail(TrailPlace, kw_only=True):
    """A trail that an Extract writes."""

    size_mb: int = msgspec.field(name="sizeMB")
    sequence_length: int


class Extract(Group, tag="ogg:extract", kw_only=True):
    """An Extract."""

    source: Annotated[
        str | Object, described("tranlogs, tables, a trail: {name, path}, or {tranlogs} as the client sent it.")
    ]
    targets: list[WrittenTrail]
    type: str | None = None
    registration: str | Object | None = None


class ReplicatMode(Response):
    """How a Replicat applies."""

    type: str
    parallel: bool


class UsedCheckpointTable(Response):
    """The checkpoint table of a Replicat."""

    table: str


class Replicat(Group, tag="ogg:replicat", kw_only=True):
    """A Replicat."""

    source: TrailRef
    mode: ReplicatMode
    checkpoint: UsedCheckpointTable | None = None


class PathEnd(Response, kw_only=True):
    """An end of a distribution path, with the fields that the client gave."""

    uri: str
    description: str | None = None
    details: Object | None = None
    proxy: Object | None = None
    is_dynamic_ogg_port: bool | None = None
    authentication_method: Any = None


class DistPath(Resource, tag="ogg:distPath", kw_only=True):
    """A distribution path."""

    name: str
    source: PathEnd
    target: PathEnd
    begin: str | Object
    encryption_profile: str
    target_initiated: bool
    status: Status
    description: str | None = None
    options: Object | None = None
    managed_path_settings: str | Object | None = None
    ruleset: Object | None = None


class DistPathStats(Resource, tag="ogg:distPathStats"):
    """What a path has delivered. ``tables``: the rows of STATS DISTPATH."""

    status: Status
    tables: list[Annotated[Object, described("The counts of a table, by kind of operation.")]]


class CommandReply(Resource, tag="er:commandResult"):
    """The reply of a process, and the lines that SEND shows."""

    reply_data: Annotated[Object, described("The reply of the process; its fields depend on the command.")]
    reply: list[str]
