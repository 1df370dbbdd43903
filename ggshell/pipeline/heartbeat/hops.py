"""What each kind of process does with a heartbeat: timestamp it, pass it on, drop it, or write it to the history."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ggshell.clock import Clock
from ggshell.pipeline.heartbeat.names import HISTORY_COLUMNS, HeartbeatNames
from ggshell.pipeline.heartbeat.processor import DROPPED, OWNER, HeartbeatProcessor, Stamp
from ggshell.pipeline.heartbeat.row import Beat, Layout, as_text
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.image import encode_image
from ggshell.record.operation import IoType
from ggshell.record.transaction import TransactionHeader
from ggshell.types import Csn, TableName

ARRIVED_NAME = TableName(OWNER, "history")
_TEXT, _TIME = "character varying", "timestamp without time zone"
_ARRIVED_COLUMNS = tuple(name for name in HISTORY_COLUMNS if name != "heartbeat_received_ts")
"""The target database fills in the time of reception, by its own clock, at the insert."""

ARRIVED = TableDefinition(
    ARRIVED_NAME,
    tuple(Column(name, _TIME if name.endswith("_ts") else _TEXT) for name in _ARRIVED_COLUMNS),
    (),
)
"""The rows that replace heartbeats at a Replicat: inserts into the history table."""

_PLACES = (0, *range(2, 21))
"""The fields of ``Beat`` for the columns of ``ARRIVED``: all but HEARTBEAT_TIMESTAMP, which equals INCOMING_HEARTBEAT_TS."""


def drop(_: Beat, __: Layout, ___: TransactionHeader) -> Beat | None:
    """Drop every heartbeat: heartbeats are disabled for this process."""
    return None


def extract_processor(
    group: str, clock: Clock, names: HeartbeatNames | None, restart_time: Callable[[TransactionHeader], int]
) -> HeartbeatProcessor:
    """Return the processor of an Extract; ``restart_time`` returns the log's time at a transaction's restart position."""

    def stamp(beat: Beat, layout: Layout, header: TransactionHeader) -> Beat | None:
        if not layout.seed and made_by_replicat(beat):
            return None
        restart = str(header.csn._replace(value=header.restart)) if header.restart else None
        time = restart_time(header) if restart else None
        now = clock.now()
        return at_extract(beat, group, now, csn=str(header.csn), restart_csn=restart, restart_time=time)

    processor = HeartbeatProcessor(stamp)
    if names is not None:
        processor.names |= names.captured
    return processor


def path_processor(name: str, clock: Clock) -> HeartbeatProcessor:
    """Return the processor of a pump or a distribution path."""
    return HeartbeatProcessor(lambda beat, _, __: at_path(beat, name, clock.now()))


def dropping_processor(stamp: Stamp) -> HeartbeatProcessor:
    """Return the processor of a Replicat that does not accept heartbeats; no MAP line can select them."""
    return HeartbeatProcessor(stamp, lambda _: (DROPPED, IoType.INSERT, encode_arrived))


class Receiver(NamedTuple):
    """The Replicat group that receives heartbeats, and its target database."""

    group: str
    database: str


Heard = Callable[[Beat, TransactionHeader], None]


def replicat_processor(
    receiver: Receiver, clock: Clock, low_watermark: Callable[[], Csn | None], heard: Heard
) -> HeartbeatProcessor:
    """Return the processor of a Replicat, which turns heartbeats into rows of the history table.

    ``heard`` is called with each heartbeat as the history table will contain it.
    """

    def stamp(beat: Beat, _: Layout, header: TransactionHeader) -> Beat | None:
        low = low_watermark()
        watermark = str(low) if low is not None else None
        arrived = at_replicat(beat, receiver.group, receiver.database, clock.now(), watermark)
        if arrived is not None:
            heard(arrived, header)
        return arrived

    return HeartbeatProcessor(stamp, lambda _: (ARRIVED, IoType.INSERT, encode_arrived))


def encode_arrived(beat: Beat) -> bytes:
    """Encode a heartbeat as a row of ``ARRIVED``."""
    return encode_image((index, as_text(beat[place])) for index, place in enumerate(_PLACES))


# What each hop does with a heartbeat. A stamp receives a heartbeat and returns the one to pass on, or None to drop
# it.
#
# ``now`` is the time of the hop's own clock, in microseconds since 1970 UTC.


ANYWHERE = "*"
"""In a routing path: the heartbeat may use any further path."""


def at_extract(
    beat: Beat, group: str, now: int, *, csn: str | None, restart_csn: str | None, restart_time: int | None
) -> Beat | None:
    """Timestamp a heartbeat at Extract; drop it if it names another Extract.

    ``csn``: the CSN of the heartbeat's commit. ``restart_csn`` and ``restart_time``: the position from which Extract would
    have to read again, and the log's time there.
    """
    if beat.outgoing_extract not in (None, group):
        return None
    return beat._replace(
        outgoing_extract=group,
        outgoing_extract_ts=now,
        incoming_extract_heartbeat_csn=csn,
        incoming_extract_restart_csn=restart_csn,
        incoming_extract_restart_ts=restart_time,
    )


def made_by_replicat(beat: Beat) -> bool:
    """Whether a Replicat, not the job, made a change of the heartbeat table: both of its times are then the source's.

    This prevents loops of heartbeats even if Replicat's changes have no replication origin.
    """
    return beat.heartbeat_timestamp is None or beat.heartbeat_timestamp == beat.incoming_heartbeat_ts


def at_path(beat: Beat, name: str, now: int) -> Beat | None:
    """Timestamp a heartbeat at a pump or path and insert its name before the ``*`` in the routing path.

    A heartbeat with a fixed routing path is dropped unless the path contains this name.
    """
    names = [part.strip() for part in (beat.outgoing_routing_path or "").split(",") if part.strip()]
    if not names or ANYWHERE in names:
        way = [part for part in names if part != ANYWHERE]
        return beat._replace(outgoing_routing_path=",".join([*way, name, ANYWHERE]), outgoing_routing_ts=now)
    return beat._replace(outgoing_routing_ts=now) if name in names else None


def is_for(beat: Beat, group: str) -> bool:
    """Whether a Replicat may accept a heartbeat: it names this group or no group."""
    return beat.outgoing_replicat in (None, group)


def same_database(beat: Beat, database: str) -> bool:
    """Whether source and target have the same database name, so that the two directions cannot be distinguished."""
    return beat.local_database == database


def at_replicat(beat: Beat, group: str, database: str, now: int, low_watermark: str | None) -> Beat | None:
    """Return the row as the target sees it: the sender is the remote database, and incoming and outgoing are exchanged.

    Heartbeats for another Replicat, or about the sender and a third database, are dropped.
    """
    if not is_for(beat, group) or (beat.remote_database not in (None, database)):
        return None
    mirrored = same_database(beat, database)
    if mirrored and beat.remote_database is not None:
        return None
    received = Beat(
        local_database=database,
        heartbeat_timestamp=beat.heartbeat_timestamp,
        remote_database=beat.local_database,
        incoming_extract=beat.outgoing_extract,
        incoming_routing_path=settled_path(beat.outgoing_routing_path),
        incoming_replicat=group,
        incoming_heartbeat_ts=beat.heartbeat_timestamp,
        incoming_extract_ts=beat.outgoing_extract_ts,
        incoming_routing_ts=beat.outgoing_routing_ts,
        incoming_replicat_ts=now,
        incoming_replicat_lw_csn=low_watermark,
        incoming_extract_heartbeat_csn=beat.incoming_extract_heartbeat_csn,
        incoming_extract_restart_csn=beat.incoming_extract_restart_csn,
        incoming_extract_restart_ts=beat.incoming_extract_restart_ts,
    )
    if mirrored:
        return received
    return received._replace(
        outgoing_extract=beat.incoming_extract,
        outgoing_routing_path=beat.incoming_routing_path,
        outgoing_replicat=beat.incoming_replicat,
        outgoing_heartbeat_ts=beat.incoming_heartbeat_ts,
        outgoing_extract_ts=beat.incoming_extract_ts,
        outgoing_routing_ts=beat.incoming_routing_ts,
        outgoing_replicat_ts=beat.incoming_replicat_ts,
    )


def settled_path(path: str | None) -> str | None:
    """Return a routing path without its ``*``, or None if nothing remains."""
    names = [part.strip() for part in (path or "").split(",")]
    return ",".join(part for part in names if part and part != ANYWHERE) or None
