"""Which history a server's log belongs to: an LSN means a place in one cluster's one timeline, and nothing in another's.

After a failover or a point-in-time recovery a server goes on on a new timeline, which left the old one at some LSN.  What was
captured up to there is common to both; what was captured behind it no longer exists in the source, and what the source has
written there instead would be passed over, since its LSNs lie below those that are known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ggshell.databases.postgres.session import execute
from ggshell.errors import CaptureError
from ggshell.types import format_lsn, parse_lsn

if TYPE_CHECKING:
    import psycopg

CODE = "GGS-00504"
_HINT = (
    "make the targets as the source is (COMPARE tells where they differ, or load the tables anew);"
    " then DELETE EXTRACT, and ADD it with a new trail"
)


class History(NamedTuple):
    """A cluster (its system identifier) and a timeline of it; empty: not known yet."""

    system: str = ""
    timeline: int = 0


UNKNOWN = History()


def require_same_history(connection: psycopg.Connection[Any], known: History, durable: int) -> History:
    """The server's own history, over a replication connection, once it is sure to hold all that was captured.

    ``known``: the one that was captured from, up to the LSN ``durable``.  Raises CaptureError where the server does not lead on
    from there: another cluster, a timeline that left before, or a log that ends before.
    """
    system, timeline, end = execute(connection, "IDENTIFY_SYSTEM")[0][:3]
    present = History(str(system), int(timeline))
    if known.system and known.system != present.system:
        raise CaptureError(
            f"the source is another cluster: capture was from system {known.system}, this one is {present.system}",
            code=CODE,
            hint=f"log in to the former one; or {_HINT}",
        )
    if known.timeline and known.timeline != present.timeline:
        left = _left(connection, present.timeline, known.timeline)
        if left is None or left < durable:
            where = f"at {format_lsn(left)}" if left is not None else "at a place that its history does not name"
            raise CaptureError(
                f"the source went over to timeline {present.timeline}, which left timeline {known.timeline} {where};"
                f" what was captured reaches to {format_lsn(durable)}",
                code=CODE,
                hint=_HINT,
            )
    if parse_lsn(str(end)) < durable:
        raise CaptureError(
            f"the source's log ends at {end}, before {format_lsn(durable)}, up to which it was captured:"
            " it was put back to an earlier state",
            code=CODE,
            hint=_HINT,
        )
    return present


def _left(connection: psycopg.Connection[Any], present: int, former: int) -> int | None:
    """Where the present timeline's line of descent left a former timeline; None when that is none of its ancestors."""
    if former > present:
        return None
    content = execute(connection, f"TIMELINE_HISTORY {present}")[0][1]
    text = content.decode() if isinstance(content, bytes) else str(content)
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 2 and words[0] == str(former):
            return parse_lsn(words[1])
    return None
