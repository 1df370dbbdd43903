"""Parameter files: whose each is, every parameter of it, and what it says about trails, aliases and tables."""

from __future__ import annotations

from functools import partial
from pathlib import PurePath

from ggshell.check.facts import Facts, MapUse, ParameterFile, Use, trail
from ggshell.check.findings import Checked, Finding, Place, Severity
from ggshell.check.gaps import gaps
from ggshell.check.scripts import refused
from ggshell.check.secrets import masked
from ggshell.errors import ParameterError, StatementError
from ggshell.params.lines import RawParameter, first_word, logical_lines, meant_for
from ggshell.syntax import grammar
from ggshell.syntax.grammar import COMMANDS, PARAMETERS
from ggshell.syntax.parsed import Parsed
from ggshell.syntax.statement import without_comment

_GROUP_KINDS = {"EXTRACT": "Extract", "REPLICAT": "Replicat"}
KINDS = ("Extract", "Replicat", "Manager", "GLOBALS")
_LOOKED_AT = 200


def kind_of(text: str, file: str) -> str:
    """Whose parameters a text holds: Extract, Replicat, Manager, GLOBALS; empty for an obey file."""
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
    meant = [meant_for(word.lower()) for word in words if word in parameters]
    votes = {kind: sum(kind in each for each in meant) for kind in KINDS}
    return max(KINDS, key=lambda kind: votes[kind]) if meant else "Extract"


def _first_words(text: str) -> list[str]:
    """The words that begin the first statements of a text; lines that go on are none."""
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


def check_parameters(text: str, file: str, kind: str, facts: Facts) -> list[Checked]:
    """The parameters of a file; what they say goes into ``facts``."""
    result: list[Checked] = []
    group = ""
    errors: list[ParameterError] = []
    for raw in logical_lines(text, file, errors):
        place = _place(raw, 1)
        try:
            parsed = grammar.parse(raw.text, PARAMETERS)
        except StatementError as error:
            result.append(Checked(place, masked(raw.text), (_refused(error, raw),)))
            continue
        name = parsed.key.split()[0]
        if name in _GROUP_KINDS and not group:
            group = str(parsed.args.get("group_name", ""))
            facts.files.append(ParameterFile(name, group, place))
        findings = _belongs(parsed, name, kind, raw, place)
        _take(parsed, name, group, place, facts)
        findings += gaps(PARAMETERS, parsed, raw.text, partial(_place, raw))
        result.append(Checked(place, masked(raw.text), tuple(findings)))
    result += [_broken(error) for error in errors]
    if kind in _GROUP_KINDS.values() and not group and result:
        result[0] = _without_group(result[0], kind)
    return result


def _place(raw: RawParameter, column: int) -> Place:
    origin = raw.at(column)
    return Place(origin.file, origin.line, origin.column)


def _refused(error: StatementError, raw: RawParameter) -> Finding:
    found = refused(error, _place(raw, error.column), raw.text)
    macro = raw.at(error.column).macro
    return found._replace(hint="; ".join(filter(None, [found.hint, f"in macro {macro}" if macro else ""])))


def _broken(error: ParameterError) -> Checked:
    """An INCLUDE, a macro or a missing semicolon."""
    file, line, column = error.where.rsplit(":", 2)
    place = Place(file, int(line), int(column))
    found = Finding(place, Severity.ERROR, error.code, error.message, error.hint, error.page, masked(error.source))
    return Checked(place, masked(error.source), (found,))


def _without_group(first: Checked, kind: str) -> Checked:
    text = f"the file does not begin with {kind.upper()} and its group"
    found = Finding(first.place, Severity.WARNING, "GGS-01205", text, f"{kind.upper()} group on the first line")
    return first._replace(findings=(found, *first.findings))


def _belongs(parsed: Parsed, name: str, kind: str, raw: RawParameter, place: Place) -> list[Finding]:
    meant = meant_for(parsed.page)
    if not meant or kind in meant:
        return []
    text = f"{name} does not belong into the parameters of {kind}: it is for {meant}"
    return [Finding(place, Severity.ERROR, "GGS-00105", text, page=parsed.page, source=masked(raw.text), spot=0)]


def _take(parsed: Parsed, name: str, group: str, place: Place, facts: Facts) -> None:
    args = parsed.args
    if name in ("EXTTRAIL", "RMTTRAIL"):
        facts.written.append(Use(trail(str(args["trail"])), place, group))
    elif name in ("EXTFILE", "RMTFILE"):
        facts.loaded.append(Use(trail(str(args["file"])), place, group))
    elif name == "MAP" and "target" in args:
        facts.maps.append(MapUse(group, str(args["source_table"]), str(args["target"]), place))
    elif args.get("useridalias") or (name == "USERIDALIAS" and args.get("alias")):
        facts.logins.append(Use(str(args.get("useridalias") or args["alias"]), place))
