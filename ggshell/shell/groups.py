"""Groups as the shell sees them: found by name or wildcard, with their state, lag and files."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from ggshell.errors import ConflictError, GgsError, NotFoundError, StateError, StoreError, TrailError, UsageError
from ggshell.process.state import ProcessFile, ProcessState, state_of
from ggshell.shell import lag as lags
from ggshell.shell.results import Note
from ggshell.shell.session import Session
from ggshell.store.checkpoint import Checkpoint, GroupType, SourceType, previous
from ggshell.store.home import GroupEntry, Home
from ggshell.types import TrailPosition

Kinds = tuple[GroupType, ...]
EXTRACT: Kinds = (GroupType.EXTRACT,)
REPLICAT: Kinds = (GroupType.REPLICAT,)
PATH: Kinds = (GroupType.PATH,)
ER: Kinds = (GroupType.EXTRACT, GroupType.REPLICAT)
ANY: Kinds = (GroupType.EXTRACT, GroupType.REPLICAT, GroupType.PATH)
_TYPE_WORDS = ("EXTRACT", "REPLICAT", "DISTPATH", "ER")
LONGEST_GROUP = 8
LONGEST_PATH = 32


class View(NamedTuple):
    """A group with its process."""

    group: str
    type: GroupType
    checkpoint: Checkpoint
    state: ProcessState
    process: ProcessFile | None

    @property
    def name(self) -> str:
        return f"{self.type} {self.group}"

    @property
    def runs(self) -> bool:
        return self.state in lags.RUNNING


def is_wildcard(pattern: str) -> bool:
    return "*" in pattern or "?" in pattern


def view(home: Home, entry: GroupEntry) -> View:
    """A group with its present state.  Raises the error of a checkpoint file that cannot be read."""
    if entry.checkpoint is None:
        raise entry.error or StoreError(f"{entry.type} {entry.group} cannot be read")
    return View(entry.group, entry.type, entry.checkpoint, *shown_state(home, entry))


def shown_state(home: Home, entry: GroupEntry) -> tuple[ProcessState, ProcessFile | None]:
    """A group's state, and what its process says of itself; one that KILL ended is stopped, which is no abend."""
    state, process = state_of(home.process(entry.group, entry.type))
    if process is not None and process.killed and state is ProcessState.ABENDED:
        state = ProcessState.STOPPED
    return state, process


def select(session: Session, kinds: Kinds, pattern: str) -> tuple[list[View], list[GgsError]]:
    """The groups of a name or wildcard; of several, those that cannot be read are given as errors.

    Raises NotFoundError when there is none, StoreError when the only one is damaged.
    """
    wanted = pattern.upper()
    found = [entry for entry in session.home.groups() if entry.type in kinds and fnmatchcase(entry.group, wanted)]
    if not found:
        raise _nothing(session, kinds, wanted)
    views: list[View] = []
    errors: list[GgsError] = []
    for entry in found:
        try:
            views.append(view(session.home, entry))
        except GgsError as error:
            if not is_wildcard(wanted):
                raise
            errors.append(error)
    return views, errors


def one(session: Session, kinds: Kinds, name: str) -> View:
    """A single group.  Raises NotFoundError, also for a wildcard."""
    if is_wildcard(name):
        raise NotFoundError(f"a wildcard cannot stand here: {name}", hint="name one group")
    return select(session, kinds, name)[0][0]


def _nothing(session: Session, kinds: Kinds, wanted: str) -> NotFoundError:
    what = str(kinds[0]) if len(kinds) == 1 else "group"
    if wanted in _TYPE_WORDS:
        return NotFoundError(f"no group is named behind {wanted}.", hint=f"{wanted} name, or {wanted} * for all")
    if is_wildcard(wanted):
        return NotFoundError(f"no {what} matches {wanted}.", hint="INFO ALL lists what there is")
    others = [entry for entry in session.home.groups() if entry.group == wanted]
    if others:
        return NotFoundError(f"{what} {wanted} does not exist.", hint=f"{wanted} is a {others[0].type}")
    kept = [path for kind in kinds if (path := previous(session.home.checkpoint(wanted, kind))).exists()]
    way = "INFO ALL lists what there is"
    if kept:
        way = f"its checkpoint file is gone, the one before it is not: copy {kept[0]} to {kept[0].stem}"
        way += ", or ADD it again: its checkpoint table says where it was" if kinds == REPLICAT else ""
    return NotFoundError(f"{what} {wanted} does not exist.", hint=way)


def require_new(home: Home, kind: GroupType, name: str) -> None:
    """Raises ConflictError when a group of this name exists, UsageError for a name that cannot be one.

    Groups of two kinds cannot share a name either: parameter file, report and discard file are named by the group alone.
    """
    longest = LONGEST_PATH if kind is GroupType.PATH else LONGEST_GROUP
    if is_wildcard(name) or len(name) > longest or not name[0].isalpha():
        raise UsageError(
            f"{name} cannot name a {kind}.", hint=f"a letter, then letters, digits and _; at most {longest}"
        )
    for other in GroupType:
        if home.checkpoint(name, other).exists():
            shared = "" if other is kind else " (groups share parameter file and report by name)"
            raise ConflictError(
                f"{other} {name} already exists{shared}.", hint=f"take another name, or DELETE {other} {name} first"
            )


def require_stopped(found: View, what: str) -> None:
    """Raises StateError while the group's process owns its checkpoint."""
    if found.runs:
        raise StateError(f"{found.name} is running: it cannot be {what} now.", hint=f"STOP {found.name} first")


class FoundLag(NamedTuple):
    """A group's lag in microseconds, None for tasks and when it cannot be known: ``error`` then says why."""

    value: int | None
    error: GgsError | None = None


def group_lag(home: Home, found: View, now: int) -> FoundLag:
    """A group's true lag; for a reader of a trail that is stopped or stuck, its trail is looked at."""
    read = found.checkpoint.read
    unprocessed: int | None = None
    looks = not found.runs or lags.is_stuck(found.checkpoint, now)
    if looks and read.source is SourceType.TRAIL and isinstance(read.current, TrailPosition):
        try:
            unprocessed = first_unprocessed(home, read.trail, read.current)
        except GgsError as error:
            return FoundLag(None, error)
    return FoundLag(lags.lag(found.checkpoint, found.state, now, unprocessed))


def lag_note(found: View, error: GgsError) -> Note:
    """Why a group's lag is not known."""
    return Note(error.code, f"the lag of {found.name} is unknown: {error}")


def first_unprocessed(home: Home, trail: str, position: TrailPosition) -> int | None:
    """The commit time of the first record behind a position, None at the trail's end.

    The usual case, nothing left, is answered by the files' sizes alone, without loading what reads trails.
    """
    path = home.resolve(trail)
    names = re.compile(re.escape(path.name) + r"(\d{9}|\d{6})")
    entries = path.parent.iterdir() if path.parent.is_dir() else ()
    files = {int(match[1]): entry for entry in entries if (match := names.fullmatch(entry.name))}
    if not files and (position.seqno or position.rba):
        raise TrailError(
            f"all files of trail {trail} are gone, and {position} was reached in it", code="OGG-01332", where=str(path)
        )
    if not files or max(files) < position.seqno:
        return None
    size = files[max(files)].stat().st_size if max(files) == position.seqno else -1
    if size == position.rba:
        return None
    if 0 <= size < position.rba:
        raise TrailError(f"the trail ends at RBA {size}, before {position}, which was reached in it", where=str(path))
    from ggshell.trail.name import TrailName
    from ggshell.trail.times import read_position_time

    found = read_position_time(TrailName(path.parent, path.name), position)
    if found is None:
        _require_header(files[min(number for number in files if number >= position.seqno)])
    return found


def _require_header(file: Path) -> None:
    """Bytes that are no trail look like one without records: raises TrailError for them."""
    from ggshell.trail.fileheader import decode_header

    with file.open("rb") as content:
        data = content.read(1 << 16)
    try:
        if data:
            decode_header(data)
    except ValueError as error:
        raise TrailError(f"trail file {file} is damaged: it lacks {error}", where=f"{file}, RBA 0") from None
