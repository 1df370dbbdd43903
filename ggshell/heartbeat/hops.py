"""The courier of each kind of process: its clock, its name, its rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ggshell.clock import Clock
from ggshell.heartbeat import stamps
from ggshell.heartbeat.courier import NOWHERE, OWNER, Courier, Stamp
from ggshell.heartbeat.names import HISTORY_COLUMNS, HeartbeatNames
from ggshell.heartbeat.row import Beat, Layout, as_text
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.image import encode_image
from ggshell.record.operation import IoType
from ggshell.record.transaction import TransactionHeader
from ggshell.types import Csn, TableName

ARRIVED_NAME = TableName(OWNER, "history")
_TEXT, _TIME = "character varying", "timestamp without time zone"
_ARRIVED_COLUMNS = tuple(name for name in HISTORY_COLUMNS if name != "heartbeat_received_ts")
"""The time of reception is the target database's to fill in: its own clock, at the insert."""

ARRIVED = TableDefinition(
    ARRIVED_NAME,
    tuple(Column(name, _TIME if name.endswith("_ts") else _TEXT) for name in _ARRIVED_COLUMNS),
    (),
)
"""What heartbeats become at a Replicat: rows to insert into the history."""

_PLACES = (0, *range(2, 21))
"""Of the columns of ``ARRIVED`` in ``Beat``: all but HEARTBEAT_TIMESTAMP, which is INCOMING_HEARTBEAT_TS there."""


def drop(_: Beat, __: Layout, ___: TransactionHeader) -> Beat | None:
    """Heartbeats are switched off here."""
    return None


def extract_courier(
    group: str, clock: Clock, names: HeartbeatNames | None, restart_time: Callable[[TransactionHeader], int]
) -> Courier:
    """Extract's: ``restart_time`` is the log's time at a transaction's restart position."""

    def stamp(beat: Beat, layout: Layout, header: TransactionHeader) -> Beat | None:
        if not layout.seed and stamps.made_by_replicat(beat):
            return None
        restart = str(header.csn._replace(value=header.restart)) if header.restart else None
        time = restart_time(header) if restart else None
        now = clock.now()
        return stamps.at_extract(beat, group, now, csn=str(header.csn), restart_csn=restart, restart_time=time)

    courier = Courier(stamp)
    if names is not None:
        courier.names |= names.captured
    return courier


def path_courier(name: str, clock: Clock) -> Courier:
    """A pump's or a distribution path's."""
    return Courier(lambda beat, _, __: stamps.at_path(beat, name, clock.now()))


def deaf_courier(stamp: Stamp) -> Courier:
    """A Replicat's that takes no heartbeats: they belong to no table that a MAP line could name."""
    return Courier(stamp, lambda _: (NOWHERE, IoType.INSERT, encode_arrived))


class Receiver(NamedTuple):
    """Who receives heartbeats: a group, in a database."""

    group: str
    database: str


Heard = Callable[[Beat, TransactionHeader], None]


def replicat_courier(
    receiver: Receiver, clock: Clock, low_watermark: Callable[[], Csn | None], heard: Heard
) -> Courier:
    """Replicat's: heartbeats become rows of the history; ``heard`` is told each as it will stand there."""

    def stamp(beat: Beat, _: Layout, header: TransactionHeader) -> Beat | None:
        low = low_watermark()
        watermark = str(low) if low is not None else None
        arrived = stamps.at_replicat(beat, receiver.group, receiver.database, clock.now(), watermark)
        if arrived is not None:
            heard(arrived, header)
        return arrived

    return Courier(stamp, lambda _: (ARRIVED, IoType.INSERT, encode_arrived))


def encode_arrived(beat: Beat) -> bytes:
    """A heartbeat as a row of ``ARRIVED``."""
    return encode_image((index, as_text(beat[place])) for index, place in enumerate(_PLACES))
