"""What INFO and STATUS answer about groups and Manager.  The same kind of values as ``results``, loaded when one is needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ggshell.errors import GgsError
from ggshell.shell.results import Note, Row, moment, seconds
from ggshell.store.checkpoint import Checkpoint


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
