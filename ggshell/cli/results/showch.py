"""GGSCI layout of INFO … SHOWCH: the complete checkpoint."""

from __future__ import annotations

from ggshell.cli.results.listings import trail_type
from ggshell.clock import local_text
from ggshell.connectors.registry import source_log
from ggshell.home.checkpoint import Checkpoint, GroupKind, SourceType, WriteCheckpoint
from ggshell.types import LogPosition, TrailPosition

_EXACT = "%Y-%m-%d %H:%M:%S.%f"
_NOT = "Not Available"


def showch(found: Checkpoint) -> list[str]:
    """The lines of a checkpoint's details."""
    lines = ["Current Checkpoint Detail:", "", "Read Checkpoint #1", "", f"  {_source(found)}", ""]
    for title, place, time in _read_places(found):
        lines += [f"  {title}:", *_place(found, place, time), ""]
    lines += _bounded(found)
    for number, target in enumerate(found.write, 1):
        lines += _write(number, target)
    lines += ["CSN state information:", f"  Latest CSN: {found.latest_csn or _NOT}"]
    lines += [f"  Latest TXN: {found.latest_xid or _NOT}", *_finished(found), ""]
    return lines + _table_block(found) + _closing(found)


def _finished(found: Checkpoint) -> list[str]:
    """The completed transactions of the last CSN, which several can share."""
    if not found.latest_csn:
        return []
    xids = found.options.completed or (found.latest_xid,)
    return [f"  Latest CSN of finished TXNs: {found.latest_csn}", f"  Completed TXNs: {', '.join(xids)}"]


def _source(found: Checkpoint) -> str:
    return source_log(found.options).title if found.read.source is SourceType.LOG else "GGS Log Trail"


def _read_places(found: Checkpoint) -> list[tuple[str, LogPosition | TrailPosition, int]]:
    read = found.read
    startup = ("Startup Checkpoint (starting position in the data source)", read.startup, read.startup_time)
    recovery = (
        "Recovery Checkpoint (position of oldest unprocessed transaction in the data source)",
        read.recovery,
        read.recovery_time,
    )
    current = ("Current Checkpoint (position of last record read in the data source)", read.current, read.current_time)
    return [startup, current] if found.read.source is SourceType.TRAIL else [startup, recovery, current]


def _bounded(found: Checkpoint) -> list[str]:
    """The three positions of Bounded Recovery and its persisted objects."""
    kept = found.options.bounded
    if kept is None or kept.begin is None:
        return []
    lines: list[str] = []
    for title, at in (("Previous", kept.previous), ("Begin", kept.begin), ("End", kept.end)):
        place, time = (at.place, at.time) if at is not None else (LogPosition(0, 0, 0), 0)
        lines += [f"  BR {title} Recovery Checkpoint:", *_place(found, place, time), ""]
    lines += [
        "  Bounded Recovery:",
        f"    Status: {kept.status}",
        f"    Interval: {kept.interval} seconds",
        f"    Checkpoint Number: {kept.last_number}",
        f"    Checkpoint Time: {_time(kept.last_time)}",
        f"    Persisted Objects: {kept.objects} ({kept.state:,} bytes of state, {kept.data:,} of data)",
    ]
    for name, begin, state, data, written, dirty in kept.persisted:
        size = f"{state:,} + {data:,} bytes, written at checkpoint {written}"
        lines.append(f"      {name}  open since {local_text(begin)}, {size}, {'dirty' if dirty else 'clean'}")
    return [*lines, ""]


def _time(moment: int) -> str:
    return local_text(moment, _EXACT) if moment else _NOT


def _place(found: Checkpoint, place: LogPosition | TrailPosition, time: int) -> list[str]:
    if isinstance(place, LogPosition):
        return [
            f"    Thread #: {place.thread}",
            f"    Sequence #: {place.sequence}",
            f"    RBA: {place.rba}",
            f"    Timestamp: {_time(time)}",
            *(f"    {fact}" for fact in source_log(found.options).position_facts(found.options, place)),
        ]
    return [
        f"    Sequence #: {place.seqno}",
        f"    RBA: {place.rba}",
        f"    Timestamp: {_time(time)}",
        f"    Extract Trail: {found.read.trail}",
    ]


def _write(number: int, target: WriteCheckpoint) -> list[str]:
    return [
        f"Write Checkpoint #{number}",
        "",
        "  GGS Log Trail",
        "",
        "  Current Checkpoint (current write position):",
        f"    Sequence #: {target.current.seqno}",
        f"    RBA: {target.current.rba}",
        f"    Timestamp: {_time(target.current_time)}",
        f"    Extract Trail: {target.trail}",
        "    Seqno Length: 9",
        "    Flip Seqno Length: No",
        f"    Trail Type: {trail_type(target.remote)}",
        *([f"    Receiver: {target.receiver}"] if target.is_elsewhere else []),
        "",
    ]


def _table_block(found: Checkpoint) -> list[str]:
    table = found.options.checkpoint_table
    if not table:
        return []
    key = found.options.group_key or 0
    lines = ["Database Checkpoint:", f"  Checkpoint table = {table}"]
    return [*lines, f"  Key = {key} (0x{key:x})", f"  Create Time = {local_text(found.created)}", ""]


def _closing(found: Checkpoint) -> list[str]:
    from_log = found.read.source is SourceType.LOG
    return [
        "Header:",
        "  Version = 2",
        "  Record Source = A",
        f"  Type = {10 if from_log else 1}",
        "  # Input Checkpoints = 1",
        f"  # Output Checkpoints = {len(found.write)}",
        "",
        "Configuration:",
        f"  Data Source = {3 if from_log else 0}",
        f"  Transaction Integrity = {-1 if found.type is GroupKind.REPLICAT else 1}",
        "  Task Type = 0",
        "",
        "Status:",
        f"  Start Time = {local_text(found.started) if found.started else _NOT}",
        f"  Last Update Time = {local_text(found.updated) if found.updated else _NOT}",
        f"  Stop Status = {found.stop}",
        f"  Last Result = {found.result}",
    ]
