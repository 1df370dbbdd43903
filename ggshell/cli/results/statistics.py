"""The result of STATS: counts by table and period."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ggshell.cli.output.units import moment
from ggshell.cli.results import Row, shown_groups
from ggshell.clock import local_text
from ggshell.durations import HOUR, MINUTE
from ggshell.errors import GgsError
from ggshell.groups.statistics import conflict_counts, ddl_counts, ddl_operations
from ggshell.home.checkpoint import GroupKind


class TableCounts(NamedTuple):
    """Operations of one source and target table: section -> kind -> count, and conflicts likewise."""

    source: str
    target: str
    counts: Mapping[str, Mapping[str, int]]
    conflicts: Mapping[str, Mapping[str, int]] = {}


class GroupStatistics(NamedTuple):
    """STATS of one group.

    ``since``: the start of each section; ``outputs``: the trails that the group writes; ``delivered``: the figures of
    LAGSTATS; ``not_captured``: tables that should be captured and are not, with the reason; ``waits``: what the group's
    statements are waiting for; ``ddl``: counts of DDL statements since the start, empty if there were none.
    """

    type: str
    group: str
    now: int
    since: Mapping[str, int]
    tables: tuple[TableCounts, ...]
    outputs: tuple[str, ...] = ()
    delivered: tuple[str, ...] = ()
    not_captured: Mapping[str, str] = {}
    waits: tuple[str, ...] = ()
    ddl: Mapping[str, int] = {}


class Stats(NamedTuple):
    """The result of STATS.

    ``rate``: the unit of REPORTRATE (HR, MIN, SEC), or empty; ``conflicts``: REPORTCDR was given.
    """

    groups: tuple[GroupStatistics, ...]
    sections: tuple[str, ...]
    rate: str = ""
    errors: tuple[GgsError, ...] = ()
    conflicts: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        head = ("type", "group", "section", "since", "source", "target", *COUNTED, "operations")
        return (*head, *self._of_conflicts, *(f"ddl_{name}" for name in self._of_ddl))

    @property
    def _of_ddl(self) -> tuple[str, ...]:
        """The names of the counts of DDL statements, if a group has any."""
        return tuple(dict.fromkeys(name for group in self.groups for name in group.ddl))

    @property
    def _of_conflicts(self) -> tuple[str, ...]:
        """The names of the conflict counts, if REPORTCDR was given."""
        names = {
            name: None for group in self.groups for table in group.tables for name in table.conflicts.get("total", {})
        }
        return tuple(names) if self.conflicts else ()

    @property
    def rows(self) -> list[Row]:
        return [
            (
                *(group.type, group.group, section, moment(group.since[section]), table.source, table.target),
                *(table.counts[section].get(kind, 0) for kind in COUNTED),
                operations(table.counts[section]),
                *(table.conflicts.get(section, {}).get(name, 0) for name in self._of_conflicts),
                *(None for _ in self._of_ddl),
            )
            for group in self.groups
            for table in group.tables
            for section in self.sections
        ] + [self._ddl_row(group) for group in self.groups if group.ddl]

    def _ddl_row(self, group: GroupStatistics) -> Row:
        """The row for the DDL statements of a group, which belong to no table."""
        counts: list[int | None] = [None] * len(COUNTED)
        head = (group.type, group.group, "total", moment(group.since["total"]), "DDL", "")
        conflicts = [None] * len(self._of_conflicts)
        return (
            *head,
            *counts,
            ddl_operations(group.ddl),
            *conflicts,
            *(group.ddl.get(name, 0) for name in self._of_ddl),
        )

    @property
    def layout(self) -> str:
        return _stats(self)


def operations(counts: Mapping[str, int]) -> int:
    """The number of operations of a period, without discarded and ignored ones."""
    return sum(counts.get(kind, 0) for kind in COUNTED if kind not in ("discards", "ignores"))


COUNTED = ("inserts", "updates", "deletes", "upserts", "truncates", "discards", "ignores")


_WIDTH = 63
_UNITS = {"HR": (HOUR, "hour"), "MIN": (MINUTE, "minute"), "SEC": (1, "second")}


def _stats(result: Stats) -> str:
    """Format the statistics of every group."""
    return shown_groups(result.groups, result.errors, lambda group: _group(group, result))


def _group(group: GroupStatistics, result: Stats) -> str:
    lines = ["", f"Sending STATS request to {group.type} {group.group} ...", ""]
    replicat = group.type == GroupKind.REPLICAT
    if not group.tables and not group.ddl:
        return "\n".join(
            [*lines, f"No active {'replication' if replicat else 'extraction'} maps.", *_others(group), ""]
        )
    lines += [f"Start of Statistics at {local_text(group.now)}.", ""]
    lines += _ddl(group, replicat=replicat)
    verb = "Replicating" if replicat else "Extracting"
    for output in group.outputs or ("",):
        if output:
            lines += [f"Output to {output}:", ""]
        for table in group.tables:
            lines += [f"{verb} from {table.source} to {table.target}:", ""]
            for section in result.sections:
                lines += _section(group, table, section, result)
    return "\n".join([*lines, *_others(group), "End of Statistics.", ""])


def _ddl(group: GroupStatistics, *, replicat: bool) -> list[str]:
    """The lines about DDL statements, which come before the tables."""
    found = ddl_counts(group.ddl, replicat=replicat)
    if not found:
        return []
    title = "DDL replication statistics:" if replicat else "DDL replication statistics (for all trails):"
    since = f"*** Total statistics since {group.type.lower()} started     ***"
    return [title, "", since, *(count_line(label, count) for label, count in found), ""]


def _others(group: GroupStatistics) -> list[str]:
    """The lines that do not belong to a table: LAGSTATS, and tables that are not captured."""
    lines = [f"        {line}" for line in group.delivered]
    lines += [f"Not captured: table {name}: {reason}." for name, reason in group.not_captured.items()]
    lines += group.waits
    return [*lines, ""] if lines else []


def _section(group: GroupStatistics, table: TableCounts, section: str, result: Stats) -> list[str]:
    since = group.since[section]
    lines = [f"*** {section.capitalize()} statistics since {local_text(since)} ***"]
    counts = table.counts[section]
    conflicts = conflict_counts(table.conflicts.get(section, {})) if result.conflicts else []
    if not any(counts.values()) and not conflicts:
        return [*lines, "        No database operations have been performed.", ""]
    for kind, number in _shown(counts).items():
        label = f"Total {kind}"
        value = float(number)
        if result.rate:
            length, unit = _UNITS[result.rate]
            label += f"/{unit}:"
            value = number * length / max(1e-6, (group.now - since) / 1e6)
        lines.append(count_line(label, value))
    lines += [count_line(label, number) for label, number in conflicts]
    return [*lines, ""]


def _shown(counts: Mapping[str, int]) -> dict[str, int]:
    """The counts in order; truncates and ignores only if there are any; the number of operations last."""
    found = {kind: counts.get(kind, 0) for kind in COUNTED if kind not in ("truncates", "ignores") or counts.get(kind)}
    return {**found, "operations": operations(counts)}


def count_line(label: str, value: float) -> str:
    """Format a count: 8 blanks, the label, and the number right-aligned at column 63."""
    return f"        {label:<30}{value:>{_WIDTH - 38}.2f}"
