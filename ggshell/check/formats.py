"""Formats a report as text, JSON lines, JUnit or SARIF."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from ggshell import __version__
from ggshell.check.findings import Checked, CheckFinding, CheckReport, FindingSeverity

_WIDTH = 110
_COLORS = {FindingSeverity.ERROR: "31", FindingSeverity.WARNING: "33", FindingSeverity.NOTE: "36"}
_LEVELS = {FindingSeverity.ERROR: "error", FindingSeverity.WARNING: "warning", FindingSeverity.NOTE: "note"}
_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"


def as_text(report: CheckReport, *, color: bool = False) -> str:
    """Format each finding as a block: place, message, and the text with the position marked. The counts follow."""
    lines: list[str] = []
    for each in report.checked:
        for finding in each.findings:
            lines += _block(each, finding, color=color)
    counts = ", ".join(_counted(report.count(severity), str(severity)) for severity in FindingSeverity)
    return "\n".join([*lines, f"{_counted(len(report.checked), 'statement')} checked: {counts}", ""])


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _block(checked: Checked, finding: CheckFinding, *, color: bool) -> list[str]:
    place = finding.place
    word = f"\033[{_COLORS[finding.severity]}m{finding.severity}\033[0m" if color else str(finding.severity)
    lines = [f"{place.file}:{place.line}:{place.column}: {word} {finding.code}: {finding.message}"]
    source, spot = _window(finding.source or checked.statement, finding.spot)
    lines.append(f"    {source}")
    if spot >= 0:
        lines.append(f"    {' ' * spot}^")
    if finding.hint:
        lines.append(f"  hint: {finding.hint}")
    if finding.page and finding.severity is FindingSeverity.ERROR:
        lines.append(f"  see: HELP {finding.page.replace('_', ' ').upper()}")
    return lines


def _window(text: str, spot: int) -> tuple[str, int]:
    """The part of a long text around a position, and the position within it."""
    text = re.sub(r"\s", " ", text)
    first = 0 if len(text) <= _WIDTH else max(0, min(spot - _WIDTH // 2, len(text) - _WIDTH))
    before, behind = "… " if first else "", " …" if first + _WIDTH < len(text) else ""
    return f"{before}{text[first : first + _WIDTH]}{behind}", spot - first + len(before) if spot >= 0 else -1


def as_json(report: CheckReport, **_: Any) -> str:
    """Format one JSON object per finding, and one per statement without findings."""
    return "".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in _entries(report))


def _entries(report: CheckReport) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = []
    for each in report.checked:
        if not each.findings:
            entries.append(_entry(each, each.place.line, each.place.column, "ok", "", ""))
        for finding in each.findings:
            place = finding.place
            entries.append(_entry(each, place.line, place.column, str(finding.severity), finding.code, _full(finding)))
    return entries


def _entry(checked: Checked, line: int, column: int, status: str, code: str, message: str) -> dict[str, Any]:
    return {
        "file": checked.place.file,
        "line": line,
        "column": column,
        "status": status,
        "code": code,
        "message": message,
        "statement": checked.statement,
    }


def _full(finding: CheckFinding) -> str:
    return f"{finding.message} - {finding.hint}" if finding.hint else finding.message


def as_junit(report: CheckReport, *, strict: bool = False, **_: Any) -> str:
    """Format one test case per statement; errors fail it, and with ``strict`` warnings do too."""
    files: dict[str, list[Checked]] = {}
    for each in report.checked:
        files.setdefault(each.place.file, []).append(each)
    suites = [_suite(file, checked, strict) for file, checked in files.items()]
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="ggshell check">\n'
        + "".join(suites)
        + "</testsuites>\n"
    )


def _suite(file: str, checked: list[Checked], strict: bool) -> str:
    from xml.sax.saxutils import escape, quoteattr  # this loads the HTTP client too

    cases, failures = [], 0
    for each in checked:
        bad = [finding for finding in each.findings if _fails(finding, strict)]
        failures += bool(bad)
        name = quoteattr(f"{each.place.line}: {_plain(each.statement)}")
        inner = "".join(
            f"<failure type={quoteattr(finding.code)} message={quoteattr(_plain(finding.message))}>"
            f"{escape(_plain(_full(finding)))}</failure>"
            for finding in bad
        )
        rest = [_plain(_full(finding)) for finding in each.findings if not _fails(finding, strict)]
        inner += f"<system-out>{escape(chr(10).join(rest))}</system-out>" if rest else ""
        cases.append(f"    <testcase classname={quoteattr(file)} name={name}>{inner}</testcase>\n")
    head = f'  <testsuite name={quoteattr(file)} tests="{len(checked)}" failures="{failures}">\n'
    return head + "".join(cases) + "  </testsuite>\n"


def _plain(text: str) -> str:
    """Replace the control characters that XML cannot contain."""
    return "".join(letter if letter >= " " or letter in "\t\n" else " " for letter in text)


def _fails(finding: CheckFinding, strict: bool) -> bool:
    return finding.severity is FindingSeverity.ERROR or (strict and finding.severity is FindingSeverity.WARNING)


def as_sarif(report: CheckReport, **_: Any) -> str:
    """Format SARIF 2.1.0, which code hosts show next to the lines."""
    findings = report.findings
    rules = [{"id": code} for code in dict.fromkeys(finding.code for finding in findings)]
    driver = {"name": "ggshell check", "version": __version__, "rules": rules}
    results = [_result(finding) for finding in findings]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return json.dumps({"$schema": _SARIF, "version": "2.1.0", "runs": [run]}, indent=1, ensure_ascii=False) + "\n"


def _result(finding: CheckFinding) -> dict[str, Any]:
    region = {"startLine": finding.place.line, "startColumn": max(1, finding.place.column)}
    location = {"physicalLocation": {"artifactLocation": {"uri": finding.place.file}, "region": region}}
    return {
        "ruleId": finding.code,
        "level": _LEVELS[finding.severity],
        "message": {"text": _full(finding)},
        "locations": [location],
    }


FORMATS: dict[str, Callable[..., str]] = {"text": as_text, "json": as_json, "junit": as_junit, "sarif": as_sarif}
