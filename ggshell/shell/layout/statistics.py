"""STATS: counts by table and period, always with two decimals."""

from __future__ import annotations

from collections.abc import Mapping

from ggshell.clock import local_text
from ggshell.shell.answers import COUNTED, GroupStatistics, Stats, TableCounts, operations

_WIDTH = 63
_UNITS = {"HR": (3600, "hour"), "MIN": (60, "minute"), "SEC": (1, "second")}


def stats(result: Stats) -> str:
    """Every group's statistics."""
    return "".join(_group(group, result) for group in result.groups)


def _group(group: GroupStatistics, result: Stats) -> str:
    lines = ["", f"Sending STATS request to {group.type} {group.group} ...", ""]
    replicat = group.type == "REPLICAT"
    if not group.tables:
        return "\n".join(
            [*lines, f"No active {'replication' if replicat else 'extraction'} maps.", *_heartbeats(group), ""]
        )
    lines += [f"Start of Statistics at {local_text(group.now)}.", ""]
    verb = "Replicating" if replicat else "Extracting"
    for output in group.outputs or ("",):
        if output:
            lines += [f"Output to {output}:", ""]
        for table in group.tables:
            lines += [f"{verb} from {table.source} to {table.target}:", ""]
            for section in result.sections:
                lines += _section(group, table, section, result.rate)
    return "\n".join([*lines, *_heartbeats(group), "End of Statistics.", ""])


def _heartbeats(group: GroupStatistics) -> list[str]:
    lines = [count_line("Heartbeats", group.heartbeats)] if group.heartbeats else []
    lines += [f"        {line}" for line in group.delivered]
    return [*lines, ""] if lines else []


def _section(group: GroupStatistics, table: TableCounts, section: str, rate: str) -> list[str]:
    since = group.since[section]
    lines = [f"*** {section.capitalize()} statistics since {local_text(since)} ***"]
    counts = table.counts[section]
    if not any(counts.values()):
        return [*lines, "        No database operations have been performed.", ""]
    for kind, number in _shown(counts).items():
        label = f"Total {kind}"
        value = float(number)
        if rate:
            length, unit = _UNITS[rate]
            label += f"/{unit}:"
            value = number * length / max(1e-6, (group.now - since) / 1e6)
        lines.append(count_line(label, value))
    return [*lines, ""]


def _shown(counts: Mapping[str, int]) -> dict[str, int]:
    """The kinds in their order; truncates only where there were any; all operations last."""
    found = {kind: counts.get(kind, 0) for kind in COUNTED if kind != "truncates" or counts.get(kind)}
    return {**found, "operations": operations(counts)}


def count_line(label: str, value: float) -> str:
    """8 blanks, the label, the number at the right of column 63."""
    return f"        {label:<30}{value:>{_WIDTH - 38}.2f}"


LAYOUTS = {Stats: stats}
