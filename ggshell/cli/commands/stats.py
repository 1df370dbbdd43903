"""STATS: operations by table and period, reported by the running process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from ggshell.cli import supervision
from ggshell.cli.groups import ANY, ER, EXTRACT, PATH, REPLICAT, Kinds, View, is_wildcard, select
from ggshell.cli.registry import command
from ggshell.cli.results.statistics import COUNTED, GroupStatistics, Stats, TableCounts
from ggshell.cli.session import Session
from ggshell.errors import GgsError
from ggshell.groups.process_request import request
from ggshell.home.checkpoint import GroupKind
from ggshell.monitoring.lag_stats import delivered_lines
from ggshell.types import split_name

SECTIONS = ("total", "daily", "hourly", "latest")


@command("STATS EXTRACT", EXTRACT)
@command("STATS REPLICAT", REPLICAT)
@command("STATS ER", ER)
@command("STATS", ANY)
def stats(
    session: Session,
    kinds: Kinds,
    *,
    group_name: str,
    total: bool = False,
    daily: bool = False,
    hourly: bool = False,
    latest: bool = False,
    reset: bool = False,
    table: str = "",
    totalsonly: str = "",
    reportrate: str = "",
    reportcdr: bool = False,
) -> Stats:
    """Show the given sections, or all four if none is given; RESET restarts LATEST after showing it."""
    found, errors = select(session, kinds, group_name)
    if is_wildcard(group_name):
        found = [each for each in found if each.runs]
    asked = dict(zip(SECTIONS, (total, daily, hourly, latest), strict=True))
    sections = tuple(name for name, wanted in asked.items() if wanted) or SECTIONS
    groups: list[GroupStatistics] = []
    for each in found:
        try:
            answer = request(supervision.process_of(each).socket, "STATS", reset=reset)
        except GgsError as error:
            if not is_wildcard(group_name):
                raise
            errors.append(error)
            continue
        groups.append(_group(each, answer, table, totalsonly))
    return Stats(tuple(groups), sections, reportrate.upper(), tuple(errors), reportcdr)


@command("STATS DISTPATH", PATH)
def stats_path(
    session: Session,
    kinds: Kinds,
    *,
    path_name: str,
    total: bool = False,
    daily: bool = False,
    hourly: bool = False,
    latest: bool = False,
    reset: bool = False,
    table: str = "",
    totalsonly: str = "",
    reportrate: str = "",
) -> Stats:
    """Show the same for distribution paths."""
    return stats(
        session,
        kinds,
        group_name=path_name,
        total=total,
        daily=daily,
        hourly=hourly,
        latest=latest,
        reset=reset,
        table=table,
        totalsonly=totalsonly,
        reportrate=reportrate,
    )


def _group(found: View, answer: Mapping[str, Any], table: str, totalsonly: str) -> GroupStatistics:
    tables = [
        TableCounts(each["source"], each["target"], each["counts"], each.get("conflicts", {}))
        for each in answer["tables"]
    ]
    if table:
        tables = [each for each in tables if matches(table, each)]
    if totalsonly:
        tables = _summed([each for each in tables if matches(totalsonly, each)], totalsonly)
    delivered = tuple(delivered_lines(answer.get("delivered", ())))
    outputs = () if found.type is GroupKind.REPLICAT else tuple(target.shown for target in found.checkpoint.write)
    missed = answer.get("not_captured", {})
    return GroupStatistics(
        found.type,
        found.group,
        int(answer["now"]),
        answer["sections"],
        tuple(tables),
        outputs,
        delivered,
        missed,
        tuple(answer.get("obstacles") or ()),
        answer.get("ddl", {}),
    )


def matches(pattern: str, table: TableCounts) -> bool:
    """Whether a pattern matches the source or the target table."""
    wanted = split_name(pattern)[-2:]
    for name in (table.source, table.target):
        parts = split_name(name)
        if all(fnmatchcase(part, want) for part, want in zip(parts[-len(wanted) :], wanted, strict=True)):
            return True
    return False


def _summed(tables: list[TableCounts], pattern: str) -> list[TableCounts]:
    if not tables:
        return []
    counts = {
        section: {kind: sum(each.counts[section].get(kind, 0) for each in tables) for kind in COUNTED}
        for section in SECTIONS
    }
    conflicts = {
        section: dict(sum((Counter(each.conflicts.get(section, {})) for each in tables), Counter()))
        for section in SECTIONS
    }
    return [TableCounts(pattern, pattern, counts, conflicts)]
