"""``ggshell check FILE...``: checks files without a home or a database; exits with 0, or 3 if something is wrong.

Each file is checked by its type, then all of them are checked for contradictions.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence

from ggshell.check.across import across
from ggshell.check.facts import StatedFacts
from ggshell.check.findings import Checked, CheckFinding, CheckReport, FilePlace
from ggshell.check.formats import FORMATS
from ggshell.check.obeyed import Scripts, read_source
from ggshell.check.parameter_files import check_parameters, kind_of
from ggshell.parameters.loading import KINDS
from ggshell.terminal import colors_wanted

OBEY = "obey"


def check_sources(sources: Iterable[tuple[str, str]], kind: str | None = None) -> CheckReport:
    """Check (name, text) pairs.

    Obey files, parameter files and GLOBALS are distinguished by their contents unless a kind is given: ``obey``,
    Extract, Replicat, Manager or GLOBALS. Files that an obey file runs with OBEY are checked too, if they are here.
    """
    facts = StatedFacts()
    checked: list[Checked] = []
    given = list(sources)
    scripts = Scripts(facts, [name for name, _ in given])
    for name, text in given:
        own = kind or kind_of(text, name)
        is_script = own in ("", OBEY)
        checked += scripts.check(text, name) if is_script else check_parameters(text, name, own, facts)
    return CheckReport(tuple(_with(checked, across(facts))))


def _with(checked: list[Checked], findings: list[CheckFinding]) -> list[Checked]:
    """Attach each finding to the statement that it is about."""
    by_place: dict[FilePlace, list[CheckFinding]] = {}
    for finding in findings:
        by_place.setdefault(finding.place, []).append(finding)
    return [each._replace(findings=(*each.findings, *by_place.get(each.place, ()))) for each in checked]


PASSED, FAILED = 0, 3
_KINDS = {OBEY: OBEY} | {kind.lower(): kind for kind in KINDS}


def main(arguments: Sequence[str]) -> int:
    """Check files and return the exit code. Raises UsageError for a file that cannot be read."""
    options = _parser().parse_args(arguments)
    report = check_sources([(name, read_source(name)) for name in options.files], _KINDS.get(options.kind))
    write = FORMATS[options.format]
    color = not options.no_color and colors_wanted(sys.stdout)
    text = write(report, color=color) if options.format == "text" else write(report, strict=options.strict)
    sys.stdout.write(text)
    return FAILED if report.failed(strict=options.strict) else PASSED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="ggshell check", description="Check obey and parameter files offline.")
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="obey files, parameter files, GLOBALS; - is standard input"
    )
    parser.add_argument("--format", choices=list(FORMATS), default="text", help="output format (default: text)")
    parser.add_argument(
        "--kind", choices=list(_KINDS), help="the type of the files, if it cannot be determined from their contents"
    )
    parser.add_argument("--strict", action="store_true", help="treat warnings as errors")
    parser.add_argument("--no-color", action="store_true", help="turn off colors")
    return parser
