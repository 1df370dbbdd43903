"""Whether the limits of both servers leave room for a move: log level, slots, sessions, disk, time, and the clocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ggshell.connectors.move_facts import TableKind
from ggshell.durations import rough_text, seconds_text
from ggshell.move.checks.sides import Side, Sides
from ggshell.move.findings import ERROR, INFO, WARNING, Finding
from ggshell.plurals import counted

MORE_SESSIONS: Final = 6
"""The sessions of a move besides its jobs: Extract, Replicat and its appliers, the shell, COMPARE."""
CLOCK_SECONDS: Final = 1.0
LOAD_RATE: Final = 25 << 20
"""Bytes of rows that one job is assumed to load in a second."""
INDEX_RATE: Final = 15 << 20
"""Bytes of indexes that one job is assumed to build in a second."""
DISK_FACTOR: Final = 1.3
"""The room that a load needs, as a multiple of the source: the database, and the log of the load."""
_MEGABYTE: Final = 1 << 20
_NEVER: Final = ("", "0", "-1")


def log_level(sides: Sides) -> Iterator[Finding]:
    """Both sides are captured: the target for switching back."""
    for side in sides.both:
        level = side.setting("wal_level")
        if level != "logical":
            text = f"wal_level of {side} is {level}; changes can be captured only with logical"
            action = f"ALTER SYSTEM SET wal_level = logical in {side}, and restart its server"
            yield Finding(ERROR, "GGS-01011", "wal_level", text, action)


def slots(sides: Sides) -> Iterator[Finding]:
    """Each side needs a replication slot, a process that sends the log, and an origin that marks applied changes."""
    for side in sides.both:
        used = side.capacity
        if used.slots >= side.number("max_replication_slots"):
            yield _full(side, "GGS-01012", "max_replication_slots", used.slots)
        if used.senders >= side.number("max_wal_senders"):
            yield _full(side, "GGS-01013", "max_wal_senders", used.senders)
        name = "max_active_replication_origins"
        name = name if side.setting(name) else "max_replication_slots"
        if used.origins >= side.number(name):
            text = f"all {used.origins} replication origins of {side} are in use ({name}): applied changes would not be marked"
            yield Finding(WARNING, "GGS-01014", name, text, f"increase {name} in {side}, and restart its server")


def _full(side: Side, code: str, name: str, used: int) -> Finding:
    """The finding for a limit that is reached."""
    text = f"{name} of {side} is {side.setting(name)}, and {used} are in use; a move needs one more"
    return Finding(ERROR, code, name, text, f"increase {name} in {side} and restart its server, or drop unused slots")


def retention(sides: Sides) -> Iterator[Finding]:
    """Settings with which a server gives up a slot, and with it the move, while an Extract is stopped or slow."""
    for side in sides.both:
        for name in ("max_slot_wal_keep_size", "idle_replication_slot_timeout"):
            value = side.setting(name)
            if value not in _NEVER:
                text = f"{name} of {side} is {value}: beyond that, the server invalidates the slot, and the move starts over"
                unlimited = "-1" if name == "max_slot_wal_keep_size" else "0"
                action = (
                    f"ALTER SYSTEM SET {name} = {unlimited} and reload {side} until the move has ended; watch its disk"
                )
                yield Finding(WARNING, "GGS-01015", name, text, action)


def sessions(sides: Sides) -> Iterator[Finding]:
    """The sessions that a move opens in each server."""
    needed = sides.request.jobs + MORE_SESSIONS
    for side in sides.both:
        free = side.capacity.free_sessions
        if free < needed:
            text = f"{side.user} can open {counted(max(free, 0), 'more session')} in {side}; a move with"
            text = f"{text} {counted(sides.request.jobs, 'job')} needs {needed}"
            action = "use fewer jobs, or increase max_connections or the connection limits of role and database"
            yield Finding(ERROR, "GGS-01016", "max_connections", text, action)


def clocks(sides: Sides) -> Iterator[Finding]:
    """The clocks of the servers, compared with each other through this machine's."""
    difference = sides.target.server.ahead - sides.source.server.ahead
    if abs(difference) > CLOCK_SECONDS:
        word = "ahead of" if difference > 0 else "slower than"
        text = f"the target's clock is {seconds_text(abs(difference))} {word} the source's: lags are wrong by the same amount"
        yield Finding(WARNING, "GGS-01017", "clock", text, "synchronize the clocks of both servers with NTP")


def size(sides: Sides) -> Iterator[Finding]:
    """How much is moved, and how long the load takes at the assumed rates."""
    tables = [table for table in sides.source.tables if table.kind is TableKind.TABLE]
    rows = sum(max(table.rows, 0) for table in tables)
    data, indexes = sum(table.size for table in tables), sum(table.index_size for table in tables)
    seconds = (data / LOAD_RATE + indexes / INDEX_RATE) / max(1, sides.request.jobs)
    unknown = sum(table.rows < 0 for table in tables)
    text = f"{counted(len(tables), 'table')} with about {rows:,} rows, {_text(data)} of rows and {_text(indexes)} of indexes"
    text += f" ({counted(unknown, 'table')} not counted: never analyzed)" * bool(unknown)
    text += f"; the load takes about {rough_text(seconds)} with {counted(sides.request.jobs, 'job')}, if each loads"
    text += f" {LOAD_RATE // _MEGABYTE} MB of rows or builds {INDEX_RATE // _MEGABYTE} MB of indexes in a second"
    yield Finding(INFO, "GGS-01018", sides.source.server.database, text, "ANALYZE the source" if unknown else "")


def disk(sides: Sides) -> Iterator[Finding]:
    """Free space at the target, if this machine sees its disk."""
    free, size = sides.target.facts.free_disk(), sides.source.server.size
    if free is not None and free < size * DISK_FACTOR:
        text = f"the target has {_text(free)} of free disk space; the database of the source has {_text(size)}, and a"
        text = f"{text} load needs about {DISK_FACTOR} times as much"
        yield Finding(ERROR, "GGS-01019", "disk", text, "free space at the target, or move fewer schemas")


def _text(size: float) -> str:
    """A size in MB or GB."""
    return f"{size / _MEGABYTE:,.0f} MB" if size < 10_000 * _MEGABYTE else f"{size / (_MEGABYTE << 10):,.0f} GB"
