"""Check files together: each by its kind, then across."""

from __future__ import annotations

from collections.abc import Iterable

from ggshell.check.across import across
from ggshell.check.facts import Facts
from ggshell.check.findings import Checked, Finding, Place, Report
from ggshell.check.parameter_files import check_parameters, kind_of
from ggshell.check.scripts import check_script


def check_sources(sources: Iterable[tuple[str, str]]) -> Report:
    """Check (name, text) pairs; obey files, parameter files and GLOBALS are told apart by what they hold."""
    facts = Facts()
    checked: list[Checked] = []
    for name, text in sources:
        kind = kind_of(text, name)
        checked += check_parameters(text, name, kind, facts) if kind else check_script(text, name, facts)
    return Report(tuple(_with(checked, across(facts))))


def _with(checked: list[Checked], findings: list[Finding]) -> list[Checked]:
    """Give each finding to the statement it is about."""
    by_place: dict[Place, list[Finding]] = {}
    for finding in findings:
        by_place.setdefault(finding.place, []).append(finding)
    return [each._replace(findings=(*each.findings, *by_place.get(each.place, ()))) for each in checked]
