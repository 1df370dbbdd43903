"""What each hop does with a heartbeat.  A stamp takes one and gives the one to pass on, or None to drop it.

``now`` is the hop's own clock, in microseconds since 1970 UTC.
"""

from __future__ import annotations

from ggshell.heartbeat.row import Beat

ANYWHERE = "*"
"""In a routing path: the heartbeat may go on by any path."""


def at_extract(
    beat: Beat, group: str, now: int, *, csn: str | None, restart_csn: str | None, restart_time: int | None
) -> Beat | None:
    """Extract passes on what is meant for it or for nobody in particular.

    ``csn``: the heartbeat's commit; ``restart_csn`` and ``restart_time``: where Extract would have to read again from, and
    the log's time there.
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
    """Whether a change of the heartbeat table is a Replicat's and not the job's: then both of its times are the source's.

    So heartbeats never loop, also where Replicat's changes carry no origin.
    """
    return beat.heartbeat_timestamp is None or beat.heartbeat_timestamp == beat.incoming_heartbeat_ts


def at_path(beat: Beat, name: str, now: int) -> Beat | None:
    """A pump or path puts its name where ``*`` stands; a heartbeat with a fixed way passes only on it."""
    names = [part.strip() for part in (beat.outgoing_routing_path or "").split(",") if part.strip()]
    if not names or ANYWHERE in names:
        way = [part for part in names if part != ANYWHERE]
        return beat._replace(outgoing_routing_path=",".join([*way, name, ANYWHERE]), outgoing_routing_ts=now)
    return beat._replace(outgoing_routing_ts=now) if name in names else None


def is_for(beat: Beat, group: str) -> bool:
    """Whether a Replicat may take a heartbeat: it names this group or none."""
    return beat.outgoing_replicat in (None, group)


def same_database(beat: Beat, database: str) -> bool:
    """Whether source and target go by one name, so that the two directions cannot be told apart."""
    return beat.local_database == database


def at_replicat(beat: Beat, group: str, database: str, now: int, low_watermark: str | None) -> Beat | None:
    """The row as this end sees it: the sender is remote, what went out there came in here, and the other way round.

    Dropped: what is meant for another Replicat, and what speaks of the sender and a third database.
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
    """A routing path without its ``*``; None when nothing is left."""
    names = [part.strip() for part in (path or "").split(",")]
    return ",".join(part for part in names if part and part != ANYWHERE) or None
