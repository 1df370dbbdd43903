"""The reports of commands/execute: the lag of all groups, and what a database contains."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from ggshell.cli.groups import ANY, View, group_lag, select
from ggshell.errors import NotFoundError
from ggshell.monitoring.group_lag import since
from ggshell.service.answers import Object, Said, collection
from ggshell.service.call import Call
from ggshell.service.group_facts import status_text
from ggshell.service.thresholds import Threshold
from ggshell.types import TableName

_TYPES = {"EXTRACT": "extract", "REPLICAT": "replicat", "DISTPATH": "distpath"}
_TRANSACTIONS = "_lox"
"""The ending of the second table of each checkpoint table."""


def lag_report(call: Call, thresholds: list[Threshold]) -> Object:
    """Return the lag of every group in seconds, with the highest level whose threshold it reaches."""
    try:
        found, errors = select(call.session, ANY, "*")
    except NotFoundError:
        return collection(())
    call.said += [Said.of(error, "WARNING") for error in errors]
    levels = sorted(thresholds, key=lambda each: each.seconds)
    return collection(_lag(call, each, levels) for each in found)


def _lag(call: Call, found: View, levels: list[Threshold]) -> Object:
    now = call.state.clock.now()
    lag = group_lag(call.home, found, now)
    seconds = None if lag.value is None else max(0, lag.value // 1_000_000)
    age = since(found.checkpoint, now, found.ahead) // 1_000_000
    reached = [each.type for each in levels if seconds is not None and seconds >= each.seconds]
    fields: Object = {
        "$schema": "ogg:lagReport",
        "name": found.group,
        "type": _TYPES[found.type.value],
        "status": status_text(found),
        "lag": seconds,
        "sinceLagReported": age,
        "level": reached[-1] if reached else None,
    }
    if reached:
        text = f"Lag for {found.name} is {seconds} seconds (checkpoint updated {age} seconds ago)."
        call.said.append(_noticed(text) if reached[-1] == "info" else _late(text))
    return {name: value for name, value in fields.items() if value is not None}


def _noticed(text: str) -> Said:
    return Said("OGG-00948", text)


def _late(text: str) -> Said:
    return Said("OGG-00947", text, "WARNING")


def checkpoint_tables(call: Call, connection: str, specification: str) -> Object:
    """Return the checkpoint tables of a database that match ``schema.table``."""
    found = _tables(call, connection)
    present = set(found)
    names = (each for each in found if TableName(each.owner, f"{each.name}{_TRANSACTIONS}") in present)
    return _matching((f"{each.owner}.{each.name}" for each in names), specification)


def tables(call: Call, connection: str, specification: str) -> Object:
    """Return the tables of a database that match ``schema.table``."""
    return _matching((f"{each.owner}.{each.name}" for each in _tables(call, connection)), specification)


def schemas(call: Call, connection: str, specification: str) -> Object:
    """Return the schemas of a database that have tables."""
    return _matching(sorted({each.owner for each in _tables(call, connection)}), specification)


def _matching(names: Iterable[str], specification: str) -> Object:
    return collection({"name": name} for name in names if fnmatchcase(name, specification))


def _tables(call: Call, connection: str) -> list[TableName]:
    call.log_in(connection)
    try:
        return call.session.logged_in().tables()
    except NotFoundError:
        return []
