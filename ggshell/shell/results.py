"""What handlers answer: frozen values without any layout.  Each can show itself as a table for the data formats.

The layouts of GGSCI are in ``layout``; whoever wants data takes ``columns`` and ``rows``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from ggshell.errors import GgsError
from ggshell.store.checkpoint import Checkpoint

Row = tuple[object, ...]


class Result(Protocol):
    """An answer: for the formats that are tables, its columns and rows."""

    @property
    def columns(self) -> tuple[str, ...]: ...

    @property
    def rows(self) -> list[Row]: ...


class Note(NamedTuple):
    """Something to know beside an answer, that is no failure: a code and a sentence."""

    code: str
    message: str


class Message(NamedTuple):
    """Sentences, in order; ``apart``: with an empty line before them.  ``errors``: what failed for some of several groups."""

    lines: tuple[str, ...] = ()
    errors: tuple[GgsError, ...] = ()
    apart: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        return ("message",)

    @property
    def rows(self) -> list[Row]:
        return [(line,) for line in self.lines if line]


class Text(NamedTuple):
    """A file or a page, line by line."""

    name: str
    text: str

    @property
    def columns(self) -> tuple[str, ...]:
        return ("line",)

    @property
    def rows(self) -> list[Row]:
        return [(line,) for line in self.text.splitlines()]


class Script(NamedTuple):
    """An obey file to run now; its statements answer for themselves."""

    name: str
    text: str

    @property
    def columns(self) -> tuple[str, ...]:
        return ()

    @property
    def rows(self) -> list[Row]:
        return []


class ProcessLine(NamedTuple):
    """One process in INFO ALL; lag and age in microseconds, None where there is none.

    ``known``: its files can be read; ``lag_known``: so can the trail that its lag depends on.
    """

    program: str
    status: str
    group: str = ""
    lag: int | None = None
    since: int | None = None
    known: bool = True
    lag_known: bool = True


class InfoAll(NamedTuple):
    """INFO ALL; ``errors`` names groups whose files cannot be read, ``notes`` trails that cannot."""

    processes: tuple[ProcessLine, ...]
    errors: tuple[GgsError, ...] = ()
    notes: tuple[Note, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        return ("program", "status", "group", "lag_seconds", "since_seconds")

    @property
    def rows(self) -> list[Row]:
        return [
            (line.program, line.status, line.group or None, seconds(line.lag), seconds(line.since))
            for line in self.processes
        ]


def moment(microseconds: int) -> str | None:
    """A time as data shows it: ISO 8601 in UTC; None where there is none."""
    if not microseconds:
        return None
    from ggshell.clock import to_datetime

    return to_datetime(microseconds).isoformat(timespec="microseconds")


def seconds(microseconds: int | None) -> int | None:
    """Whole seconds, as lags are shown."""
    return None if microseconds is None else microseconds // 1_000_000


class SlotFacts(NamedTuple):
    """What a replication slot holds back: bytes of log, their growth an hour, seconds until the limit (None: unknown);
    ``room`` the bytes until then, ``limit`` which one it is: max_slot_wal_keep_size, disk, or neither."""

    name: str
    retained: int
    growth: float | None = None
    left: float | None = None
    room: int | None = None
    limit: str = ""


class GroupInfo(NamedTuple):
    """A group as INFO shows it.  ``paths``: label -> file of DETAIL."""

    checkpoint: Checkpoint
    status: str
    pid: int | None
    lag: int | None
    since: int | None
    paths: Mapping[str, str] = {}
    slot: SlotFacts | None = None
    lag_known: bool = True


class InfoGroups(NamedTuple):
    """INFO EXTRACT, REPLICAT, DISTPATH, ER."""

    groups: tuple[GroupInfo, ...]
    detail: bool = False
    showch: bool = False
    errors: tuple[GgsError, ...] = ()
    notes: tuple[Note, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        return (
            *("type", "group", "status", "started", "lag_seconds", "since_seconds", "pid", "source", "trail"),
            *("seqno", "rba", "csn", "record_time", "slot", "wal_bytes_held", "wal_bytes_per_hour", "seconds_left"),
        )

    @property
    def rows(self) -> list[Row]:
        return [_group_row(info) for info in self.groups]


def _group_row(info: GroupInfo) -> Row:
    found, slot = info.checkpoint, info.slot
    position = found.read.current
    place = (position[0], position[1])
    held = (slot.name, slot.retained, slot.growth, slot.left) if slot else (None, None, None, None)
    return (
        *(str(found.type), found.group, info.status, moment(found.started), seconds(info.lag), seconds(info.since)),
        *(info.pid, str(found.read.source), found.read.trail or None, *place, found.latest_csn or None),
        *(moment(found.record_time), *held),
    )


class StatusLine(NamedTuple):
    """One group's state."""

    type: str
    group: str
    status: str


class Status(NamedTuple):
    """STATUS of groups."""

    lines: tuple[StatusLine, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return ("type", "group", "status")

    @property
    def rows(self) -> list[Row]:
        return [tuple(line) for line in self.lines]


class ManagerStatus(NamedTuple):
    """INFO MANAGER and STATUS MANAGER."""

    running: bool
    host: str = ""
    port: int = 0
    pid: int = 0

    @property
    def columns(self) -> tuple[str, ...]:
        return ("status", "host", "port", "pid")

    @property
    def rows(self) -> list[Row]:
        return [("RUNNING" if self.running else "STOPPED", self.host or None, self.port or None, self.pid or None)]


class TrailInfo(NamedTuple):
    """A trail that a group writes."""

    trail: str
    remote: bool
    group: str
    seqno: int
    rba: int
    megabytes: int


class Trails(NamedTuple):
    """INFO EXTTRAIL and INFO RMTTRAIL."""

    trails: tuple[TrailInfo, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return ("trail", "type", "extract", "seqno", "rba", "megabytes")

    @property
    def rows(self) -> list[Row]:
        return [(t.trail, trail_type(t.remote), t.group, t.seqno, t.rba, t.megabytes) for t in self.trails]


def trail_type(remote: bool) -> str:
    return "RMTTRAIL" if remote else "EXTTRAIL"


class CredentialLine(NamedTuple):
    """An alias of the credential store."""

    domain: str
    alias: str
    userid: str


class Credentials(NamedTuple):
    """INFO CREDENTIALSTORE; ``folder`` where it lies."""

    folder: str
    entries: tuple[CredentialLine, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return ("domain", "alias", "userid")

    @property
    def rows(self) -> list[Row]:
        return [tuple(entry) for entry in self.entries]


class Facts(NamedTuple):
    """Names with values: SHOW, VERSIONS.  ``layout`` is the text that GGSCI users see."""

    pairs: tuple[tuple[str, str], ...]
    layout: str

    @property
    def columns(self) -> tuple[str, ...]:
        return ("name", "value")

    @property
    def rows(self) -> list[Row]:
        return [tuple(pair) for pair in self.pairs]


class Listing(NamedTuple):
    """Any other table of facts, with its text for GGSCI beside it (TRANDATA, checkpoint tables, history …)."""

    heads: tuple[str, ...]
    values: Sequence[Row]
    layout: str

    @property
    def columns(self) -> tuple[str, ...]:
        return self.heads

    @property
    def rows(self) -> list[Row]:
        return list(self.values)
