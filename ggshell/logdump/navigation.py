"""The commands that move through a trail: OPEN, NEXTTRAIL, POSITION, NEXT, RECORD, SKIP, DUMP, BEGIN."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from ggshell.errors import NotFoundError, UsageError
from ggshell.logdump.answers import Answer, Dumped, Lines
from ggshell.logdump.cursor import Walk, is_row
from ggshell.logdump.registry import action
from ggshell.logdump.state import LogdumpSession
from ggshell.trail.inspection import InspectedRecord
from ggshell.trail.reach import lost_end

DUMPED = 256
"""The number of bytes that DUMP shows by default."""


@action("OPEN")
@action("FROM")
def open_file(session: LogdumpSession, *, file: str = "") -> Iterator[Answer]:
    """Open a file at its beginning; without an argument show which file is open."""
    if file:
        session.open(Path(file).absolute())
    yield Lines((f"Current LogTrail is {session.file.path}",))


@action("NEXTTRAIL")
@action("NT")
def next_trail(session: LogdumpSession) -> Iterator[Answer]:
    """Open the trail's next file. Raises NotFoundError if there is none, TrailError if the trail has lost its end."""
    here = session.file.trail
    if here is None:
        raise UsageError(f"the next file cannot be derived from the name {session.file.path.name}", hint="OPEN file")
    name, seqno = here
    later = [each for each in name.sequences() if each > seqno]
    if not later:
        raise lost_end(name) or NotFoundError(f"{session.file.path} is the last file of its trail")
    missing = () if later[0] == seqno + 1 else (f"Sequence numbers {seqno + 1} to {later[0] - 1} are missing.",)
    session.open(name.file(later[0]))
    yield Lines((*missing, f"LogTrail {session.file.path} opened"))


@action("POSITION")
def position(
    session: LogdumpSession,
    *,
    n: int | None = None,
    first: bool = False,
    last: bool = False,
    eof: bool = False,
    reverse: bool = False,
    forward: bool = False,
) -> Iterator[Answer]:
    """Set the position and direction; without arguments show them."""
    walk = session.walk
    if n is not None and n > walk.file.size:
        raise UsageError(f"RBA {n} is past the end of the file ({walk.file.size})", hint="POS EOF")
    backwards = (walk.backwards or reverse) and not forward
    place = walk.place
    if n is not None:
        place = n
    elif first:
        place = 0
    elif eof or last:
        place = walk.file.size
        before = walk.file.before(place) if last else None
        place = before if before is not None and not backwards else place
    session.walk.place, session.walk.backwards = place, backwards
    yield Lines((f"Reading {'in reverse' if backwards else 'forward'} from RBA {place} ",))


@action("NEXT")
@action("N")
def next_records(session: LogdumpSession, *, n: int = 1) -> Iterator[Answer]:
    """Show the next records that pass the filters."""
    found = False
    for answer in session.following(n, session.passes):
        found = True
        yield answer
    if not found:
        yield Lines((_end(session),))


@action("RECORD")
def record(session: LogdumpSession) -> Iterator[Answer]:
    """Show the last record again. Raises UsageError if there is none."""
    if session.last is None:
        raise UsageError("no record has been shown yet", hint="NEXT")
    yield session.last


@action("SKIP")
def skip(session: LogdumpSession, *, n: int = 1, filter: bool = False) -> Iterator[Answer]:  # noqa: A002 - the manual's word
    """Skip records."""
    passed = 0
    for seen in session.walk.records():
        if not seen.size:
            yield session.shown(seen)
            return
        passed += not filter or session.passes(seen)
        if passed == n:
            break
    yield Lines((f"Skipped {passed} records; at RBA {session.walk.place}",))


@action("DUMP")
def dump(session: LogdumpSession, *, n: int = DUMPED, on: bool = False, off: bool = False) -> Iterator[Answer]:
    """Show the bytes at the current position, which does not change; or switch the dump of records on or off."""
    if on or off:
        session.display.dump = on
        return
    place = session.walk.place
    yield Dumped(place, session.file.read(n, place))


@action("BEGIN")
def begin(session: LogdumpSession, *, time_string: str) -> Iterator[Answer]:
    """Go to the first record of a time or later."""
    wanted = session.display.moment(time_string)
    walk = Walk(session.file)
    for seen in walk.records():
        if not seen.size:
            yield session.shown(seen)
            return
        if _since(seen, wanted):
            session.walk.place, session.walk.backwards = seen.rba, False
            yield Lines((f"Reading forward from RBA {seen.rba} ",))
            return
        session.tell(seen)
    yield Lines((f"No record of {session.display.time(wanted)} or later is in this file",))


def _since(seen: InspectedRecord, wanted: datetime) -> bool:
    record = seen.record
    return record is not None and is_row(record) and record.io_time is not None and record.io_time >= wanted


def _end(session: LogdumpSession) -> str:
    walk = session.walk
    filtered = " that the filters let through" if session.filters.any and session.filters.enabled else ""
    if walk.backwards:
        return f"Beginning of the file: no further record{filtered}"
    return f"End of the file at RBA {walk.place}: no further record{filtered}"
