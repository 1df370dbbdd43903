"""The history that a server's log belongs to. An LSN is a position in one timeline of one cluster and in no other.

After a failover or a point-in-time recovery, a server continues on a new timeline, which branched off the old one at
some LSN. What was captured up to there is common to both. What was captured after it no longer exists in the source,
and what the source has written there instead would be skipped, because its LSNs are lower than those already known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ggshell.connectors.postgres.session import execute
from ggshell.errors import CaptureError
from ggshell.types import format_lsn, parse_lsn

if TYPE_CHECKING:
    import psycopg

CODE = "GGS-00504"
_HINT = (
    "make the targets match the source (use COMPARE, or load the tables again);"
    " then DELETE EXTRACT, and ADD it with a new trail"
)


PAST_END = "GGS-00546"
"""The position at which capture is to begin is after the end of the log."""
PAST_END_HINT = "use an LSN that the log has reached, or BEGIN NOW"


class History(NamedTuple):
    """A cluster (its system identifier) and one of its timelines; empty: not known yet."""

    system: str = ""
    timeline: int = 0


UNKNOWN = History()


def require_same_history(
    connection: psycopg.Connection[Any], known: History, durable: int, begin: int | None = None
) -> History:
    """Return the server's history, after checking that it contains everything that was captured.

    The check runs on a replication connection. ``known`` is the history that was captured so far, up to the LSN
    ``durable``. ``begin`` is where capture was asked to begin, as long as nothing after it was captured. Raises
    CaptureError if the server does not continue from there: another cluster, a timeline that branched off earlier, or a
    log that ends earlier.
    """
    system, timeline, end = execute(connection, "IDENTIFY_SYSTEM")[0][:3]
    present = History(str(system), int(timeline))
    if known.system and known.system != present.system:
        raise CaptureError(
            f"the source is a different cluster: capture was from system {known.system}, but this is system {present.system}",
            code=CODE,
            hint=f"log in to the original cluster, or {_HINT}",
        )
    if known.timeline and known.timeline != present.timeline:
        left = _left(connection, present.timeline, known.timeline)
        if left is None or left < durable:
            where = f"at {format_lsn(left)}" if left is not None else "at a position that its history does not contain"
            raise CaptureError(
                f"the source switched to timeline {present.timeline}, which left timeline {known.timeline} {where},"
                f" but capture has reached {format_lsn(durable)}",
                code=CODE,
                hint=_HINT,
            )
    if parse_lsn(str(end)) < durable == begin:
        raise CaptureError(
            f"capture cannot begin at LSN {format_lsn(durable)}: the source's log ends at {end}",
            code=PAST_END,
            hint=f"ALTER EXTRACT: {PAST_END_HINT}; if the source was restored to an earlier state: {_HINT}",
        )
    if parse_lsn(str(end)) < durable:
        raise CaptureError(
            f"the source's log ends at {end}, but capture has reached {format_lsn(durable)}:"
            " the source was restored to an earlier state",
            code=CODE,
            hint=_HINT,
        )
    return present


def _left(connection: psycopg.Connection[Any], present: int, former: int) -> int | None:
    """Where the ancestry of the current timeline left a former timeline. None if that is not one of its ancestors."""
    if former > present:
        return None
    content = execute(connection, f"TIMELINE_HISTORY {present}")[0][1]
    text = content.decode() if isinstance(content, bytes) else str(content)
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 2 and words[0] == str(former):
            return parse_lsn(words[1])
    return None
