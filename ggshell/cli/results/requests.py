"""Results of requests to running processes: LAG, SEND … STATUS, SEND … SHOWTRANS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ggshell.cli.output.tables import aligned
from ggshell.cli.output.units import moment
from ggshell.cli.results import Note, Row, shown_groups
from ggshell.cli.results.groups import slot_lines
from ggshell.cli.results.transfers import connection_lines
from ggshell.clock import local_text
from ggshell.durations import clock_text, whole_seconds
from ggshell.errors import GgsError
from ggshell.home.shown_place import ShownPlace
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
        return ("type", "group", "pid", "status", "seqno", "rba", "csn", "timestamp", "wal_bytes_held")

    @property
    def rows(self) -> list[Row]:
        found: list[Row] = []
        for group in self.groups:
            answer, read = group.answer, group.answer.get("read") or {}
            log = ShownPlace.of(read)
            values = {**read, **log.values}
            place = (
                values.get("seqno", read.get("sequence")),
                values.get("rba"),
                log.csn or read.get("csn"),
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
    restart: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        return ("extract", *self._keys())

    def _keys(self) -> tuple[str, ...]:
        """The columns; those of the position are the source's."""
        keys = dict.fromkeys(part.key for found in self.transactions for part in ShownPlace.of(found).parts)
        return ("xid", "items", "start_time", *keys, "status")

    @property
    def rows(self) -> list[Row]:
        keys = self._keys()
        named = ({**found, **ShownPlace.of(found).values} for found in self.transactions)
        return [(self.group, *(found.get(key) for key in keys)) for found in named]

    @property
    def layout(self) -> str:
        return _transactions(self)


_EXACT = "%Y-%m-%d %H:%M:%S.%f"
_COLUMN = 22


def _lags(result: Lags) -> str:
    return shown_groups(result.groups, result.errors, _lag)


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
    return shown_groups(result.groups, result.errors, _status)


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


_BEFORE = (
    ("table", "Table"),
    ("record", "Record"),
    ("seqno", "Sequence #"),
    ("sequence", "Sequence #"),
    ("rba", "RBA"),
)
_AFTER = (("csn", "Snapshot CSN"), ("trail", "Extract Trail"))
"""The parts of a position in a trail or of an initial load. The source labels those of a position in its log."""


def _position(place: Mapping[str, Any]) -> list[str]:
    log = ShownPlace.of(place)
    time = local_text(place["timestamp"], _EXACT) if place.get("timestamp") else "Not Available"
    pairs = [
        *((label, place[key]) for key, label in _BEFORE if key in place),
        *((part.label, part.shown) for part in log.before),
        *((("Timestamp", time),) if "timestamp" in place else ()),
        *((part.label, part.shown) for part in log.after),
        *((label, place[key]) for key, label in _AFTER if key in place),
    ]
    return [f"    {label}: {value}" for label, value in pairs]


def _transactions(result: Transactions) -> str:
    """Format the open transactions: each after a line of 60 dashes, or all in one table."""
    lines = ["", f"Sending SHOWTRANS request to EXTRACT {result.group} ...", ""]
    if not result.transactions:
        lines.append("No transactions found.")
    elif result.restart:
        lines += [*result.restart.splitlines(), ""]
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


def _named(group: str, found: Mapping[str, Any]) -> dict[str, object]:
    """The labels and values of a transaction."""
    start = str(found.get("start_time", "")).replace("T", ":").replace(" ", ":")[:19]
    place = ShownPlace.of(found)
    return {
        "XID": found.get("xid"),
        "Items": found.get("items"),
        "Extract": group,
        **{part.label: part.shown for part in place.before},
        "Start Time": start,
        **{part.label: part.shown for part in place.after},
        "Status": found.get("status", "Running"),
    }


def _table(named: list[dict[str, object]]) -> list[str]:
    """Format one line per transaction."""
    most = max(len(pairs) for pairs in named)  # a transaction that the log has not sent yet has no position
    labels = next(list(pairs) for pairs in named if len(pairs) == most)
    return aligned([labels, *([str(pairs.get(label, "")) for label in labels] for pairs in named)])
