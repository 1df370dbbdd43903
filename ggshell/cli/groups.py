"""Groups as the shell sees them: finds them by name or wildcard and reads their state, lag and files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from ggshell.cli.results import Note
from ggshell.cli.session import Session
from ggshell.errors import ConflictError, GgsError, NotFoundError, StateError, StoreError, UsageError
from ggshell.home.checkpoint import Checkpoint, GroupKind, previous, way_out
from ggshell.home.home import GroupEntry, Home
from ggshell.home.process_file import ALIVE, WAITS, AbendReason, ProcessFile, ProcessState, abend_reason, state_of
from ggshell.language.suggest import did_you_mean
from ggshell.monitoring import group_lag as lags
from ggshell.monitoring.group_lag import FoundLag

Kinds = tuple[GroupKind, ...]
EXTRACT: Kinds = (GroupKind.EXTRACT,)
REPLICAT: Kinds = (GroupKind.REPLICAT,)
PATH: Kinds = (GroupKind.PATH,)
RECVPATH: Kinds = (GroupKind.RECVPATH,)
ER: Kinds = (GroupKind.EXTRACT, GroupKind.REPLICAT)
ANY: Kinds = tuple(GroupKind)
_TYPE_WORDS = (*GroupKind, "ER")
LONGEST_GROUP = 8
LONGEST_PATH = 32


class View(NamedTuple):
    """A group with the state of its process."""

    group: str
    type: GroupKind
    checkpoint: Checkpoint
    state: ProcessState
    process: ProcessFile | None
    ahead: int = 0
    """How far the process's clock is ahead of the clock of the home's file system, in microseconds."""

    @property
    def name(self) -> str:
        return f"{self.type} {self.group}"

    @property
    def is_connected(self) -> bool:
        """Whether the group connects to another home, when it runs."""
        return bool(self.other_homes)

    @property
    def other_homes(self) -> list[str]:
        """Host and port of the services that the group connects to: receivers of its trails, or the source that it reads."""
        if self.checkpoint.reads_other_home:
            return [self.checkpoint.options.source.partition("://")[2].partition("/")[0]]
        return [each.receiver_place for each in self.checkpoint.write if each.is_elsewhere]

    @property
    def runs(self) -> bool:
        return self.state in ALIVE

    @property
    def waits(self) -> str:
        """What the running process waits for, such as a database that does not answer; empty if it does not wait."""
        return self.process.waits if self.runs and self.process is not None else ""

    @property
    def reason(self) -> AbendReason | None:
        """Why the group has abended; None if it has not."""
        return abend_reason(self.state, self.process)


def is_wildcard(pattern: str) -> bool:
    return "*" in pattern or "?" in pattern


def view(home: Home, entry: GroupEntry) -> View:
    """Return a group with its current state. Raises an error if its checkpoint file cannot be read."""
    if entry.checkpoint is None:
        raise entry.error or StoreError(f"{entry.type} {entry.group} cannot be read")
    state, process = shown_state(home, entry)
    ahead = lags.clock_ahead(home.checkpoint(entry.group, entry.type), entry.checkpoint, state)
    return View(entry.group, entry.type, entry.checkpoint, state, process, ahead)


def clock_notes(found: View) -> tuple[Note, ...]:
    """A note that a process's clock differs from this home's; none if it does not."""
    if not found.ahead:
        return ()
    return (
        Note(
            "GGS-00605", f"{found.name}: {lags.clock_text_of(found.ahead)}; its times are corrected by this difference."
        ),
    )


def wait_notes(found: View) -> tuple[Note, ...]:
    """A note that says what a running group waits for; none if it does not wait."""
    if not found.waits:
        return ()
    return (Note(WAITS, f"{found.name}: {found.waits}"),)


def shown_state(home: Home, entry: GroupEntry) -> tuple[ProcessState, ProcessFile | None]:
    """A group's state and its process file. A process that KILL ended counts as stopped, not abended."""
    state, process = state_of(home.process(entry.group, entry.type))
    if entry.checkpoint is None and state not in ALIVE:
        return ProcessState.ABENDED, process  # not STOPPED: a group that cannot be read cannot be started
    if process is not None and process.killed and state is ProcessState.ABENDED:
        state = ProcessState.STOPPED
    return state, process


def matching(home: Home, kinds: Kinds, pattern: str) -> list[tuple[str, GroupKind]]:
    """Return the names and kinds of the groups that a name or wildcard selects. Raises StoreError."""
    wanted = pattern.upper()
    return [(name, kind) for name, kind in home.group_names() if kind in kinds and fnmatchcase(name, wanted)]


def select(session: Session, kinds: Kinds, pattern: str) -> tuple[list[View], list[GgsError]]:
    """Return the groups that match a name or wildcard, and the errors of groups that cannot be read.

    Raises NotFoundError if no group matches, and the group's own error if a group given by name cannot be read.
    """
    wanted = pattern.upper()
    found = [entry for entry in session.home.groups() if entry.type in kinds and fnmatchcase(entry.group, wanted)]
    if not found:
        raise unknown_group(session, kinds, wanted)
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


def of_each(
    found: Sequence[View], pattern: str, action: Callable[[View], Sequence[str]]
) -> tuple[list[str], list[GgsError]]:
    """Carry out something for each group that matched; return what was done, and the errors of the others.

    Raises the error of a group that was given by name.
    """
    lines: list[str] = []
    errors: list[GgsError] = []
    for each in found:
        try:
            lines += action(each)
        except GgsError as error:
            if not is_wildcard(pattern):
                raise
            error.where = error.where or each.name
            errors.append(error)
    return lines, errors


def one(session: Session, kinds: Kinds, name: str) -> View:
    """Return a single group. Raises NotFoundError if it does not exist or the name is a wildcard."""
    if is_wildcard(name):
        raise NotFoundError(f"a wildcard is not allowed here: {name}", hint="name one group")
    return select(session, kinds, name)[0][0]


def unknown_group(session: Session, kinds: Kinds, wanted: str) -> NotFoundError:
    """The error for a name or wildcard, in upper case, that no group of these types matches."""
    what = str(kinds[0]) if len(kinds) == 1 else "group"
    if wanted in _TYPE_WORDS:
        return NotFoundError(f"{wanted} requires a group name.", hint=f"{wanted} name, or {wanted} * for all")
    if is_wildcard(wanted):
        return NotFoundError(f"no {what} matches {wanted}.", hint="list all groups with INFO ALL")
    if len(wanted) > LONGEST_PATH:  # no group can have this name, and it may be too long for the name of a file
        return NotFoundError(f"{what} {wanted[:LONGEST_PATH]}… does not exist.", hint="list all groups with INFO ALL")
    others = [entry for entry in session.home.groups() if entry.group == wanted]
    if others:
        return NotFoundError(f"{what} {wanted} does not exist.", hint=f"{others[0].type} {wanted} exists")
    for kind in kinds:
        path = session.home.checkpoint(wanted, kind)
        if previous(path).exists():
            return NotFoundError(
                f"{what} {wanted} does not exist.", hint=f"its checkpoint file is missing: {way_out(path)}"
            )
    known = [name for name, kind in session.home.group_names() if kind in kinds]
    hint = did_you_mean(wanted, known) or "list all groups with INFO ALL"
    return NotFoundError(f"{what} {wanted} does not exist.", hint=hint)


def require_new(home: Home, kind: GroupKind, name: str) -> None:
    """Raise ConflictError if a group of this name exists, UsageError if the name is not valid.

    Groups of different types cannot share a name either: the parameter file, report and discard file are named after
    the group alone.
    """
    longest = LONGEST_PATH if kind.is_path else LONGEST_GROUP
    if is_wildcard(name) or len(name) > longest or not name[0].isalpha():
        raise UsageError(
            f"{name} cannot name a {kind}.", hint=f"a letter, then letters, digits and _; at most {longest}"
        )
    for other in GroupKind:
        if home.checkpoint(name, other).exists():
            shared = "" if other is kind else " (groups share parameter file and report by name)"
            raise ConflictError(
                f"{other} {name} already exists{shared}.", hint=f"take another name, or DELETE {other} {name} first"
            )


def require_stopped(found: View, what: str) -> None:
    """Raise StateError if the group's process is running and therefore owns its checkpoint."""
    if found.runs:
        raise StateError(f"{found.name} is running: it cannot be {what} now.", hint=f"STOP {found.name} first")


def group_lag(home: Home, found: View, now: int) -> FoundLag:
    """Return a group's lag as ``process.lag``, the only definition of lag, computes it."""
    return lags.group_lag(home, found.checkpoint, found.state, now, found.ahead)


def lag_note(found: View, error: GgsError) -> Note:
    """A note that says why a group's lag is unknown."""
    return Note(error.code, f"the lag of {found.name} is unknown: {error}")
