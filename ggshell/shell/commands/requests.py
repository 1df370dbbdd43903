"""SEND, LAG and STATS: questions to running processes."""

from __future__ import annotations

from typing import Any

from ggshell.clock import local_text
from ggshell.errors import StateError
from ggshell.process import control
from ggshell.process.state import ProcessState, state_of
from ggshell.shell import layout
from ggshell.shell.commands.groups import ER, KIND_WORDS, find
from ggshell.shell.commands.lifecycle import await_end
from ggshell.shell.registry import command
from ggshell.shell.results import Result, joined
from ggshell.shell.session import Session
from ggshell.store.checkpoint import GroupType
from ggshell.store.home import GroupEntry

SECTIONS = ("total", "daily", "hourly", "latest")


def _ask(session: Session, entry: GroupEntry, verb: str, **arguments: Any) -> dict[str, Any]:
    """One question to one process.  Raises StateError when it does not run."""
    state, process = state_of(session.home.process(entry.group, entry.type))
    kind = KIND_WORDS[entry.type]
    if process is None or state is not ProcessState.RUNNING:
        raise StateError(f"{kind} {entry.group} not currently running", hint=f"its status is {state.value}")
    answer = control.request(process.socket, verb, **arguments)
    if verb in ("STOP", "FORCESTOP"):
        await_end(process, 120)
    return answer


def _opening(entry: GroupEntry, verb: str) -> str:
    return f"Sending {verb} request to {KIND_WORDS[entry.type]} {entry.group} ..."


def _simple(session: Session, entries: list[GroupEntry], verb: str) -> Result:
    results = []
    for entry in entries:
        _ask(session, entry, verb)
        results.append(
            Result(f"{_opening(entry, verb)}\nRequest processed.", ("group", "request"), ((entry.group, verb),))
        )
    return joined(results)


def _lag(session: Session, entries: list[GroupEntry]) -> Result:
    results = []
    for entry in entries:
        answer = _ask(session, entry, "GETLAG")
        lag = answer["lag_seconds"]
        lines = [_opening(entry, "GETLAG")]
        lines.append("No records yet processed." if lag is None else f"Last record lag: {max(0, lag):.0f} seconds.")
        if answer["at_eof"]:
            lines.append("At EOF, no more records to process.")
        row = (KIND_WORDS[entry.type], entry.group, lag, answer["at_eof"])
        results.append(Result("\n".join(lines), ("program", "group", "lag_seconds", "at_eof"), (row,)))
    return joined(results)


def _status(session: Session, entries: list[GroupEntry]) -> Result:
    results = []
    for entry in entries:
        answer = _ask(session, entry, "STATUS")
        _, process = state_of(session.home.process(entry.group, entry.type))
        read = answer["read"]
        lines = [_opening(entry, "STATUS"), ""]
        lines.append(f"{KIND_WORDS[entry.type]} {entry.group} (PID {process.pid if process else 0})")
        lines += [f"  Current status: {answer['status']}", "", "  Current read position:"]
        lines += _place(read)
        for item in answer["write"]:
            lines += ["", "  Current write position:", *_place(item)]
        if answer.get("slot"):
            lines += ["", *layout.slot_text(answer["slot"])]
        row = (
            KIND_WORDS[entry.type],
            entry.group,
            answer["status"],
            read.get("lsn", ""),
            read.get("seqno"),
            read.get("rba"),
        )
        results.append(Result("\n".join(lines), ("program", "group", "status", "lsn", "seqno", "rba"), (row,)))
    return joined(results)


def _place(fields: dict[str, Any]) -> list[str]:
    lines = []
    if "lsn" in fields:
        lines.append(f"  LSN: {fields['lsn']}")
    else:
        lines += [f"  Sequence #: {fields['seqno']}", f"  RBA: {fields['rba']}"]
    stamp = local_text(fields["timestamp"], "%Y-%m-%d %H:%M:%S.%f") if fields.get("timestamp") else "Not Available"
    lines.append(f"  Timestamp: {stamp}")
    if "trail" in fields:
        lines.append(f"  Extract Trail: {fields['trail']}")
    return lines


def _transactions(session: Session, entries: list[GroupEntry]) -> Result:
    results = []
    for entry in entries:
        found = _ask(session, entry, "SHOWTRANS")["transactions"]
        lines = [_opening(entry, "SHOWTRANS"), ""]
        for item in found:
            lines.append("-" * 60)
            pairs = [
                ("XID", item["xid"]),
                ("Items", item["items"]),
                ("Extract", entry.group),
                ("Start Time", item["start_time"]),
            ]
            lines += [
                f"{label + ':':<22}{value}" for label, value in [*pairs, ("LSN", item["lsn"]), ("Status", "Running")]
            ]
            lines.append("")
        if not found:
            lines.append("No transactions found")
        rows = tuple((item["xid"], item["items"], item["start_time"], item["lsn"]) for item in found)
        results.append(Result("\n".join(lines).rstrip(), ("xid", "items", "start_time", "lsn"), rows))
    return joined(results)


def _stats(
    session: Session, entries: list[GroupEntry], *, chosen: dict[str, bool], reset: bool, table: str | None
) -> Result:
    sections = tuple(name for name in SECTIONS if chosen.get(name)) or SECTIONS
    results = []
    for entry in entries:
        snapshot = _ask(session, entry, "STATS", reset=reset)
        if table:
            wanted = table.replace("*.*", "*").lower()
            snapshot["tables"] = [item for item in snapshot["tables"] if wanted in ("*", item["source"].lower())]
        trails = [item.trail for item in entry.checkpoint.write] if entry.checkpoint is not None else []
        text = layout.statistics(entry.type, entry.group, snapshot, sections, trails=trails)
        rows = tuple(
            (entry.group, item["source"], item["target"], section, *item["counts"][section].values())
            for item in snapshot["tables"]
            for section in sections
        )
        columns = (
            "group",
            "source",
            "target",
            "section",
            "inserts",
            "updates",
            "deletes",
            "upserts",
            "truncates",
            "discards",
        )
        results.append(Result(text, columns, rows))
    return joined(results)


@command("SEND EXTRACT STATUS")
def send_status_extract(session: Session, *, group_name: str) -> Result:
    return _status(session, find(session, group_name, (GroupType.EXTRACT,)))


@command("SEND EXTRACT GETLAG")
def send_getlag_extract(session: Session, *, group_name: str) -> Result:
    return _lag(session, find(session, group_name, (GroupType.EXTRACT,)))


@command("SEND EXTRACT SHOWTRANS")
def send_showtrans_extract(session: Session, *, group_name: str) -> Result:
    return _transactions(session, find(session, group_name, (GroupType.EXTRACT,)))


@command("SEND EXTRACT REPORT")
def send_report_extract(session: Session, *, group_name: str) -> Result:
    return _simple(session, find(session, group_name, (GroupType.EXTRACT,)), "REPORT")


@command("SEND EXTRACT STOP")
def send_stop_extract(session: Session, *, group_name: str) -> Result:
    return _simple(session, find(session, group_name, (GroupType.EXTRACT,)), "STOP")


@command("SEND EXTRACT FORCESTOP")
def send_forcestop_extract(session: Session, *, group_name: str) -> Result:
    return _simple(session, find(session, group_name, (GroupType.EXTRACT,)), "FORCESTOP")


@command("SEND EXTRACT ROLLOVER")
def send_rollover_extract(session: Session, *, group_name: str) -> Result:
    return _simple(session, find(session, group_name, (GroupType.EXTRACT,)), "ROLLOVER")


@command("LAG EXTRACT")
def lag_extract(session: Session, *, group_name: str) -> Result:
    return _lag(session, find(session, group_name, (GroupType.EXTRACT,)))


@command("STATS EXTRACT")
def stats_extract(
    session: Session,
    *,
    group_name: str,
    total: bool = False,
    daily: bool = False,
    hourly: bool = False,
    latest: bool = False,
    reset: bool = False,
    table: str | None = None,
    totalsonly: str | None = None,
    reportrate: str | None = None,
) -> Result:
    chosen = {"total": total or bool(totalsonly), "daily": daily, "hourly": hourly, "latest": latest}
    return _stats(
        session, find(session, group_name, (GroupType.EXTRACT,)), chosen=chosen, reset=reset, table=table or totalsonly
    )


@command("SEND REPLICAT STATUS")
def send_status_replicat(session: Session, *, group_name: str) -> Result:
    return _status(session, find(session, group_name, (GroupType.REPLICAT,)))


@command("SEND REPLICAT GETLAG")
def send_getlag_replicat(session: Session, *, group_name: str) -> Result:
    return _lag(session, find(session, group_name, (GroupType.REPLICAT,)))


@command("SEND REPLICAT REPORT")
def send_report_replicat(session: Session, *, group_name: str) -> Result:
    return _simple(session, find(session, group_name, (GroupType.REPLICAT,)), "REPORT")


@command("SEND REPLICAT STOP")
def send_stop_replicat(session: Session, *, group_name: str) -> Result:
    return _simple(session, find(session, group_name, (GroupType.REPLICAT,)), "STOP")


@command("SEND REPLICAT FORCESTOP")
def send_forcestop_replicat(session: Session, *, group_name: str) -> Result:
    return _simple(session, find(session, group_name, (GroupType.REPLICAT,)), "FORCESTOP")


@command("LAG REPLICAT")
def lag_replicat(session: Session, *, group_name: str) -> Result:
    return _lag(session, find(session, group_name, (GroupType.REPLICAT,)))


@command("STATS REPLICAT")
def stats_replicat(
    session: Session,
    *,
    group_name: str,
    total: bool = False,
    daily: bool = False,
    hourly: bool = False,
    latest: bool = False,
    reset: bool = False,
    table: str | None = None,
    totalsonly: str | None = None,
    reportrate: str | None = None,
) -> Result:
    chosen = {"total": total or bool(totalsonly), "daily": daily, "hourly": hourly, "latest": latest}
    return _stats(
        session, find(session, group_name, (GroupType.REPLICAT,)), chosen=chosen, reset=reset, table=table or totalsonly
    )


@command("SEND DISTPATH STATUS")
def send_status_distpath(session: Session, *, path_name: str) -> Result:
    return _status(session, find(session, path_name, (GroupType.PATH,)))


@command("SEND DISTPATH GETLAG")
def send_getlag_distpath(session: Session, *, path_name: str) -> Result:
    return _lag(session, find(session, path_name, (GroupType.PATH,)))


@command("SEND DISTPATH REPORT")
def send_report_distpath(session: Session, *, path_name: str) -> Result:
    return _simple(session, find(session, path_name, (GroupType.PATH,)), "REPORT")


@command("SEND DISTPATH STOP")
def send_stop_distpath(session: Session, *, path_name: str) -> Result:
    return _simple(session, find(session, path_name, (GroupType.PATH,)), "STOP")


@command("SEND DISTPATH FORCESTOP")
def send_forcestop_distpath(session: Session, *, path_name: str) -> Result:
    return _simple(session, find(session, path_name, (GroupType.PATH,)), "FORCESTOP")


@command("SEND DISTPATH ROLLOVER")
def send_rollover_distpath(session: Session, *, path_name: str) -> Result:
    return _simple(session, find(session, path_name, (GroupType.PATH,)), "ROLLOVER")


@command("STATS DISTPATH")
def stats_distpath(
    session: Session,
    *,
    path_name: str,
    total: bool = False,
    daily: bool = False,
    hourly: bool = False,
    latest: bool = False,
    reset: bool = False,
    table: str | None = None,
    totalsonly: str | None = None,
    reportrate: str | None = None,
) -> Result:
    chosen = {"total": total or bool(totalsonly), "daily": daily, "hourly": hourly, "latest": latest}
    return _stats(
        session, find(session, path_name, (GroupType.PATH,)), chosen=chosen, reset=reset, table=table or totalsonly
    )


@command("SEND STATUS")
def send_status_any(session: Session, *, group_name: str) -> Result:
    return _status(session, find(session, group_name, tuple(GroupType)))


@command("SEND GETLAG")
def send_getlag_any(session: Session, *, group_name: str) -> Result:
    return _lag(session, find(session, group_name, tuple(GroupType)))


@command("SEND SHOWTRANS")
def send_showtrans_any(session: Session, *, group_name: str) -> Result:
    return _transactions(session, find(session, group_name, tuple(GroupType)))


@command("SEND REPORT")
def send_report_any(session: Session, *, group_name: str) -> Result:
    return _simple(session, find(session, group_name, tuple(GroupType)), "REPORT")


@command("SEND STOP")
def send_stop_any(session: Session, *, group_name: str) -> Result:
    return _simple(session, find(session, group_name, tuple(GroupType)), "STOP")


@command("SEND FORCESTOP")
def send_forcestop_any(session: Session, *, group_name: str) -> Result:
    return _simple(session, find(session, group_name, tuple(GroupType)), "FORCESTOP")


@command("SEND ROLLOVER")
def send_rollover_any(session: Session, *, group_name: str) -> Result:
    return _simple(session, find(session, group_name, tuple(GroupType)), "ROLLOVER")


@command("LAG ER", "LAG")
def lag_any(session: Session, *, group_name: str) -> Result:
    return _lag(session, find(session, group_name, ER if "*" in group_name else tuple(GroupType)))


@command("STATS ER", "STATS")
def stats_any(session: Session, *, group_name: str) -> Result:
    return _stats(session, find(session, group_name, tuple(GroupType)), chosen={}, reset=False, table=None)
