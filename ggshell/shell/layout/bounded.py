"""Bounded Recovery: BRSTATUS and BRSTATS, the cache's statistics, and the timeline of BR SHOW."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ggshell.clock import local_text
from ggshell.shell.bounded_results import BoundedStatus, CacheStats, Timeline

_COLUMN = 37
_WIDTH = 60
_SHOWN = 40
_UNITS = ((1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K"))


def _pair(label: str, value: object) -> str:
    return f"{label + ':':<{_COLUMN}}{value}"


def _when(moment: int) -> str:
    return local_text(moment) if moment else "none"


def _interval(seconds: int) -> str:
    short = f"{seconds // 3600}H" if seconds % 3600 == 0 else f"{seconds / 60:g}M"
    return f"{seconds} seconds (BRINTERVAL {short})"


def status(result: BoundedStatus) -> str:
    """BRSTATUS; BRSTATS adds what was counted; other requests show the same facts after them."""
    found = result.answer
    lines = ["", f"Sending BR {result.request} request to EXTRACT {result.group} ...", ""]
    lines += [
        _pair("Bounded Recovery status", found["status"]),
        _pair("  Checkpoint interval", _interval(found["interval"])),
        _pair("  Last checkpoint number", found["last_number"] if found["last_time"] else "none"),
        _pair("  Last checkpoint", _when(found["last_time"])),
        _pair("  Next checkpoint", f"{_when(found['next_time'])}, or when the log has moved on by an interval"),
        _pair("  Forced checkpoint", _when(found["forced_time"])),
        _pair("  Persisted objects (state, data)", _objects(found["objects"], found["state"], found["data"])),
        _pair("  Outstanding objects (state, data)", _objects(found["outstanding"], 0, found["outstanding_data"])),
    ]
    if found.get("begin"):
        lines.append(_pair("  Begin recovery position", place(found["begin"])))
        lines.append(_pair("  End recovery position", place(found["end"])))
    if found.get("failure"):
        lines.append(_pair("  Last failure", found["failure"]))
    persisted = found.get("persisted") or []
    if persisted:
        lines += ["", f"  {'Transaction':<22}{'Open since':<21}{'State':>10}{'Data':>14}  Written at  Dirty"]
    for name, begin, state, data, written, dirty in persisted:
        since = local_text(begin)
        lines.append(f"  {name:<22}{since:<21}{state:>10,}{data:>14,}  {written:<10}  {'yes' if dirty else 'no'}")
    if result.request == "BRSTATS":
        lines += ["", *_counted(found["counts"])]
    return "\n".join(lines) + "\n"


def _counted(counts: dict[str, int]) -> list[str]:
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


def place(fields: list[int]) -> str:
    """Sequence, byte, SCN, thread and time of a position, as events show it."""
    sequence, rba, scn, thread, time = fields
    shown = f"{scn >> 32}.{scn & 0xFFFFFFFF} ({scn})"
    return f"SeqNo: {sequence}, RBA: {rba}, SCN: {shown}, Timestamp: {_when(time)}, Thread: {thread or 1}"


def cache(result: CacheStats) -> str:
    """CACHESTATS in the vendor's labels, where there is something that answers to them."""
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


def timeline(result: Timeline) -> str:
    """The log's time from left to right: checkpoint C, restart R, transactions as bars (= stands in files, - is read again)."""
    begins = [bar.begin for bar in result.bars] + [moment for moment in (result.restart, result.checkpoint) if moment]
    first, last = min(begins, default=result.end), result.end
    name = max([12, *(len(bar.name) for bar in result.bars[:_SHOWN])])
    lines = ["", f"Bounded Recovery of EXTRACT {result.group}", ""]
    if not last:
        return "\n".join([*lines, "Nothing was read yet."]) + "\n"
    lines.append(f"{'':<{name}}  {local_text(first):<{_WIDTH - 19}}{local_text(last)}")
    marks = [" "] * _WIDTH
    for letter, moment in (("C", result.checkpoint), ("R", result.restart)):
        if moment:
            at = _column(moment, first, last)
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
        seconds = max(0, result.end - result.restart) // 1_000_000
        segments = max(1, result.end_sequence - result.restart_sequence + 1) if result.restart_sequence else 0
        log = f", segment {result.restart_sequence} to {result.end_sequence}" if segments else ""
        lines.append(f"   and read {seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02} of log{log}")
        lines.append(
            f"   (the most that it may be: {2 * result.interval // 3600:02}:{2 * result.interval // 60 % 60:02}:00)"
        )
    lines.append("=  stands in files   -  would be read again")
    if not result.running:
        lines.append("The process does not run: only transactions that stand in files are drawn.")
    return lines


LAYOUTS: dict[type, Callable[[Any], str]] = {BoundedStatus: status, CacheStats: cache, Timeline: timeline}
