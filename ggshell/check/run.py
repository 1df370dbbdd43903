"""Check files together: each by its kind, then across."""

from __future__ import annotations

from collections.abc import Iterable

from ggshell.check.across import across
from ggshell.check.facts import Facts
from ggshell.check.findings import Checked, Finding, Place, Report
from ggshell.check.parameter_files import check_parameters, kind_of
from ggshell.check.scripts import check_script

OBEY = "obey"


def check_sources(sources: Iterable[tuple[str, str]], kind: str | None = None) -> Report:
    """Check (name, text) pairs; obey files, parameter files and GLOBALS are told apart by what they hold, unless a kind is
    given: ``obey``, Extract, Replicat, Manager or GLOBALS."""
    facts = Facts()
    checked: list[Checked] = []
    for name, text in sources:
        own = kind or kind_of(text, name)
        is_script = own in ("", OBEY)
        checked += check_script(text, name, facts) if is_script else check_parameters(text, name, own, facts)
    return Report(tuple(_with(checked, across(facts))))


def _with(checked: list[Checked], findings: list[Finding]) -> list[Checked]:
    """Give each finding to the statement it is about."""
    by_place: dict[Place, list[Finding]] = {}
    for finding in findings:
        by_place.setdefault(finding.place, []).append(finding)
    return [each._replace(findings=(*each.findings, *by_place.get(each.place, ()))) for each in checked]
