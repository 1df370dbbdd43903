"""Finds contradictions between files: trails without a writer, groups that are never added, unknown aliases."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator

from ggshell.check.facts import AddedGroup, MapUse, StatedFacts, Use, is_pattern
from ggshell.check.findings import CheckFinding, FilePlace, FindingSeverity
from ggshell.home.checkpoint import GroupKind

WARNING, ERROR = FindingSeverity.WARNING, FindingSeverity.ERROR


def across(facts: StatedFacts) -> list[CheckFinding]:
    """Return every contradiction between the files, each at the place to be corrected.

    Rules about groups and trails apply only if scripts add groups: a single parameter file cannot contradict itself.
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


def _finding(place: FilePlace, severity: FindingSeverity, code: str, message: str, hint: str = "") -> CheckFinding:
    return CheckFinding(place, severity, code, message, hint)


def _duplicates(facts: StatedFacts) -> Iterator[CheckFinding]:
    first: dict[tuple[str, str], AddedGroup] = {}
    for group in (each for each in facts.groups if not each.deleted):
        known = first.setdefault((group.kind, group.name.upper()), group)
        if known is not group:
            text = f"{group.kind} {group.name} was already added at {_at(known.place)}"
            yield _finding(group.place, ERROR, "GGS-01201", text)
    files: dict[tuple[str, str], FilePlace] = {}
    for file in facts.files:
        place = files.setdefault((file.kind, file.group.upper()), file.place)
        if place is not file.place:
            text = f"{file.kind} {file.group} has two parameter files; the other is {place.file}"
            yield _finding(file.place, WARNING, "GGS-01206", text)


def _starts(facts: StatedFacts) -> Iterator[CheckFinding]:
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
            yield _finding(start.place, WARNING, "GGS-01202", f"{what} is started, but never added", "ADD it first")


def _is_there(kind: str, pattern: str, names: dict[str, set[str]]) -> bool:
    """Whether a group of a kind (empty: any kind) has a name or matches a pattern."""
    if not is_pattern(pattern):
        return pattern in names and kind in ("", *names[pattern])
    return any(kind in ("", *kinds) and fnmatch.fnmatchcase(name, pattern) for name, kinds in names.items())


def _sources(facts: StatedFacts) -> Iterator[CheckFinding]:
    """Replicats, pumps and paths that read a trail that nothing writes."""
    written = {use.name for use in (*facts.trails, *facts.written, *facts.loaded)}
    for group in facts.groups:
        if group.source and not group.deleted and group.source not in written:
            text = f"{group.kind} {group.name} reads trail {group.source}, which no group writes"
            yield _finding(group.place, WARNING, "GGS-01203", text, "ADD EXTTRAIL or ADD RMTTRAIL with this trail")


def _trails(facts: StatedFacts) -> Iterator[CheckFinding]:
    """Trails of groups that are not added, with two writers, or that only a script or only a parameter file names.

    Trails of one name in several homes are different trails.
    """
    extracts = {group.name.upper(): group for group in facts.groups if group.kind == GroupKind.EXTRACT}
    writers: dict[tuple[str, str], Use] = {}
    for use in (each for each in facts.trails if not each.deleted):
        if use.kind == GroupKind.EXTRACT and use.group and use.group.upper() not in extracts:
            text = f"trail {use.name} is added for EXTRACT {use.group}, which is never added"
            yield _finding(use.place, WARNING, "GGS-01202", text, f"ADD EXTRACT {use.group}")
        other = writers.setdefault((use.name, facts.hosts.get(use.group.upper(), "")), use)
        if other is not use:
            text = f"trail {use.name} is written by {use.group} and by {other.group} ({_at(other.place)})"
            yield _finding(use.place, ERROR, "GGS-01207", text, "use another trail: a trail can have only one writer")
    with_file = {file.group.upper() for file in facts.files if file.kind == GroupKind.EXTRACT}
    named = {(use.group.upper(), use.name) for use in facts.written}
    for use in facts.trails:
        if use.group.upper() in with_file and (use.group.upper(), use.name) not in named:
            text = f"the parameter file of {use.group} does not name trail {use.name}"
            yield _finding(use.place, WARNING, "GGS-01208", text, f"add EXTTRAIL {use.name} to its file")
    for written in facts.written:
        known = writers.get((written.name, facts.hosts.get(written.group.upper(), "")))
        if written.group.upper() in extracts and (known is None or known.group.upper() != written.group.upper()):
            text = f"{written.group} names trail {written.name}, which no script adds for it"
            yield _finding(
                written.place, WARNING, "GGS-01208", text, f"ADD EXTTRAIL {written.name}, EXTRACT {written.group}"
            )


def _files(facts: StatedFacts) -> Iterator[CheckFinding]:
    """Groups without a parameter file, and parameter files of groups that no script adds."""
    if not facts.files:
        return
    named = {(file.kind, file.group.upper()) for file in facts.files}
    added = {(group.kind, group.name.upper()) for group in facts.groups}
    for group in facts.groups:
        if (
            group.kind not in (GroupKind.PATH, GroupKind.RECVPATH)
            and not group.deleted
            and (group.kind, group.name.upper()) not in named
        ):
            text = f"{group.kind} {group.name} has no parameter file among those checked"
            yield _finding(group.place, WARNING, "GGS-01209", text, f"check dirprm/{group.name.lower()}.prm as well")
    for file in facts.files:
        if (file.kind, file.group.upper()) not in added:
            text = f"{file.kind} {file.group} has a parameter file, but no script adds it"
            yield _finding(file.place, WARNING, "GGS-01209", text, f"ADD {file.kind} {file.group}")


def _maps(facts: StatedFacts) -> Iterator[CheckFinding]:
    """MAP statements that occur twice, and targets that are mapped from two sources."""
    first: dict[tuple[str, str, str], FilePlace] = {}
    for use in facts.maps:
        place = first.setdefault((use.group, use.source.upper(), use.target.upper()), use.place)
        yield from _wide(use)
        if place is not use.place:
            text = f"MAP {use.source}, TARGET {use.target} is specified twice, first on line {place.line}"
            yield _finding(use.place, WARNING, "GGS-01210", text, "remove one: only the first is used")
    targets: dict[tuple[str, str], str] = {}
    for use in facts.maps:
        if use.collects or "*" in use.target or "?" in use.target:
            continue
        source = targets.setdefault((use.target.upper(), ""), use.source.upper())
        if source != use.source.upper():
            text = f"target {use.target} is mapped from {source.lower()} and from {use.source}"
            yield _finding(
                use.place, WARNING, "GGS-01210", text, "use COLMAP or distinct keys for two sources of one table"
            )


def _wide(use: MapUse) -> Iterator[CheckFinding]:
    """A warning about the columns that every table matched by a wildcard must have."""
    if use.columns and is_pattern(use.source):
        text = (
            f"every table that MAP {use.source} matches must have {', '.join(use.columns)}: Replicat abends on others"
        )
        hint = f"write a separate MAP before MAP {use.source} for each table without them"
        yield _finding(use.place, WARNING, "GGS-01211", text, hint)


def _at(place: FilePlace) -> str:
    return f"{place.file}:{place.line}"
