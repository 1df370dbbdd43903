"""Results about Bounded Recovery and the cache of an Extract: BRSTATUS, BRSTATS, CACHESTATS and BR SHOW."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ggshell.cli.output.tables import narrow_lines
from ggshell.cli.output.units import moment
from ggshell.cli.results import Row
from ggshell.clock import local_text
from ggshell.durations import MICROSECONDS, clock_text, interval_text
from ggshell.home.bounded_state import BoundedState, TimedPosition


class BoundedStatus(NamedTuple):
    """The result of SEND EXTRACT … BR: the request, the state of Bounded Recovery after it, and the counters of BRSTATS."""

    group: str
    request: str
    state: BoundedState
    counts: Mapping[str, int]

    @property
    def columns(self) -> tuple[str, ...]:
        return (
            *(
                "extract",
                "status",
                "interval_seconds",
                "last_number",
                "last_time",
                "next_time",
                "forced_time",
                "objects",
            ),
            *("state_bytes", "data_bytes", "outstanding", "outstanding_bytes", "failure"),
            *("checkpoints", "failed", "objects_written", "objects_kept", "bytes_written", "microseconds"),
        )

    @property
    def rows(self) -> list[Row]:
        found = self.state
        return [
            (
                *(self.group, found.status, found.interval, found.last_number),
                *(moment(time) for time in (found.last_time, found.next_time, found.forced_time)),
                *(found.objects, found.state, found.data, found.outstanding, found.outstanding_data),
                found.failure or None,
                *(self.counts.get(name) for name in self.columns[-6:]),
            )
        ]

    @property
    def layout(self) -> str:
        return _bounded_status(self)

    @property
    def narrow_layout(self) -> str:
        return _bounded_status(self, narrow=True)


class CacheStats(NamedTuple):
    """SEND EXTRACT … CACHEMGR CACHESTATS."""

    group: str
    facts: Mapping[str, int]

    @property
    def columns(self) -> tuple[str, ...]:
        return ("extract", *self.facts)

    @property
    def rows(self) -> list[Row]:
        return [(self.group, *self.facts.values())]

    @property
    def layout(self) -> str:
        return _cache_stats(self)


class Bar(NamedTuple):
    """An open transaction in the timeline; times are log times in microseconds since 1970."""

    name: str
    begin: int
    persisted: bool
    dirty: bool = False
    items: int | None = None


class Timeline(NamedTuple):
    """The result of BR SHOW.

    ``restart``: where a restart would begin to read; ``reason``: why there. Times are in microseconds, 0 if unknown.
    """

    group: str
    end: int
    bars: tuple[Bar, ...]
    checkpoint: int
    number: int
    interval: int
    restart: int
    restart_sequence: int
    end_sequence: int
    reason: str
    running: bool

    @property
    def columns(self) -> tuple[str, ...]:
        return ("extract", "transaction", "begin", "persisted", "dirty", "items", "restart", "checkpoint", "log_end")

    @property
    def rows(self) -> list[Row]:
        ends = (moment(self.restart), moment(self.checkpoint), moment(self.end))
        if not self.bars:
            return [(self.group, None, None, None, None, None, *ends)]
        return [(self.group, b.name, moment(b.begin), b.persisted, b.dirty, b.items, *ends) for b in self.bars]

    @property
    def layout(self) -> str:
        return _timeline(self)


_COLUMN = 37
_WIDTH = 60
_SHOWN = 40
_UNITS = ((1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K"))


def _pair(label: str, value: object) -> str:
    return f"{label + ':':<{_COLUMN}}{value}"


def _when(moment: int) -> str:
    return local_text(moment) if moment else "none"


def _interval(seconds: int) -> str:
    return f"{seconds} seconds (BRINTERVAL {interval_text(seconds)})"


_PERSISTED_HEADS = ("Transaction", "Open since", "State", "Data", "Written at", "Dirty")


def _persisted(found: BoundedState, *, narrow: bool) -> list[str]:
    """The table of the transactions that are written to files."""
    rows = [
        (name, local_text(begin), f"{state:,}", f"{data:,}", written, "yes" if dirty else "no")
        for name, begin, state, data, written, dirty in found.persisted
    ]
    table = [
        f"  {name:<22}{since:<21}{state:>10}{data:>14}  {written:<10}  {dirty}"
        for name, since, state, data, written, dirty in (_PERSISTED_HEADS, *rows)
    ]
    return narrow_lines(table, _PERSISTED_HEADS, rows) if narrow else table


def _bounded_status(result: BoundedStatus, *, narrow: bool = False) -> str:
    """Format BRSTATUS; BRSTATS adds counters; other requests show the state after they were carried out."""
    found = result.state
    lines = ["", f"Sending BR {result.request} request to EXTRACT {result.group} ...", ""]
    lines += [
        _pair("Bounded Recovery status", found.status),
        _pair("  Checkpoint interval", _interval(found.interval)),
        _pair("  Last checkpoint number", found.last_number if found.last_time else "none"),
        _pair("  Last checkpoint", _when(found.last_time)),
        _pair("  Next checkpoint", f"{_when(found.next_time)}, or when the log has moved on by an interval"),
        _pair("  Forced checkpoint", _when(found.forced_time)),
        _pair("  Persisted objects (state, data)", _objects(found.objects, found.state, found.data)),
        _pair("  Outstanding objects (state, data)", _objects(found.outstanding, 0, found.outstanding_data)),
    ]
    if found.begin is not None and found.end is not None:
        lines.append(_pair("  Begin recovery position", place(found.begin)))
        lines.append(_pair("  End recovery position", place(found.end)))
    if found.failure:
        lines.append(_pair("  Last failure", found.failure))
    if found.persisted:
        lines += ["", *_persisted(found, narrow=narrow)]
    if result.request == "BRSTATS":
        lines += ["", *_counted(result.counts)]
    return "\n".join(lines) + "\n"


def _counted(counts: Mapping[str, int]) -> list[str]:
    made = counts["checkpoints"]
    return [
        "Since the start of the process:",
        _pair("  Checkpoints made, failed", f"{made}, {counts['failed']}"),
        _pair("  Objects written, kept", f"{counts['objects_written']}, {counts['objects_kept']}"),
        _pair("  Bytes written", f"{counts['bytes_written']:,}"),
        _pair("  Time for checkpoints", f"{counts['microseconds'] / 1e6:.3f} seconds"),
    ]


def _objects(count: int, state: int, data: int) -> str:
    return f"{count} ({state:,}, {data:,} bytes)"


def place(position: TimedPosition) -> str:
    """Format the sequence number, RBA, SCN, time and thread of a position, as in the events."""
    sequence, rba, scn, thread, time = position
    shown = f"{scn >> 32}.{scn & 0xFFFFFFFF} ({scn})"
    return f"SeqNo: {sequence}, RBA: {rba}, SCN: {shown}, Timestamp: {_when(time)}, Thread: {thread or 1}"


def _cache_stats(result: CacheStats) -> str:
    """Format CACHESTATS with the vendor's labels, as far as there is a corresponding value."""
    found = result.facts
    full = "CACHE BALANCED" if found["used"] <= found["limit"] else "CACHE FULL"
    lines = ["", f"Sending CACHEMGR CACHESTATS request to EXTRACT {result.group} ...", ""]
    lines += ["CACHE OBJECT MANAGER statistics", "", "CACHE MANAGER VM USAGE"]
    lines += [
        f"vm current     = {_size(found['used'])}    vm used max    = {_size(found['most_used'])}   ==> {full}",
        "",
    ]
    lines += ["CACHE CONFIGURATION", f"cache size     = {_size(found['limit'])}", "", "=" * 80]
    lines += ["RUNTIME STATS FOR SUPERPOOL", "", "CACHE Transaction Stats"]
    lines.append(f"trans active    = {_size(found['open'])}    max concurrent = {_size(found['most_open'])}")
    lines.append(f"non-zero total  = {_size(found['with_data'])}    trans total    = {_size(found['begun'])}")
    lines += ["", "CACHE File Caching"]
    lines.append(f"filecache rqsts = {_size(found['spills'])}    bytes to disk  = {_size(found['spilled'])}")
    lines.append(f"objs filecached = {_size(found['in_files'])}")
    return "\n".join(lines) + "\n"


def _size(value: int) -> str:
    for unit, letter in _UNITS:
        if value >= unit:
            return f"{value / unit:.4g}{letter}".rjust(6)
    return f"{value:>6}"


def _timeline(result: Timeline) -> str:
    """Draw the log's time from left to right: checkpoint C, restart R, and a bar per transaction.

    In a bar, ``=`` is the part that is in files and ``-`` the part that a restart reads again.
    """
    begins = [bar.begin for bar in result.bars] + [time for time in (result.restart, result.checkpoint) if time]
    first, last = min(begins, default=result.end), result.end
    name = max([12, *(len(bar.name) for bar in result.bars[:_SHOWN])])
    lines = ["", f"Bounded Recovery of EXTRACT {result.group}", ""]
    if not last:
        return "\n".join([*lines, "Nothing has been read yet."]) + "\n"
    lines.append(f"{'':<{name}}  {local_text(first):<{_WIDTH - 19}}{local_text(last)}")
    marks = [" "] * _WIDTH
    for letter, time in (("C", result.checkpoint), ("R", result.restart)):
        if time:
            at = _column(time, first, last)
            marks[at] = letter if marks[at] == " " else "*"
    lines.append(f"{'log':<{name}}  {''.join(marks).replace(' ', '.')}")
    for bar in result.bars[:_SHOWN]:
        begin = _column(bar.begin, first, last)
        saved = _column(result.checkpoint, first, last) if bar.persisted and result.checkpoint else begin
        drawn = " " * begin + "=" * (saved - begin) + "-" * (_WIDTH - max(saved, begin))
        lines.append(f"{bar.name:<{name}}  {drawn} {_note(bar.persisted, bar.dirty)}".rstrip())
    if len(result.bars) > _SHOWN:
        lines.append(f"{'':<{name}}  … and {len(result.bars) - _SHOWN} more")
    lines += ["", *_summary(result)]
    return "\n".join(lines) + "\n"


def _note(persisted: bool, dirty: bool) -> str:
    return "" if not persisted else "persisted, dirty" if dirty else "persisted"


def _column(moment: int, first: int, last: int) -> int:
    return min(_WIDTH - 1, max(0, (moment - first) * (_WIDTH - 1) // max(last - first, 1)))


def _summary(result: Timeline) -> list[str]:
    made = f"C  checkpoint {result.number}, log time {local_text(result.checkpoint)}" if result.checkpoint else ""
    lines = [made or "C  no Bounded Recovery checkpoint yet"]
    start = local_text(result.restart) if result.restart else "not known"
    lines.append(f"R  a restart would begin to read at {start}: {result.reason}")
    if result.restart:
        segments = max(1, result.end_sequence - result.restart_sequence + 1) if result.restart_sequence else 0
        log = f", segment {result.restart_sequence} to {result.end_sequence}" if segments else ""
        lines.append(f"   and read {clock_text(max(0, result.end - result.restart))} of log{log}")
        lines.append(f"   (maximum: {clock_text(2 * result.interval * MICROSECONDS)})")
    lines.append("=  is in files   -  would be read again")
    if not result.running:
        lines.append("The process is not running: only transactions that are in files are shown.")
    return lines
