"""INFO EXTRACT, REPLICAT, DISTPATH; STATUS; INFO MANAGER."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ggshell.clock import local_text
from ggshell.process.load_state import LoadState
from ggshell.shell.group_results import GroupInfo, InfoGroups, ManagerStatus, SlotFacts, Status
from ggshell.shell.lag import clock_text
from ggshell.shell.listings import trail_type
from ggshell.store.checkpoint import Checkpoint, GroupType, SourceType
from ggshell.types import LogPosition, TrailPosition, format_lsn

_LABEL = 21
_MINUTE = "%Y-%m-%d %H:%M"
_EXACT = "%Y-%m-%d %H:%M:%S.%f"


def info_groups(result: InfoGroups) -> str:
    """Every group behind a blank line."""
    return "".join(f"\n{_group(info, result)}" for info in result.groups)


def _group(info: GroupInfo, result: InfoGroups) -> str:
    lines = [*heading(info), *read_lines(info.checkpoint), *_recovery(info)]
    if result.detail:
        lines += _detail(info)
    if result.showch:
        from ggshell.shell.layout.showch import showch

        lines += ["", "", *showch(info.checkpoint)]
    return "\n".join(lines) + "\n"


def _recovery(info: GroupInfo) -> list[str]:
    """A recovery under way: which kind, how much of the log is read and left, and the time that will take."""
    found = (info.checkpoint.options.get("br") or {}).get("recovering")
    if info.pid is None or not found or found["complete"]:
        return []
    lines = [
        labelled("Recovery", f"{found['kind']}, {found['percent']} % of the log read again ({found['bytes']:,} bytes)")
    ]
    if found["left_seconds"] is not None:
        left = f"about {found['left_bytes']:,} bytes left, {round(found['left_seconds'])} seconds"
        lines.append(labelled("", left))
    return lines


def labelled(label: str, text: str) -> str:
    """A label in its column, then the value."""
    return f"{label:<{_LABEL}}{text}"


def heading(info: GroupInfo) -> list[str]:
    """Type, group, since when, status; lag; process."""
    found = info.checkpoint
    began = f"Last Started {local_text(found.started, _MINUTE)}" if found.started else _never(found)
    lines = [f"{found.type:<11}{found.group:<10}{began}   Status {info.status}"]
    lines += _mode(found)
    if found.description:
        lines.append(labelled("Description", found.description))
    if found.read.source is SourceType.TABLE:
        lines.append(labelled("Checkpoint Lag", "Not Available"))
    else:
        lag = clock_text(info.lag) if info.lag_known else "Unknown"
        lines.append(labelled("Checkpoint Lag", f"{lag} (updated {clock_text(info.since or 0)} ago)"))
    if info.pid is not None:
        lines.append(labelled("Process ID", str(info.pid)))
    return lines


def _mode(found: Checkpoint) -> list[str]:
    """The kind of a Replicat that is not classic."""
    match found.options.get("kind"):
        case "PARALLEL":
            return ["Parallel"]
        case "COORDINATED":
            return [f"{'COORDINATED':<{_LABEL}}{'Coordinator':<33}MAXTHREADS {found.options.get('maxthreads')}"]
        case "SPARK":
            return [labelled("Spark", f"Target {found.options.get('target')}")]
        case _:
            return []


def _never(found: Checkpoint) -> str:
    return f"Initialized   {local_text(found.created, _MINUTE)}"


def read_lines(found: Checkpoint) -> list[str]:
    """How far the group has read its source."""
    read = found.read
    when = local_text(read.current_time) if read.current_time else ""
    if isinstance(read.current, LogPosition) and read.source is SourceType.LOG:
        redo = bool(found.options.get("redo"))
        first = labelled("Log Read Checkpoint", "Oracle Redo Logs" if redo else "PostgreSQL Write-Ahead Log")
        if not read.current.csn:
            return [first, labelled("", _start_point(found))]
        place = f"Seqno {read.current.sequence}, RBA {read.current.rba}"
        return [
            first,
            labelled("", f"{when or 'Not Available'}  {place}"),
            labelled(
                "", _scn(read.current.csn) if redo else f"LSN {format_lsn(read.current.csn)} ({read.current.csn})"
            ),
        ]
    if isinstance(read.current, TrailPosition) and read.source is SourceType.TRAIL:
        first = labelled("Log Read Checkpoint", f"File {trail_file(read.trail, read.current.seqno)}")
        exact = local_text(read.current_time, _EXACT) if read.current_time else "First Record"
        return [first, labelled("", f"{exact}  RBA {read.current.rba}")]
    return _load_lines(found)


def _load_lines(found: Checkpoint) -> list[str]:
    """An initial load: the table it reads, how far it is, and the CSN that the rows belong to."""
    state = LoadState.of(found)
    task = labelled("Task", str(found.read.source))
    if state is None or not state.csn:
        return [labelled("Log Read Checkpoint", "Not Available"), labelled("", "First Record         Record 0"), task]
    where = f"Table {state.table}" if state.table else "All tables"
    return [
        labelled("Log Read Checkpoint", where),
        labelled("", f"{local_text(state.time)}  Record {state.rows if state.table else state.all_rows}"),
        task,
        labelled("Progress", state.words),
        labelled("Snapshot CSN", state.csn),
        labelled("Begins in", state.file),
    ]


def _scn(scn: int) -> str:
    """An SCN as wrap and base, and as a number."""
    return f"SCN {scn >> 32}.{scn & 0xFFFFFFFF} ({scn})"


def _start_point(found: Checkpoint) -> str:
    begin = local_text(found.begin_time) if found.begin_time else "First Record"
    kind = "SCN" if found.options.get("redo") else "LSN"
    return f"{begin}  {kind} {found.begin_csn}" if found.begin_csn else f"{begin}  RBA 0"


def trail_file(trail: str, seqno: int) -> str:
    """The name of a trail's file, as the trail was given."""
    return f"{trail}{seqno:09d}"


def _detail(info: GroupInfo) -> list[str]:
    found = info.checkpoint
    lines = _target_trails(found) if found.write else []
    if found.type is GroupType.EXTRACT:
        lines += _sources(found)
    if info.slot is not None:
        lines += ["", *slot_lines(info.slot)]
    if found.type is GroupType.REPLICAT:
        lines += ["", labelled("Low Watermark CSN value:", f" {found.latest_csn or '(no data)'}")]
    if found.type is GroupType.PATH:
        lines += ["", labelled("Source", str(found.options.get("source", found.read.trail)))]
        lines.append(labelled("Target", str(found.options.get("target", ""))))
    return [*lines, "", "", *(labelled(label, path) for label, path in info.paths.items())]


def _target_trails(found: Checkpoint) -> list[str]:
    lines = ["", "  Target Extract Trails:", ""]
    lines += [f"  {'Trail Name':<47}{'Seqno':>7}{'RBA':>11}{'Max MB':>11} Trail Type", ""]
    lines += [
        f"  {target.trail:<47}{target.current.seqno:>7}{target.current.rba:>11}{target.megabytes:>11}"
        f" {trail_type(target.remote):<10}"
        for target in found.write
    ]
    return lines


def _sources(found: Checkpoint) -> list[str]:
    lines = ["", f"  {'Extract Source':<40}{'Begin':<18}{'End':<16}", ""]
    if found.read.source is SourceType.TRAIL:
        place = found.read.current
        source = trail_file(found.read.trail, place.seqno if isinstance(place, TrailPosition) else 0)
    else:
        source = str(found.options.get("redo") or found.options.get("slot", "PostgreSQL"))
    begin = local_text(found.read.startup_time, _MINUTE) if found.read.startup_time else "* Initialized *"
    end = local_text(found.read.current_time, _MINUTE) if found.read.current_time else "First Record"
    return [*lines, f"  {source:<40}{begin:<18}{end:<16}".rstrip()]


_END = {"": "the limit", "max_slot_wal_keep_size": "the server gives the slot up", "disk": "the server's disk is full"}


def slot_lines(slot: SlotFacts) -> list[str]:
    """What a slot holds back, how fast that grows, and how long it can go on."""
    lines = [labelled("Replication slot", slot.name), labelled("WAL held back", size(slot.retained))]
    lines.append(labelled("WAL growth", "not known" if slot.growth is None else f"{size(slot.growth)} per hour"))
    if slot.left is not None:
        lines.append(labelled("Time left", f"{clock_text(round(slot.left * 1e6))} until {_END[slot.limit]}"))
    elif slot.room is None:
        lines.append(labelled("Room left", "the server sets no limit, and its disk cannot be seen from here"))
    else:
        lines.append(labelled("Room left", f"{size(slot.room)} until {_END[slot.limit]}"))
    return lines


def size(number: float) -> str:
    """Bytes in the unit that reads best."""
    for unit in ("bytes", "KB", "MB", "GB"):
        if abs(number) < 1024 or unit == "GB":
            return f"{number:.0f} {unit}" if unit == "bytes" else f"{number:.1f} {unit}"
        number /= 1024
    return ""


def status(result: Status) -> str:
    return "".join(f"{line.type} {line.group}: {line.status}\n" for line in result.lines)


def manager(result: ManagerStatus) -> str:
    if not result.running:
        return "\nManager is DOWN!\n"
    return f"\nManager is running (IP port TCP:{result.host}.{result.port}, Process ID {result.pid}).\n"


LAYOUTS: dict[type, Callable[[Any], str]] = {InfoGroups: info_groups, Status: status, ManagerStatus: manager}
