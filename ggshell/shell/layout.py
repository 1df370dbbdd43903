"""GGSCI's layouts: the texts that administrators know and that monitoring scripts parse, column by column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ggshell.clock import local_text
from ggshell.process.state import ProcessState
from ggshell.shell.lag import duration
from ggshell.store.checkpoint import Checkpoint, GroupType, ReadCheckpoint, SourceType, WriteCheckpoint
from ggshell.store.home import GroupEntry, Home
from ggshell.types import Csn, LogPosition, TrailPosition

INFO_ALL_COLUMNS = ("program", "status", "group", "lag_at_chkpt", "time_since_chkpt")
GROUP_COLUMNS = ("program", "group", "status", "lag", "updated_ago", "source", "position", "started")
_TYPE_WORDS = {GroupType.EXTRACT: "EXTRACT", GroupType.REPLICAT: "REPLICAT", GroupType.PATH: "DISTPATH"}
_ALL = "%-12s%-12s%-12s%-14s%-12s"


class GroupFacts(NamedTuple):
    """What INFO knows of a group."""

    entry: GroupEntry
    checkpoint: Checkpoint
    state: ProcessState
    pid: int
    lag: int | None
    now: int


def info_all(rows: Sequence[Sequence[str]]) -> str:
    head = _ALL % ("Program", "Status", "Group", "Lag at Chkpt", "Time Since Chkpt")
    return "\n".join([head.rstrip(), "", *(_ALL % tuple(row) for row in rows), ""])


def _ago(facts: GroupFacts) -> str:
    updated = facts.checkpoint.updated or facts.checkpoint.created
    return duration(max(0, (facts.now - updated) // 1_000_000))


def _started(facts: GroupFacts) -> str:
    checkpoint = facts.checkpoint
    if not checkpoint.started:
        return f"Initialized   {local_text(checkpoint.created, '%Y-%m-%d %H:%M')}"
    return f"Last Started {local_text(checkpoint.started, '%Y-%m-%d %H:%M')}"


def _source(read: ReadCheckpoint) -> str:
    if read.source is SourceType.LOG:
        return "PostgreSQL Write-Ahead Log"
    place = read.current
    return f"File {read.trail}{place.seqno if isinstance(place, TrailPosition) else 0:09d}"


def _position(read: ReadCheckpoint) -> tuple[str, str]:
    place = read.current
    if isinstance(place, TrailPosition):
        moment = local_text(read.current_time, "%Y-%m-%d %H:%M:%S.%f") if read.current_time else "First Record"
        return f"{moment}  RBA {place.rba}", ""
    if not place.csn:
        return "First Record", ""
    moment = local_text(read.current_time) if read.current_time else "Not Available"
    return f"{moment}  Seqno {place.sequence}, RBA {place.rba}", f"LSN {Csn(place.csn)}"


def group_row(facts: GroupFacts) -> tuple[Any, ...]:
    entry, read = facts.entry, facts.checkpoint.read
    first, second = _position(read)
    return (
        _TYPE_WORDS[entry.type],
        entry.group,
        facts.state.value,
        duration(facts.lag),
        _ago(facts),
        _source(read),
        f"{first} {second}".strip(),
        _started(facts),
    )


def info_group(home: Home, facts: GroupFacts, *, detail: bool, showch: bool) -> str:
    """INFO of one group, with what DETAIL and SHOWCH add."""
    entry, checkpoint = facts.entry, facts.checkpoint
    kind = _TYPE_WORDS[entry.type]
    first, second = _position(checkpoint.read)
    lines = [f"{kind:<11}{entry.group:<10} {_started(facts)}   Status {facts.state.value}"]
    if checkpoint.description:
        lines.append(f"{'Description':<21}{checkpoint.description}")
    lines.append(f"{'Checkpoint Lag':<21}{duration(facts.lag)} (updated {_ago(facts)} ago)")
    if facts.pid and facts.state is ProcessState.RUNNING:
        lines.append(f"{'Process ID':<21}{facts.pid}")
    lines.append(f"{'Log Read Checkpoint':<21}{_source(checkpoint.read)}")
    lines += [f"{'':<21}{text}" for text in (first, second) if text]
    if detail:
        lines += _detail(home, facts)
    if showch:
        lines += ["", "", *_showch(checkpoint)]
    return "\n".join(lines)


def _detail(home: Home, facts: GroupFacts) -> list[str]:
    entry, checkpoint = facts.entry, facts.checkpoint
    lines: list[str] = []
    if checkpoint.write:
        lines += [
            "",
            "  Target Extract Trails:",
            "",
            f"  {'Trail Name':<49}{'Seqno':>5}{'RBA':>11}{'Max MB':>11} Trail Type",
            "",
        ]
        for item in checkpoint.write:
            kind = "RMTTRAIL" if item.remote else "EXTTRAIL"
            place = item.current
            lines.append(f"  {item.trail:<49}{place.seqno:>5}{place.rba:>11}{item.megabytes:>11} {kind}")
    lines += _slot_lines(checkpoint)
    lines.append("")
    if entry.type is GroupType.REPLICAT:
        low = checkpoint.latest_csn or "(no data)"
        lines.append(f"Low Watermark CSN value: {low}")
        lines.append(f"High Watermark CSN value: {low}")
        lines.append("")
    report = home.report(entry.group)
    lines.append(f"{'Current directory':<21}{home.root}")
    lines.append(f"{'Report file':<21}{report}{'' if report.exists() else ' (does not yet exist)'}")
    lines.append(f"{'Parameter file':<21}{home.parameters(entry.group)}")
    lines.append(f"{'Checkpoint file':<21}{home.checkpoint(entry.group, entry.type)}")
    if entry.type is GroupType.REPLICAT:
        lines.append(f"{'Checkpoint table':<21}{checkpoint.options.get('checkpoint_table', '')}")
    lines.append(f"{'Process file':<21}{home.process(entry.group, entry.type)}")
    lines.append(f"{'Error log':<21}{home.event_log}")
    return lines


def _slot_lines(checkpoint: Checkpoint) -> list[str]:
    """What the source's slot holds back, as the process last saw it."""
    watch = checkpoint.options.get("watch")
    return ["", *slot_text(watch)] if watch else []


def slot_text(watch: dict[str, Any]) -> list[str]:
    """A slot's facts in words."""
    lines = [
        f"  Replication slot {watch['name']} ({watch['wal_status']}): {watch['retained']:,} bytes of log held back"
    ]
    lines.append(f"    growing by {watch['growth_per_hour']:,} bytes per hour")
    if watch.get("room") is not None:
        left = watch.get("hours_left")
        rest = f", {left:.1f} hours at this rate" if left is not None else ""
        lines.append(f"    {watch['room']:,} bytes left until max_slot_wal_keep_size{rest}")
    return lines


def _showch(checkpoint: Checkpoint) -> list[str]:
    read = checkpoint.read
    lines = ["Current Checkpoint Detail:", "", "Read Checkpoint #1", ""]
    is_log = read.source is SourceType.LOG
    lines += ["  PostgreSQL Write-Ahead Log" if is_log else "  GGS Log Trail", ""]
    lines += [
        "  Startup Checkpoint (starting position in the data source):",
        *_place(read, read.startup, read.startup_time),
        "",
    ]
    if is_log:
        lines.append("  Recovery Checkpoint (position of oldest unprocessed transaction in the data source):")
        lines += [*_place(read, read.recovery, read.recovery_time), ""]
    lines.append("  Current Checkpoint (position of last record read in the data source):")
    lines += [*_place(read, read.current, read.current_time), ""]
    for number, item in enumerate(checkpoint.write, 1):
        lines += [f"Write Checkpoint #{number}", "", "  GGS Log Trail", "", *_written(item), ""]
    if checkpoint.latest_csn:
        lines += [
            "CSN state information:",
            f"  Latest CSN: {checkpoint.latest_csn}",
            f"  Latest TXN: {checkpoint.latest_xid}",
            "",
        ]
    if "group_key" in checkpoint.options:
        key = int(checkpoint.options["group_key"])
        lines += ["Database Checkpoint:", f"  Checkpoint table = {checkpoint.options.get('checkpoint_table', '')}"]
        lines += [f"  Key = {key} (0x{key:x})", ""]
    lines += [
        "Header:",
        "  Version = 2",
        "  Record Source = A",
        f"  Type = {10 if is_log else 1}",
        "  # Input Checkpoints = 1",
    ]
    lines += [
        f"  # Output Checkpoints = {len(checkpoint.write)}",
        "",
        "Configuration:",
        f"  Data Source = {3 if is_log else 0}",
    ]
    lines += ["  Transaction Integrity = 1", "  Task Type = 0", "", "Status:"]
    lines += [f"  Start Time = {_moment(checkpoint.started)}", f"  Last Update Time = {_moment(checkpoint.updated)}"]
    return [*lines, f"  Stop Status = {checkpoint.stop.value}", f"  Last Result = {checkpoint.result}"]


def _moment(time: int) -> str:
    return local_text(time) if time else "Not Available"


def _place(read: ReadCheckpoint, place: LogPosition | TrailPosition, time: int) -> list[str]:
    stamp = local_text(time, "%Y-%m-%d %H:%M:%S.%f") if time else "Not Available"
    if isinstance(place, TrailPosition):
        lines = [f"    Sequence #: {place.seqno}", f"    RBA: {place.rba}", f"    Timestamp: {stamp}"]
        return [*lines, f"    Extract Trail: {read.trail}"]
    lines = [f"    Sequence #: {place.sequence}", f"    RBA: {place.rba}", f"    Timestamp: {stamp}"]
    return [*lines, f"    LSN: {Csn(place.csn) if place.csn else 'Not available'}"]


def _written(item: WriteCheckpoint) -> list[str]:
    stamp = local_text(item.current_time, "%Y-%m-%d %H:%M:%S.%f") if item.current_time else "Not Available"
    return [
        "  Current Checkpoint (current write position):",
        f"    Sequence #: {item.current.seqno}",
        f"    RBA: {item.current.rba}",
        f"    Timestamp: {stamp}",
        f"    Extract Trail: {item.trail}",
        "    Seqno Length: 9",
        "    Flip Seqno Length: No",
        f"    Trail Type: {'RMTTRAIL' if item.remote else 'EXTTRAIL'}",
    ]


def info_trail(trail: str, group: str, place: TrailPosition, megabytes: int) -> str:
    pairs = [("Extract Trail", trail), ("Extract", group), ("Seqno", place.seqno), ("RBA", place.rba)]
    lines = [f"{label:>20}: {value}" for label, value in [*pairs, ("File Size", f"{megabytes}M")]]
    return "\n".join(lines)


def statistics(
    kind: GroupType, group: str, snapshot: dict[str, Any], sections: Sequence[str], *, trails: Sequence[str]
) -> str:
    """STATS of one process."""
    lines = [f"Sending STATS request to {_TYPE_WORDS[kind]} {group} ...", ""]
    if not snapshot["tables"]:
        nothing = "No active replication maps." if kind is GroupType.REPLICAT else "No active extraction maps."
        return "\n".join([*lines, nothing])
    lines.append(f"Start of Statistics at {local_text(snapshot['now'])}.")
    if kind is not GroupType.REPLICAT:
        lines += ["", f"Output to {', '.join(trails)}:"]
    verb = "Replicating" if kind is GroupType.REPLICAT else "Extracting"
    for table in snapshot["tables"]:
        lines += ["", f"{verb} from {table['source']} to {table['target']}:"]
        for section in sections:
            lines += ["", *_section(section, snapshot["sections"][section], table["counts"][section])]
    return "\n".join([*lines, "", "End of Statistics."])


def _section(section: str, since: int, counts: dict[str, int]) -> list[str]:
    title = f"*** {section.capitalize()} statistics since {local_text(since)} ***"
    if not any(counts.values()):
        return [title, "", "        No database operations have been performed."]
    shown = {f"Total {kind}": counts[kind] for kind in ("inserts", "updates", "deletes", "upserts")}
    if counts["truncates"]:
        shown["Total truncates"] = counts["truncates"]
    shown["Total discards"] = counts["discards"]
    shown["Total operations"] = sum(counts.values()) - counts["discards"]
    return [title, *(f"        {label}{number:>{55 - len(label)}.2f}" for label, number in shown.items())]
