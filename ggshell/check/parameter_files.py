"""Checks parameter files: determines their type, checks every parameter, and collects trails, aliases and tables."""

from __future__ import annotations

from functools import partial
from pathlib import Path, PurePath

from ggshell.check.facts import MapUse, ParameterFile, StatedFacts, Use, trail
from ggshell.check.findings import Checked, CheckFinding, FilePlace, FindingSeverity, noted
from ggshell.errors import ParameterError
from ggshell.language import grammar
from ggshell.language.grammar import COMMANDS, PARAMETERS, Parsed
from ggshell.language.redaction import starred
from ggshell.language.statement import without_comment
from ggshell.language.unsupported import refuses
from ggshell.parameters.lines import Parameter, RawParameter, first_word, meant_for
from ggshell.parameters.loading import KINDS, examine
from ggshell.parameters.remote_hosts import remote_host
from ggshell.parameters.row_clauses import clauses_of
from ggshell.parameters.source_lines import MISSING_CODE
from ggshell.parameters.trail_statements import IDLE, IDLE_CODE, IDLE_HINT, idle_encryption

_GROUP_KINDS = {"EXTRACT": "Extract", "REPLICAT": "Replicat"}
_LOOKED_AT = 200


def kind_of(text: str, file: str) -> str:
    """Determine the type of a parameter file: Extract, Replicat, Manager, Service or GLOBALS; empty for an obey file."""
    name = PurePath(file.replace("\\", "/")).name.upper()
    if name == "GLOBALS":
        return "GLOBALS"
    words = _first_words(text)
    group = next((_GROUP_KINDS[word] for word in words if word in _GROUP_KINDS), "")
    if group:
        return group
    commands, parameters = set(grammar.verbs(COMMANDS)), set(grammar.verbs(PARAMETERS))
    said = sum((word in parameters) - (word in commands) for word in words)
    if said <= 0 and not name.endswith(".PRM"):
        return ""
    if name in ("MGR.PRM", "MGR"):
        return "Manager"
    if name in ("SERVICE.PRM", "SERVICE"):
        return "Service"
    meant = [meant_for(word.lower()) for word in words if word in parameters]
    votes = {kind: sum(kind in each for each in meant) for kind in KINDS}
    return max(KINDS, key=lambda kind: votes[kind]) if meant else "Extract"


def _first_words(text: str) -> list[str]:
    """The first word of each of the first statements; continuation lines are skipped."""
    found: list[str] = []
    goes_on = False
    for raw in text.splitlines():
        line = without_comment(raw).strip()
        if not line:
            continue
        if not goes_on and (word := first_word(line)):
            found.append(word)
        goes_on = line.endswith("&")
        if len(found) >= _LOOKED_AT:
            break
    return found


def check_parameters(text: str, file: str, kind: str, facts: StatedFacts) -> list[Checked]:
    """Check the parameters of a file as its process would load them, and add what they state to ``facts``."""
    loaded = examine(text, Path(file), kind)
    result: list[Checked] = []
    group = ""
    idle = idle_encryption(loaded.parameters) if kind == "Extract" else ()
    for statement in loaded.statements:
        raw, parsed = statement.raw, statement.parsed
        place = _place(raw, 1)
        findings = [] if statement.error is None else [_refused(statement.error, file)]
        if parsed is not None:
            name = parsed.key.split()[0]
            if name in _GROUP_KINDS and not group:
                group = str(parsed.args.get("group_name", ""))
                facts.files.append(ParameterFile(name, group, place))
            _take(parsed, name, group, place, facts, None if statement.error else statement.parameter)
            notes = [note for note in parsed.notes if statement.error is None or not refuses(parsed.page, note)]
            findings += [_idle(raw) for item in idle if item is statement.parameter]
            findings += noted(notes, parsed, raw.text, partial(_place, raw), PARAMETERS)
        result.append(Checked(place, starred(raw.text, PARAMETERS), tuple(findings)))
    result += [_broken(error, file) for error in loaded.errors]
    if kind in _GROUP_KINDS.values() and not group:
        result[:1] = [_without_group(first, kind) for first in result[:1]]  # a fragment, which another file includes
    elif loaded.whole is not None:
        result.append(_broken(loaded.whole, file))
    return result


def _place(raw: RawParameter, column: int) -> FilePlace:
    origin = raw.at(column)
    return FilePlace(origin.file, origin.line, origin.column)


def _idle(raw: RawParameter) -> CheckFinding:
    """A warning for an ENCRYPTTRAIL that follows the trails that it should encrypt."""
    source = starred(raw.text, PARAMETERS)
    return CheckFinding(_place(raw, 1), FindingSeverity.WARNING, IDLE_CODE, IDLE, IDLE_HINT, "encrypttrail", source, 0)


def _refused(error: ParameterError, file: str) -> CheckFinding:
    """Convert an error of the loader to a finding.

    A missing INCLUDE file is a warning: it may exist on the host of the process.
    """
    severity = FindingSeverity.WARNING if error.code == MISSING_CODE else FindingSeverity.ERROR
    name, _, _ = error.where.rpartition(f":{error.line}:{error.column}")
    place = FilePlace(name or file, error.line, error.column)
    return CheckFinding(
        place,
        severity,
        error.code,
        error.message,
        error.hint,
        error.page,
        starred(error.source, PARAMETERS),
        error.spot,
    )


def _broken(error: ParameterError, file: str) -> Checked:
    """Report an error in an INCLUDE, a macro, a missing semicolon, or the file as a whole."""
    found = _refused(error, file)
    return Checked(found.place, starred(error.source, PARAMETERS), (found,))


def _without_group(first: Checked, kind: str) -> Checked:
    text = f"the file must begin with {kind.upper()} and the name of the group"
    found = CheckFinding(
        first.place, FindingSeverity.WARNING, "GGS-01205", text, f"add {kind.upper()} group as the first line"
    )
    return first._replace(findings=(found, *first.findings))


def _take(
    parsed: Parsed, name: str, group: str, place: FilePlace, facts: StatedFacts, parameter: Parameter | None = None
) -> None:
    args = parsed.args
    if name == "RMTHOST" and parameter is not None:
        host = remote_host(parameter)
        facts.hosts[group.upper()] = "" if host.is_loopback else host.place.lower()
    elif name in ("EXTTRAIL", "RMTTRAIL"):
        facts.written.append(Use(trail(str(args["trail"])), place, group))
    elif name in ("EXTFILE", "RMTFILE"):
        facts.loaded.append(Use(trail(str(args["file"])), place, group))
    elif name == "MAP" and "target" in args:
        columns = _conflict_columns(parameter) if parameter is not None else ()
        collects = bool(args.get("exceptionsonly") or args.get("insertallrecords"))
        facts.maps.append(MapUse(group, str(args["source_table"]), str(args["target"]), place, columns, collects))
    elif args.get("useridalias") or (name == "USERIDALIAS" and args.get("alias")):
        facts.logins.append(Use(str(args.get("useridalias") or args["alias"]), place))


def _conflict_columns(parameter: Parameter) -> tuple[str, ...]:
    """The columns that COMPARECOLS and RESOLVECONFLICT of a MAP name.

    Every table that the MAP matches must have them.
    """
    clauses = clauses_of(parameter, frozenset())
    groups = [group for _, groups in clauses.resolutions for group in groups]
    named = [name for each in clauses.compared for name in each.columns]
    named += [name for group in groups for name in (*group.columns, group.by) if name]
    return tuple(dict.fromkeys(named))
