"""Answers of running processes: LAG, SEND … STATUS, SEND … SHOWTRANS."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ggshell.clock import local_text
from ggshell.shell.answers import GroupLag, Lags, ProcessStatus, ProcessStatuses, Transactions
from ggshell.shell.lag import clock_text
from ggshell.shell.layout.groups import slot_lines
from ggshell.shell.results import seconds

_EXACT = "%Y-%m-%d %H:%M:%S.%f"
_COLUMN = 22


def lags(result: Lags) -> str:
    return "".join(_lag(group) for group in result.groups)


def _lag(group: GroupLag) -> str:
    if group.asked:
        lines = ["", f"Sending GETLAG request to {group.type} {group.group} ..."]
    else:
        lines = ["", f"{group.type} {group.group} is {group.status}; lag by its checkpoint and what waits for it:"]
    if not group.known:
        lines.append("The lag is unknown: what waits for it cannot be read.")
    elif group.lag is None:
        lines.append("No records yet processed.")
    else:
        lines.append(f"Last record lag: {seconds(group.lag)} seconds.")
        if not group.asked:
            lines.append(f"Checkpoint Lag       {clock_text(group.lag)}")
    if group.at_end:
        lines.append("At EOF, no more records to process.")
    return "\n".join(lines) + "\n"


def statuses(result: ProcessStatuses) -> str:
    return "".join(_status(group) for group in result.groups)


def _status(group: ProcessStatus) -> str:
    answer = group.answer
    lines = ["", f"Sending STATUS request to {group.type} {group.group} ...", ""]
    lines += [
        f"{group.type} {group.group} (PID {answer.get('pid', 0)})",
        f"  Current status: {answer.get('status', '')}",
    ]
    lines += ["", "  Current read position:", *_position(answer.get("read") or {})]
    for target in answer.get("write") or ():
        lines += ["", "  Current write position:", *_position(target)]
    if group.slot is not None:
        lines += ["", *(f"  {line}" for line in slot_lines(group.slot))]
    return "\n".join(lines) + "\n"


_NAMES = (
    ("table", "Table"),
    ("record", "Record"),
    ("thread", "Redo thread #"),
    ("seqno", "Sequence #"),
    ("sequence", "Sequence #"),
    ("rba", "RBA"),
    ("timestamp", "Timestamp"),
    ("lsn", "LSN"),
    ("scn", "SCN"),
    ("csn", "Snapshot CSN"),
    ("trail", "Extract Trail"),
)


def _position(place: Mapping[str, Any]) -> list[str]:
    lines = []
    for key, label in _NAMES:
        if key in place:
            value = place[key]
            if key == "timestamp":
                value = local_text(value, _EXACT) if value else "Not Available"
            lines.append(f"    {label}: {value}")
    return lines


def transactions(result: Transactions) -> str:
    """Each open transaction behind 60 dashes, or all in one table."""
    lines = ["", f"Sending SHOWTRANS request to EXTRACT {result.group} ...", ""]
    if not result.transactions:
        lines.append("No transactions found.")
    elif result.restart is not None and "scn" in result.restart:
        place = result.restart
        lines += [
            "Oldest redo log file necessary to restart Extract is:",
            f"Redo Thread {place['thread']}, Redo Log Sequence Number {place['seqno']}, SCN {scn_text(place['scn'])},"
            f" RBA {place['rba']}",
            "",
        ]
    named = [_named(result.group, found) for found in result.transactions]
    if result.tabular and named:
        lines += _table(named)
    for found, pairs in zip(result.transactions, named, strict=True):
        if not result.tabular:
            lines.append("-" * 60)
            lines += [f"{name + ':':<{_COLUMN}}{value}" for name, value in pairs.items()]
        lines += [f"  {change}" for change in found.get("changes") or ()]
        if not result.tabular:
            lines.append("")
    return "\n".join(lines) + "\n"


def scn_text(scn: object) -> str:
    """An SCN as wrap and base, and as a number."""
    number = int(str(scn))
    return f"{number >> 32}.{number & 0xFFFFFFFF} ({number})"


def _named(group: str, found: Mapping[str, Any]) -> dict[str, object]:
    """A transaction's facts under their labels."""
    start = str(found.get("start_time", "")).replace("T", ":").replace(" ", ":")[:19]
    who = {"XID": found.get("xid"), "Items": found.get("items"), "Extract": group}
    if "scn" not in found:
        return {**who, "Start Time": start, "LSN": found.get("lsn"), "Status": found.get("status", "Running")}
    return {
        **who,
        "Redo Thread": found.get("thread"),
        "Start Time": start,
        "SCN": scn_text(found["scn"]),
        "Redo Seq": found.get("seqno"),
        "Redo RBA": found.get("rba"),
        "Status": found.get("status", "Running"),
    }


def _table(named: list[dict[str, object]]) -> list[str]:
    """One line a transaction."""
    labels = list(named[0])
    widths = [max(len(label), *(len(str(pairs.get(label, ""))) for pairs in named)) for label in labels]
    rows = [labels, *([str(pairs.get(label, "")) for label in labels] for pairs in named)]
    return ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


LAYOUTS: dict[type, Callable[[Any], str]] = {Lags: lags, ProcessStatuses: statuses, Transactions: transactions}
