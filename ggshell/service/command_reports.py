"""The reports of commands/execute: the lag of all groups, and what a database contains."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Annotated

import msgspec

from ggshell.cli.groups import ANY, View, group_lag, select
from ggshell.errors import NotFoundError
from ggshell.monitoring.group_lag import since
from ggshell.service.answers import Said, collection
from ggshell.service.bodies import described
from ggshell.service.call import Call
from ggshell.service.group_facts import status_text
from ggshell.service.responses import Collection, Response
from ggshell.service.thresholds import Threshold
from ggshell.types import TableName

_TYPES = {"EXTRACT": "extract", "REPLICAT": "replicat", "DISTPATH": "distpath", "RECVPATH": "recvpath"}
_TRANSACTIONS = "_lox"
"""The ending of the second table of each checkpoint table."""


class ReportItem(Response, kw_only=True):
    """An entry of a report: a name, and in a report of lags the lag of the group of that name. Times are in seconds."""

    name: str
    schema: Annotated[str | None, described("Of an entry about a lag.", "ogg:lagReport")] = msgspec.field(
        name="$schema", default=None
    )
    type: str | None = None
    status: str | None = None
    lag: int | None = None
    since_lag_reported: int | None = None
    level: Annotated[str | None, described("The highest level that the lag reaches.")] = None


def lag_report(call: Call, thresholds: list[Threshold]) -> Collection[ReportItem]:
    """Return the lag of every group in seconds, with the highest level whose threshold it reaches."""
    try:
        found, errors = select(call.session, ANY, "*")
    except NotFoundError:
        return collection(())
    call.said += [Said.of(error, "WARNING") for error in errors]
    levels = sorted(thresholds, key=lambda each: each.seconds)
    return collection(_lag(call, each, levels) for each in found)


def _lag(call: Call, found: View, levels: list[Threshold]) -> ReportItem:
    now = call.state.clock.now()
    lag = group_lag(call.home, found, now)
    seconds = None if lag.value is None else max(0, lag.value // 1_000_000)
    age = since(found.checkpoint, now, found.ahead) // 1_000_000
    reached = [each.type for each in levels if seconds is not None and seconds >= each.seconds]
    if reached:
        text = f"Lag for {found.name} is {seconds} seconds (checkpoint updated {age} seconds ago)."
        call.said.append(_noticed(text) if reached[-1] == "info" else _late(text))
    return ReportItem(
        name=found.group,
        schema="ogg:lagReport",
        type=_TYPES[found.type.value],
        status=status_text(found),
        lag=seconds,
        since_lag_reported=age,
        level=reached[-1] if reached else None,
    )


def _noticed(text: str) -> Said:
    return Said("OGG-00948", text)


def _late(text: str) -> Said:
    return Said("OGG-00947", text, "WARNING")


def checkpoint_tables(call: Call, connection: str, specification: str) -> Collection[ReportItem]:
    """Return the checkpoint tables of a database that match ``schema.table``."""
    found = _tables(call, connection)
    present = set(found)
    names = (each for each in found if TableName(each.owner, f"{each.name}{_TRANSACTIONS}") in present)
    return _matching((f"{each.owner}.{each.name}" for each in names), specification)


def tables(call: Call, connection: str, specification: str) -> Collection[ReportItem]:
    """Return the tables of a database that match ``schema.table``."""
    return _matching((f"{each.owner}.{each.name}" for each in _tables(call, connection)), specification)


def schemas(call: Call, connection: str, specification: str) -> Collection[ReportItem]:
    """Return the schemas of a database that have tables."""
    return _matching(sorted({each.owner for each in _tables(call, connection)}), specification)


def _matching(names: Iterable[str], specification: str) -> Collection[ReportItem]:
    return collection(ReportItem(name=name) for name in names if fnmatchcase(name, specification))


def _tables(call: Call, connection: str) -> list[TableName]:
    call.log_in(connection)
    try:
        return call.session.logged_in().tables()
    except NotFoundError:
        return []
