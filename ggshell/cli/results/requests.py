"""Results of requests to running processes: LAG, SEND … STATUS, SEND … SHOWTRANS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ggshell.cli.output.tables import aligned
from ggshell.cli.output.units import moment
from ggshell.cli.results import Note, Row
from ggshell.cli.results.groups import slot_lines
from ggshell.cli.results.transfers import connection_lines
from ggshell.clock import local_text
from ggshell.durations import clock_text, whole_seconds
from ggshell.errors import GgsError
from ggshell.home.slot_facts import SlotFacts


class GroupLag(NamedTuple):
    """The lag of one group.

    ``asked``: the running process reported it; otherwise it was computed from files (``known``: they could be read).
    ``waits``: what the group's statements are waiting for.
    """

    type: str
    group: str
    lag: int | None
    at_end: bool
    asked: bool = True
    status: str = "RUNNING"
    known: bool = True
    waits: tuple[str, ...] = ()


class Lags(NamedTuple):
    """LAG and SEND … GETLAG."""

    groups: tuple[GroupLag, ...]
    errors: tuple[GgsError, ...] = ()
    notes: tuple[Note, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        return ("type", "group", "status", "lag_seconds", "at_end")

    @property
    def rows(self) -> list[Row]:
        return [(g.type, g.group, g.status, whole_seconds(g.lag), g.at_end) for g in self.groups]

    @property
    def layout(self) -> str:
        return _lags(self)


class ProcessStatus(NamedTuple):
    """SEND … STATUS of one group: the answer of its process."""

    type: str
    group: str
    answer: Mapping[str, Any]
    slot: SlotFacts | None = None


class ProcessStatuses(NamedTuple):
    """SEND … STATUS."""

    groups: tuple[ProcessStatus, ...]
    errors: tuple[GgsError, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        return ("type", "group", "pid", "status", "seqno", "rba", "lsn", "timestamp", "wal_bytes_held")

    @property
    def rows(self) -> list[Row]:
        found: list[Row] = []
        for group in self.groups:
            answer, read = group.answer, group.answer.get("read") or {}
            place = (
                read.get("seqno", read.get("sequence")),
                read.get("rba"),
                read.get("lsn"),
                moment(read.get("timestamp") or 0),
            )
            held = group.slot.retained if group.slot else None
            found.append((group.type, group.group, answer.get("pid"), answer.get("status"), *place, held))
        return found

    @property
    def layout(self) -> str:
        return _process_statuses(self)


class Transactions(NamedTuple):
    """SEND … SHOWTRANS: the open transactions of an Extract, as the process reports them."""

    group: str
    transactions: tuple[Mapping[str, Any], ...]
    tabular: bool = False
    restart: Mapping[str, Any] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return ("extract", *self._keys())

    def _keys(self) -> tuple[str, ...]:
        """The columns: PostgreSQL's log has LSNs; Oracle redo has SCNs, threads and file positions."""
        redo = any("scn" in found for found in self.transactions)
        return ("xid", "items", "start_time", *(("scn", "thread", "seqno", "rba") if redo else ("lsn",)), "status")

    @property
    def rows(self) -> list[Row]:
        keys = self._keys()
        return [(self.group, *(found.get(key) for key in keys)) for found in self.transactions]

    @property
    def layout(self) -> str:
        return _transactions(self)


_EXACT = "%Y-%m-%d %H:%M:%S.%f"
_COLUMN = 22


def _lags(result: Lags) -> str:
    return "".join(_lag(group) for group in result.groups)


def _lag(group: GroupLag) -> str:
    if group.asked:
        lines = ["", f"Sending GETLAG request to {group.type} {group.group} ..."]
    else:
        lines = [
            "",
            f"{group.type} {group.group} is {group.status}; lag by its checkpoint and the data waiting for it:",
        ]
    if not group.known:
        lines.append("The lag is unknown: the data waiting for it cannot be read.")
    elif group.lag is None:
        lines.append("No records yet processed.")
    else:
        lines.append(f"Last record lag {whole_seconds(group.lag)} seconds.")
        if not group.asked:
            lines.append(f"Checkpoint Lag       {clock_text(group.lag)}")
    if group.at_end:
        lines.append("At EOF, no more records to process.")
    lines += group.waits
    return "\n".join(lines) + "\n"


def _process_statuses(result: ProcessStatuses) -> str:
    return "".join(_status(group) for group in result.groups)


def _status(group: ProcessStatus) -> str:
    answer = group.answer
    lines = ["", f"Sending STATUS request to {group.type} {group.group} ...", ""]
    lines += [
        f"{group.type} {group.group}" + (f" (PID {answer['pid']})" if answer.get("pid") else ""),
        f"  Current status: {answer.get('status', '')}",
    ]
    if answer.get("busy_seconds"):
        lines.append(
            f"  Busy with one operation for {answer['busy_seconds']:.0f} seconds; the rest is from before that."
        )
    lines += [f"  {text}" for text in answer.get("obstacles") or ()]
    lines += ["", "  Current read position:", *_position(answer.get("read") or {})]
    for target in answer.get("write") or ():
        lines += ["", "  Current write position:", *_position(target)]
    connection = connection_lines(answer)
    if connection:
        other = "source" if "sources" in answer else "receiver"
        lines += ["", f"  Connection to the {other}:"]
        lines += [f"    {label}: {value}" if label else f"    {value}" for label, value in connection]
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


def _transactions(result: Transactions) -> str:
    """Format the open transactions: each after a line of 60 dashes, or all in one table."""
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
    """Format an SCN as wrap and base, and as a number."""
    number = int(str(scn))
    return f"{number >> 32}.{number & 0xFFFFFFFF} ({number})"


def _named(group: str, found: Mapping[str, Any]) -> dict[str, object]:
    """The labels and values of a transaction."""
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
    """Format one line per transaction."""
    labels = list(named[0])
    return aligned([labels, *([str(pairs.get(label, "")) for label in labels] for pairs in named)])
