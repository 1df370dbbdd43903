"""Where an Extract begins to read redo: BEGIN and SCN turned into the SCN that lies before the first transaction to capture."""

from __future__ import annotations

from ggshell.errors import StateError, UsageError
from ggshell.shell.begin import begin_time
from ggshell.store.checkpoint import Checkpoint, GroupType, ReadCheckpoint, SourceType
from ggshell.types import Csn, LogPosition


def redo_checkpoint(login: str, group: str, begin: str, lsn: str, scn: str, now: int) -> Checkpoint:
    """A new Extract on redo.  Raises UsageError, DatabaseError, CaptureError."""
    place, moment = redo_place(login, begin, lsn, scn, now)
    return Checkpoint(
        group,
        GroupType.EXTRACT,
        ReadCheckpoint(SourceType.LOG),
        begin=scn or begin,
        begin_csn=str(place),
        begin_time=moment,
        options={"redo": login},
    )


def scn_number(text: str) -> int:
    """An SCN as a number: ``13415493404927``, or as wrap and base, ``3123.2310539519``."""
    wrap, dot, base = text.partition(".")
    return int(wrap) << 32 | int(base) if dot else int(wrap)


def redo_place(login: str, begin: str, lsn: str, scn: str, now: int) -> tuple[Csn, int]:
    """(the SCN behind which capture begins, its time): NOW is the log's present end, a time its first row of that time."""
    from ggshell.databases.redo.bounds import bound_at, last_bound
    from ggshell.databases.redo.login import folder_of

    folder = folder_of(login)
    if lsn:
        raise UsageError("redo has no LSNs.", hint="SCN n, or BEGIN")
    if scn:
        return Csn(max(scn_number(scn) - 1, 0), False), 0
    moment = begin_time(begin, now)
    if begin.upper() == "NOW":
        return Csn(last_bound(folder).scn, False), moment
    return Csn(max(bound_at(folder, moment).scn - 1, 0), False), moment


def redo_altered(changed: Checkpoint, begin: str, lsn: str, scn: str, now: int) -> tuple[Checkpoint, str]:
    """An Extract on redo set to another place, and the place in words.

    Raises StateError for a place before the last transaction in its trail, which would not be written again.
    """
    place, moment = redo_place(str(changed.options["redo"]), begin, lsn, scn, now)
    done = Csn.parse(changed.latest_csn).value if changed.latest_csn else 0
    if place.value < done:
        raise StateError(
            f"{changed.group} cannot go back to SCN {place.value + 1}: everything up to {done} is in its trail.",
            hint="have the readers of its trail go back instead: ALTER REPLICAT …, EXTSEQNO …, EXTRBA …",
        )
    at = LogPosition(0, 0, place.value)
    read = changed.read._replace(startup=LogPosition(0, 0, 0), recovery=at, current=at, current_time=0)
    options = {name: value for name, value in changed.options.items() if name not in ("br", "decisions")}
    changed = changed._replace(
        options=options,
        read=read,
        begin=scn or begin,
        begin_csn=str(place),
        begin_time=moment,
        record_time=0,
        caught_up=0,
    )
    return changed, f"SCN {place.value + 1}"
