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
    """Each open transaction behind 60 dashes."""
    lines = ["", f"Sending SHOWTRANS request to EXTRACT {result.group} ...", ""]
    if not result.transactions:
        lines.append("No transactions found.")
    for found in result.transactions:
        lines.append("-" * 60)
        pairs = {
            "XID": found.get("xid"),
            "Items": found.get("items"),
            "Extract": result.group,
            "Start Time": str(found.get("start_time", "")).replace("T", ":").replace(" ", ":")[:19],
            "LSN": found.get("lsn"),
            "Status": found.get("status", "Running"),
        }
        lines += [f"{name + ':':<{_COLUMN}}{value}" for name, value in pairs.items()]
        lines.append("")
    return "\n".join(lines) + "\n"


LAYOUTS: dict[type, Callable[[Any], str]] = {Lags: lags, ProcessStatuses: statuses, Transactions: transactions}
