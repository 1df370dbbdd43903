"""Results of INFO and STATUS for groups and Manager."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ggshell.cli.output.tables import narrow_lines
from ggshell.cli.output.units import moment, size
from ggshell.cli.results import Note, Row
from ggshell.cli.results.listings import trail_type
from ggshell.cli.results.transfers import connection_lines, target_lines
from ggshell.clock import local_text
from ggshell.connectors.registry import source_log
from ggshell.durations import MICROSECONDS, clock_text, whole_seconds
from ggshell.errors import GgsError
from ggshell.groups.load_state import LoadState
from ggshell.home.checkpoint import Checkpoint, GroupKind, PathSettings, ReplicatKind, SourceType
from ggshell.home.maintenance import MaintenanceResult
from ggshell.home.process_file import AbendReason
from ggshell.home.slot_facts import SlotFacts, SlotLimit
from ggshell.types import LogPosition, TrailPosition, format_lsn


class GroupInfo(NamedTuple):
    """A group as INFO shows it.

    ``paths``: label -> file, for DETAIL. ``connection``: what its process answers about its receivers, empty if it has none.
    ``reason``: why it has abended.
    """

    checkpoint: Checkpoint
    status: str
    pid: int | None
    lag: int | None
    since: int | None
    paths: Mapping[str, str] = {}
    slot: SlotFacts | None = None
    lag_known: bool = True
    obstacles: tuple[str, ...] = ()
    connection: Mapping[str, Any] = {}
    reason: AbendReason | None = None
    maintenance: MaintenanceResult | None = None
    passive: str = ""
    """What the source home of an alias shows of the passive Extract."""


class InfoGroups(NamedTuple):
    """INFO EXTRACT, REPLICAT, DISTPATH, RECVPATH, ER."""

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
            *(
                "receiver",
                "connected",
                "acknowledged_seqno",
                "acknowledged_rba",
                "bytes_in_flight",
                "round_trip_seconds",
            ),
            *_REASON,
        )

    @property
    def rows(self) -> list[Row]:
        return [_group_row(info) for info in self.groups]

    @property
    def layout(self) -> str:
        return _info_groups(self)

    @property
    def narrow_layout(self) -> str:
        return _info_groups(self, narrow=True)


def _group_row(info: GroupInfo) -> Row:
    found, slot = info.checkpoint, info.slot
    position = found.read.current
    place = (position[0], position[1])
    growth = None if slot is None or slot.growth_per_hour is None else max(0, slot.growth_per_hour)
    held = (slot.name, slot.retained, growth, slot.seconds_left) if slot else (None, None, None, None)
    return (
        *(
            str(found.type),
            found.group,
            info.status,
            moment(found.started),
            whole_seconds(info.lag),
            whole_seconds(info.since),
        ),
        *(info.pid, str(found.read.source), found.read.trail or None, *place, found.latest_csn or None),
        *(moment(found.record_time), *held),
        *_connection_cells(info),
        *_reason_cells(info.reason),
    )


_REASON = ("error_code", "error")


def _reason_cells(reason: AbendReason | None) -> Row:
    return (reason.code or None, reason.text) if reason is not None else (None, None)


def _connection_cells(info: GroupInfo) -> Row:
    """The receiver of the first trail in another home, and its connection; nothing for trails of this machine.

    For a RECVPATH, the source takes the place of the receiver, and the data that waits here that of the bytes in flight."""
    found = info.checkpoint
    incoming = found.reads_other_home
    target = next((each for each in found.write if incoming or each.is_elsewhere), None)
    if target is None:
        return (None,) * 6
    state = info.connection.get("connection")
    now: Mapping[str, Any] = next(iter(info.connection.get("sources" if incoming else "receivers") or ()), {})
    connected = bool(state["connected"]) if state else False
    other = found.options.source if incoming else target.receiver
    return (other, connected, *target.current, now.get("in_flight"), now.get("round_trip"))


class StatusLine(NamedTuple):
    """One group's state. ``reason``: why it has abended."""

    type: str
    group: str
    status: str
    reason: AbendReason | None = None
    maintenance: MaintenanceResult | None = None


class Status(NamedTuple):
    """STATUS of groups."""

    lines: tuple[StatusLine, ...]
    errors: tuple[GgsError, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        return ("type", "group", "status", *_REASON)

    @property
    def rows(self) -> list[Row]:
        return [(*line[:3], *_reason_cells(line.reason)) for line in self.lines]

    @property
    def layout(self) -> str:
        return _status(self)


class ManagerStatus(NamedTuple):
    """INFO MANAGER and STATUS MANAGER. ``service_ports``: the ports on which the running service listens."""

    running: bool
    host: str = ""
    port: int = 0
    pid: int = 0
    service_ports: tuple[int, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        return ("status", "host", "port", "pid", "service_ports")

    @property
    def rows(self) -> list[Row]:
        ports = " ".join(map(str, self.service_ports)) or None
        return [
            ("RUNNING" if self.running else "STOPPED", self.host or None, self.port or None, self.pid or None, ports)
        ]

    @property
    def layout(self) -> str:
        return _manager_status(self)


_LABEL = 21
_MINUTE = "%Y-%m-%d %H:%M"
_EXACT = "%Y-%m-%d %H:%M:%S.%f"


def _info_groups(result: InfoGroups, *, narrow: bool = False) -> str:
    """Format every group, each after a blank line."""
    return "".join(f"\n{_group(info, result, narrow=narrow)}" for info in result.groups)


def _group(info: GroupInfo, result: InfoGroups, *, narrow: bool) -> str:
    lines = [*heading(info), *read_lines(info.checkpoint), *_slot_place(info), *_recovery(info), *_receivers(info)]
    if result.detail:
        lines += _detail(info, narrow=narrow)
    if result.showch:
        from ggshell.cli.results.showch import showch

        lines += ["", "", *showch(info.checkpoint)]
    if info.passive:
        place = info.checkpoint.options.source.partition("://")[2].partition("/")[0]
        lines += ["", f"In the source home at {place}:", info.passive.rstrip("\n")]
    return "\n".join(lines) + "\n"


def _recovery(info: GroupInfo) -> list[str]:
    """The lines of a recovery in progress: its kind, how much of the log is read and left, and the estimated time."""
    bounded = info.checkpoint.options.bounded
    found = bounded.recovering if bounded is not None else None
    if info.pid is None or found is None or found.complete:
        return []
    lines = [labeled("Recovery", f"{found.kind}, {found.percent} % of the log read again ({found.bytes:,} bytes)")]
    if found.left_seconds is not None:
        left = f"about {found.left_bytes:,} bytes left, {round(found.left_seconds)} seconds"
        lines.append(labeled("", left))
    return lines


def _receivers(info: GroupInfo) -> list[str]:
    """The lines of trails in other homes: what the receivers have acknowledged, and how the connection works."""
    found: list[tuple[str, str]] = []
    if info.checkpoint.reads_other_home:
        found.append(("Source", info.checkpoint.options.source))
    for each in info.checkpoint.write:
        found += target_lines(each) if each.is_elsewhere else []
    return [labeled(*line) for line in (*found, *connection_lines(info.connection))]


def labeled(label: str, text: str) -> str:
    """Format a label, padded to the label column, and its value."""
    return f"{label:<{_LABEL}}{text}"


def heading(info: GroupInfo) -> list[str]:
    """The first lines of a group: type, name, start time and status; lag; process."""
    found = info.checkpoint
    began = f"Last Started {local_text(found.started, _MINUTE)}" if found.started else _never(found)
    lines = [f"{found.type:<11}{found.group:<10}{began}   Status {info.status}"]
    lines += _mode(info)
    if found.description:
        lines.append(labeled("Description", found.description))
    if found.options.special:
        lines.append("Task (SPECIALRUN), started by the Extract with RMTTASK")
    if found.is_task:
        lines.append(labeled("Checkpoint Lag", "Not Available"))
    else:
        lag = clock_text(info.lag) if info.lag_known else "Unknown"
        lines.append(labeled("Checkpoint Lag", f"{lag} (updated {clock_text(info.since or 0)} ago)"))
    if info.pid is not None:
        lines.append(labeled("Process ID", str(info.pid)))
    if info.reason is not None:
        lines.append(labeled("Last Error", str(info.reason)))
    return lines


def _mode(info: GroupInfo) -> list[str]:
    """The lines that show the mode of a Replicat that is not classic, and of a passive or alias Extract."""
    found = info.checkpoint
    if found.options.alias_of:
        return [labeled("Alias", f"of the passive EXTRACT {found.options.alias_of} of another home")]
    if found.options.passive:
        return [labeled("Passive", "started and read by an alias in another home")]
    match found.options.replicat_kind:
        case ReplicatKind.PARALLEL:
            return ["Parallel"]
        case ReplicatKind.COORDINATED:
            return [f"{'COORDINATED':<{_LABEL}}{'Coordinator':<33}MAXTHREADS {found.options.maxthreads}"]
        case ReplicatKind.LAKE:
            return [labeled("Spark", f"Target {found.options.target}"), *_maintenance(info)]
        case _:
            return []


def _maintenance(info: GroupInfo) -> list[str]:
    """The lines that show when a lake is maintained, and how the last maintenance ended."""
    every, last = info.checkpoint.options.maintenance.every, info.maintenance
    lines = [labeled("Maintenance", f"every {clock_text(every * MICROSECONDS)}")] if every else []
    if last is not None:
        ended = f"failed: {last.code} {last.error}" if last.code else "completed" if last.ended else "not completed"
        lines.append(labeled("" if every else "Maintenance", f"last {local_text(last.began)}, {ended}"))
    return lines


def _never(found: Checkpoint) -> str:
    return f"Initialized   {local_text(found.created, _MINUTE)}"


def read_lines(found: Checkpoint) -> list[str]:
    """The lines that show how far the group has read its source."""
    read = found.read
    if isinstance(read.current, LogPosition) and read.source is SourceType.LOG:
        return [labeled(*line) for line in source_log(found.options).read_position(found)]
    if isinstance(read.current, TrailPosition) and read.source is SourceType.TRAIL:
        first = labeled("Log Read Checkpoint", f"File {trail_file(read.trail, read.current.seqno)}")
        exact = local_text(read.current_time, _EXACT) if read.current_time else "First Record"
        return [first, labeled("", f"{exact}  RBA {read.current.rba}")]
    return _load_lines(found)


def _slot_place(info: GroupInfo) -> list[str]:
    """The positions of a PostgreSQL Extract's slot, as last seen. The slot of a stopped group is shown as inactive."""
    slot = info.slot
    if slot is None or not slot.restart:
        return []
    active = f"is active with PID {slot.pid}" if slot.pid and info.pid is not None else "is inactive"
    return [
        "",
        labeled("Replication Slot", f"{slot.name} {active} in database {slot.database}"),
        labeled("Slot Restart LSN", format_lsn(slot.restart)),
        labeled("Slot Flush LSN", format_lsn(slot.flush)),
        labeled("Current Log Position", format_lsn(slot.current)),
    ]


def _load_lines(found: Checkpoint) -> list[str]:
    """The lines of an initial load: current table, progress, and the CSN of the snapshot."""
    state = LoadState.of(found)
    task = labeled("Task", str(found.read.source))
    if state is None or not state.csn:
        return [labeled("Log Read Checkpoint", "Not Available"), labeled("", "First Record         Record 0"), task]
    where = f"Table {state.table}" if state.table else "All tables"
    return [
        labeled("Log Read Checkpoint", where),
        labeled("", f"{local_text(state.time)}  Record {state.rows if state.table else state.all_rows}"),
        task,
        labeled("Progress", state.words),
        labeled("Snapshot CSN", state.csn),
        labeled("Begins in", state.file),
    ]


def trail_file(trail: str, seqno: int) -> str:
    """The name of a trail file, with the path as the trail was specified."""
    return f"{trail}{seqno:09d}"


def _detail(info: GroupInfo, *, narrow: bool) -> list[str]:
    found = info.checkpoint
    lines = _target_trails(found, narrow=narrow) if found.write else []
    if found.type is GroupKind.EXTRACT:
        lines += _sources(found, narrow=narrow)
        missed = found.options.not_captured
        lines += ["", "  Tables Not Captured:", ""] if missed else []
        lines += [f"  {name}: {reason}" for name, reason in missed.items()]
    if info.slot is not None:
        lines += ["", *(slot_lines(info.slot)[1:] if info.slot.restart else slot_lines(info.slot))]
    if found.type is GroupKind.REPLICAT:
        lines += ["", labeled("Low Watermark CSN value:", f" {found.latest_csn or '(no data)'}")]
    if info.obstacles:
        lines += ["", *info.obstacles]
    if found.type.is_path:
        if found.type is not GroupKind.RECVPATH:  # shown above, with its connection
            lines += ["", labeled("Source", found.options.source or found.read.trail)]
        lines += [labeled("Target", found.options.target), *_path_settings(found.options.path)]
    return [*lines, "", "", *(labeled(label, path) for label, path in info.paths.items())]


def _path_settings(settings: PathSettings) -> list[str]:
    """The lines of what ALTER … OPTIONS and TARGET PROXY have set."""
    lines = []
    if settings.retries:
        lines.append(labeled("Restart", f"{settings.retries} times, each after {settings.delay} seconds"))
    if settings.critical:
        lines.append(labeled("Critical", "Yes"))
    if settings.eof_delay:
        lines.append(labeled("EOF Delay", f"{settings.eof_delay / 100:g} seconds"))
    if settings.proxy:
        lines.append(labeled("Proxy", settings.proxy))
    return lines


def _target_trails(found: Checkpoint, *, narrow: bool) -> list[str]:
    heads = ("Trail Name", "Seqno", "RBA", "Max MB", "Trail Type")
    rows = [
        (each.shown, each.current.seqno, each.current.rba, each.megabytes, trail_type(each.remote))
        for each in found.write
    ]
    table = [f"  {'Trail Name':<47}{'Seqno':>7}{'RBA':>11}{'Max MB':>11} Trail Type", ""]
    table += [f"  {trail:<47}{seqno:>7}{rba:>11}{most:>11} {kind:<10}" for trail, seqno, rba, most, kind in rows]
    return ["", "  Target Extract Trails:", "", *(narrow_lines(table, heads, rows) if narrow else table)]


def _sources(found: Checkpoint, *, narrow: bool) -> list[str]:
    if found.read.source is SourceType.TRAIL:
        place = found.read.current
        source = trail_file(found.read.trail, place.seqno if isinstance(place, TrailPosition) else 0)
    else:
        source = source_log(found.options).source_name(found.options)
    begin = local_text(found.read.startup_time, _MINUTE) if found.read.startup_time else "* Initialized *"
    end = local_text(found.read.current_time, _MINUTE) if found.read.current_time else "First Record"
    heads, row = ("Extract Source", "Begin", "End"), (source, begin, end)
    table = [f"  {'Extract Source':<40}{'Begin':<18}{'End':<16}", "", f"  {source:<40}{begin:<18}{end:<16}".rstrip()]
    return ["", *(narrow_lines(table, heads, [row]) if narrow else table)]


_END = {
    SlotLimit.UNKNOWN: "the limit",
    SlotLimit.CONFIGURED: "the server invalidates the slot",
    SlotLimit.DISK: "the server's disk is full",
}


def slot_lines(slot: SlotFacts) -> list[str]:
    """The lines that show how much log a slot retains, how fast that grows, and when it reaches the limit."""
    lines = [labeled("Replication slot", slot.name), labeled("WAL held back", size(slot.retained))]
    lines.append(labeled("WAL growth", _growth(slot.growth_per_hour)))
    if slot.seconds_left is not None:
        lines.append(labeled("Time left", f"{clock_text(round(slot.seconds_left * 1e6))} until {_END[slot.limit]}"))
    elif slot.room is None:
        lines.append(labeled("Room left", "the server does not set a limit, and its disk space is unknown"))
    else:
        lines.append(labeled("Room left", f"{size(slot.room)} until {_END[slot.limit]}"))
    return lines


def _growth(growth: float | None) -> str:
    if growth is None:
        return "not known"
    return f"{size(growth)} per hour" if growth >= 0 else f"none (decreasing by {size(-growth)} per hour)"


def _status(result: Status) -> str:
    lines: list[str] = []
    for each in result.lines:
        lines.append(f"{each.type} {each.group}: {each.status}\n")
        if each.reason is not None:
            lines.append(f"  {each.reason}\n")
    return "".join(lines)


def _manager_status(result: ManagerStatus) -> str:
    ports = " and ".join(map(str, result.service_ports))
    service = f"The service listens on port{'s' if len(result.service_ports) > 1 else ''} {ports}.\n" if ports else ""
    if not result.running:
        return f"\nManager is DOWN!\n{service}"
    return f"\nManager is running (IP port TCP:{result.host}.{result.port}, Process ID {result.pid}).\n{service}"
