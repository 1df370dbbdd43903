"""What does not fit together across files: trails nobody writes or reads, groups never added, aliases unknown."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator

from ggshell.check.facts import Facts, Group, Use, is_pattern
from ggshell.check.findings import Finding, Place, Severity

WARNING, ERROR = Severity.WARNING, Severity.ERROR


def across(facts: Facts) -> list[Finding]:
    """Every contradiction between the files, each at the place that is to be mended.

    Rules of groups and trails hold only where scripts add groups at all: a lone parameter file cannot contradict itself.
    """
    found = [*_duplicates(facts), *_maps(facts)]
    if facts.groups:
        found += [*_starts(facts), *_sources(facts), *_trails(facts), *_files(facts)]
    if facts.aliases:
        known = {alias.name.upper() for alias in facts.aliases}
        for login in facts.logins:
            if login.name.upper() not in known:
                text = f"alias {login.name} is never added to the credential store"
                found.append(
                    _finding(login.place, WARNING, "GGS-01204", text, "ALTER CREDENTIALSTORE ADD USER … ALIAS")
                )
    return found


def _finding(place: Place, severity: Severity, code: str, message: str, hint: str = "") -> Finding:
    return Finding(place, severity, code, message, hint)


def _duplicates(facts: Facts) -> Iterator[Finding]:
    first: dict[tuple[str, str], Group] = {}
    for group in (each for each in facts.groups if not each.deleted):
        known = first.setdefault((group.kind, group.name.upper()), group)
        if known is not group:
            text = f"{group.kind} {group.name} is added twice, first at {_at(known.place)}"
            yield _finding(group.place, ERROR, "GGS-01201", text)
    files: dict[tuple[str, str], Place] = {}
    for file in facts.files:
        place = files.setdefault((file.kind, file.group.upper()), file.place)
        if place is not file.place:
            text = f"{file.kind} {file.group} has two parameter files, the other is {place.file}"
            yield _finding(file.place, WARNING, "GGS-01206", text)


def _starts(facts: Facts) -> Iterator[Finding]:
    names: dict[str, set[str]] = {}
    for group in facts.groups:
        names.setdefault(group.name.upper(), set()).add(group.kind)
    patterns: dict[tuple[str, str], bool] = {}
    for start in facts.started:
        key = (start.kind, start.name.upper())
        if key not in patterns:
            patterns[key] = _is_there(*key, names)
        if not patterns[key]:
            what = f"{start.kind} {start.name}".strip()
            yield _finding(start.place, WARNING, "GGS-01202", f"{what} is started, and never added", "ADD it first")


def _is_there(kind: str, pattern: str, names: dict[str, set[str]]) -> bool:
    """Whether a group of a kind (any, when empty) has a name, or fits a pattern."""
    if not is_pattern(pattern):
        return pattern in names and kind in ("", *names[pattern])
    return any(kind in ("", *kinds) and fnmatch.fnmatchcase(name, pattern) for name, kinds in names.items())


def _sources(facts: Facts) -> Iterator[Finding]:
    """Replicats, pumps and paths whose trail nobody produces."""
    written = {use.name for use in (*facts.trails, *facts.written, *facts.loaded)}
    for group in facts.groups:
        if group.source and not group.deleted and group.source not in written:
            text = f"{group.kind} {group.name} reads trail {group.source}, which nobody writes"
            yield _finding(group.place, WARNING, "GGS-01203", text, "ADD EXTTRAIL or ADD RMTTRAIL with this trail")


def _trails(facts: Facts) -> Iterator[Finding]:
    """Trails added for a group that is not added, written twice, or named in one place only."""
    extracts = {group.name.upper(): group for group in facts.groups if group.kind == "EXTRACT"}
    writers: dict[str, Use] = {}
    for use in (each for each in facts.trails if not each.deleted):
        if use.kind == "EXTRACT" and use.group and use.group.upper() not in extracts:
            text = f"trail {use.name} is added for EXTRACT {use.group}, which is never added"
            yield _finding(use.place, WARNING, "GGS-01202", text, f"ADD EXTRACT {use.group}")
        other = writers.setdefault(use.name, use)
        if other is not use:
            text = f"trail {use.name} is written by {use.group} and by {other.group} ({_at(other.place)})"
            yield _finding(use.place, ERROR, "GGS-01207", text, "each trail has one writer")
    with_file = {file.group.upper() for file in facts.files if file.kind == "EXTRACT"}
    named = {(use.group.upper(), use.name) for use in facts.written}
    for use in facts.trails:
        if use.group.upper() in with_file and (use.group.upper(), use.name) not in named:
            text = f"the parameter file of {use.group} does not name trail {use.name}"
            yield _finding(use.place, WARNING, "GGS-01208", text, f"EXTTRAIL {use.name} in its file")
    for written in facts.written:
        known = writers.get(written.name)
        if written.group.upper() in extracts and (known is None or known.group.upper() != written.group.upper()):
            text = f"{written.group} names trail {written.name}, which no script adds for it"
            yield _finding(
                written.place, WARNING, "GGS-01208", text, f"ADD EXTTRAIL {written.name}, EXTRACT {written.group}"
            )


def _files(facts: Facts) -> Iterator[Finding]:
    """With parameter files at hand: groups without one, and files of groups that nobody adds."""
    if not facts.files:
        return
    named = {(file.kind, file.group.upper()) for file in facts.files}
    added = {(group.kind, group.name.upper()) for group in facts.groups}
    for group in facts.groups:
        if group.kind != "DISTPATH" and not group.deleted and (group.kind, group.name.upper()) not in named:
            text = f"{group.kind} {group.name} has no parameter file among those checked"
            yield _finding(group.place, WARNING, "GGS-01209", text, f"dirprm/{group.name.lower()}.prm")
    for file in facts.files:
        if (file.kind, file.group.upper()) not in added:
            text = f"{file.kind} {file.group} has a parameter file, and no script adds it"
            yield _finding(file.place, WARNING, "GGS-01209", text, f"ADD {file.kind} {file.group}")


def _maps(facts: Facts) -> Iterator[Finding]:
    """Targets that one Replicat maps twice from the same source."""
    first: dict[tuple[str, str, str], Place] = {}
    for use in facts.maps:
        place = first.setdefault((use.group, use.source.upper(), use.target.upper()), use.place)
        if place is not use.place:
            text = f"MAP {use.source}, TARGET {use.target} stands twice, first on line {place.line}"
            yield _finding(use.place, WARNING, "GGS-01210", text, "rows would be applied by the first alone")
    targets: dict[tuple[str, str], str] = {}
    for use in facts.maps:
        if "*" in use.target or "?" in use.target:
            continue
        source = targets.setdefault((use.target.upper(), ""), use.source.upper())
        if source != use.source.upper():
            text = f"target {use.target} is mapped from {source.lower()} and from {use.source}"
            yield _finding(
                use.place, WARNING, "GGS-01210", text, "two sources in one table need COLMAP or distinct keys"
            )


def _at(place: Place) -> str:
    return f"{place.file}:{place.line}"
