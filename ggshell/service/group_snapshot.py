"""Snapshots of the groups: what their files and their running processes say at one moment, for metrics and measuring points.

Processes are asked at the same time, each for at most ``ANSWER_SECONDS`` and all for at most ``TOTAL_SECONDS``: a busy
process does not delay the others, and many of them do not delay the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ggshell.cli.asking import ask_together
from ggshell.cli.groups import View, group_lag, view
from ggshell.errors import GgsError
from ggshell.groups.process_request import request
from ggshell.groups.statistics import DDL_ERRORS, DDL_KINDS, KINDS
from ggshell.home.home import Home
from ggshell.monitoring.group_lag import since

ANSWER_SECONDS: Final = 2.0
TOTAL_SECONDS: Final = 4.0
_MICRO: Final = 1_000_000


class GroupSnapshot(NamedTuple):
    """A group at one moment.

    ``lag`` and ``checkpoint_age``: in seconds, ``lag`` None if unknown. ``statistics``: the process's answer to STATS, empty if
    it does not run or did not answer.
    """

    found: View
    lag: float | None
    checkpoint_age: float
    statistics: Mapping[str, Any] = {}

    def totals(self) -> dict[str, int]:
        """The operations since the process started, by kind."""
        tables: Sequence[Mapping[str, Any]] = self.statistics.get("tables", ())
        return {kind: sum(each["counts"]["total"].get(kind, 0) for each in tables) for kind in KINDS}

    @property
    def ddl(self) -> Mapping[str, int]:
        """The DDL statements since the process started, by kind."""
        found: Mapping[str, int] = self.statistics.get("ddl", {})
        return {kind: found.get(kind, 0) for kind in (*DDL_KINDS, *DDL_ERRORS)}


def snapshots(home: Home, now: int) -> list[GroupSnapshot]:
    """Return every group that can be read, from its files; ``now`` in microseconds."""
    found = []
    for entry in home.groups():
        try:
            found.append(_of_files(home, view(home, entry), now))
        except GgsError:
            continue  # the group is in the list of groups with its error; it has no values
    return found


def with_statistics(found: Iterable[GroupSnapshot]) -> list[GroupSnapshot]:
    """Return groups with what their processes answer to STATS; the processes are asked at the same time."""
    return ask_together(list(found), asked, lambda each: each, TOTAL_SECONDS)


def _of_files(home: Home, found: View, now: int) -> GroupSnapshot:
    lag = group_lag(home, found, now).value
    age = since(found.checkpoint, now, found.ahead) / _MICRO
    return GroupSnapshot(found, None if lag is None else lag / _MICRO, age)


def asked(snapshot: GroupSnapshot) -> GroupSnapshot:
    """Return a group with what its process answers to STATS."""
    process = snapshot.found.process
    if process is None or not snapshot.found.runs:
        return snapshot
    try:
        return snapshot._replace(statistics=request(process.socket, "STATS", timeout=ANSWER_SECONDS))
    except GgsError:
        return snapshot


def connections_of(found: Sequence[GroupSnapshot]) -> list[dict[str, Any]]:
    """Return what the groups answer about their connections; the processes are asked at the same time."""
    return ask_together(found, connection_of, lambda _: {}, TOTAL_SECONDS)


def connection_of(snapshot: GroupSnapshot) -> dict[str, Any]:
    """Return what a running group answers about its connection to another home; empty for a group without one."""
    found = snapshot.found
    if found.process is None or not found.runs or not found.is_connected:
        return {}
    try:
        answer = request(found.process.socket, "STATUS", timeout=ANSWER_SECONDS)
    except GgsError:
        return {}
    return {name: answer[name] for name in ("connection", "receivers", "sources") if name in answer}
