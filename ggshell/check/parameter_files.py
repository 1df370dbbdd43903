"""Parameter files: whose each is, every parameter of it, and what it says about trails, aliases and tables."""

from __future__ import annotations

import re
from pathlib import PurePath

from ggshell.check.facts import Facts, MapUse, ParameterFile, Use, trail
from ggshell.check.findings import Checked, Finding, Place, Severity
from ggshell.check.gaps import gap
from ggshell.check.scripts import refused
from ggshell.check.secrets import masked
from ggshell.errors import ParameterError, StatementError
from ggshell.params.lines import RawParameter, logical_lines
from ggshell.syntax import grammar, pages
from ggshell.syntax.grammar import PARAMETERS, Parsed

_GROUP_KINDS = {"EXTRACT": "Extract", "REPLICAT": "Replicat"}
_MANAGER_WORDS = re.compile(
    r"(?im)^\s*(PORT|DYNAMICPORTLIST|AUTOSTART|AUTORESTART|PURGEOLDEXTRACTS|LAG(REPORT|INFO|CRITICAL)\w+)\b"
)


def kind_of(text: str, file: str) -> str:
    """Whose parameters a text holds: Extract, Replicat, Manager, GLOBALS; empty for an obey file."""
    name = PurePath(file).name.upper()
    if name == "GLOBALS":
        return "GLOBALS"
    for raw in logical_lines(text, file):
        word = re.split(r"[^A-Za-z]", raw.text, maxsplit=1)[0].upper()
        if word in _GROUP_KINDS:
            return _GROUP_KINDS[word]
    if name in ("MGR.PRM", "MGR") or (name.endswith(".PRM") and _MANAGER_WORDS.search(text)):
        return "Manager"
    return "Extract" if name.endswith(".PRM") else ""


def check_parameters(text: str, file: str, kind: str, facts: Facts) -> list[Checked]:
    """The parameters of a file; what they say goes into ``facts``."""
    result: list[Checked] = []
    group = ""
    errors: list[ParameterError] = []
    for raw in logical_lines(text, file, errors):
        place = Place(raw.file, raw.line)
        try:
            parsed = grammar.parse(raw.text, PARAMETERS)
        except StatementError as error:
            result.append(Checked(place, masked(raw.text), (refused(error, place, raw.text),)))
            continue
        name = parsed.key.split()[0]
        if name in _GROUP_KINDS and not group:
            group = str(parsed.args.get("group_name", ""))
            facts.files.append(ParameterFile(name, group, place))
        findings = _belongs(parsed, name, kind, raw, place)
        _take(parsed, name, group, place, facts)
        missing = gap(PARAMETERS, parsed, raw.text, place)
        findings += [missing] if missing is not None else []
        result.append(Checked(place, masked(raw.text), tuple(findings)))
    result += [_broken(error) for error in errors]
    if kind in _GROUP_KINDS.values() and not group and result:
        result[0] = _without_group(result[0], kind)
    return result


def _broken(error: ParameterError) -> Checked:
    """An INCLUDE or a macro that leads nowhere."""
    file, line, _ = error.where.rsplit(":", 2)
    place = Place(file, int(line))
    return Checked(place, masked(error.source), (refused(error, place, error.source),))


def _without_group(first: Checked, kind: str) -> Checked:
    text = f"the file does not begin with {kind.upper()} and its group"
    found = Finding(first.place, Severity.WARNING, "GGS-01205", text, f"{kind.upper()} group on the first line")
    return first._replace(findings=(found, *first.findings))


def _belongs(parsed: Parsed, name: str, kind: str, raw: RawParameter, place: Place) -> list[Finding]:
    meant = pages.read(pages.index(PARAMETERS)[parsed.page]).facts.get("For", "")
    if not meant or kind in meant:
        return []
    text = f"{name} does not belong into the parameters of {kind}: it is for {meant}"
    return [Finding(place, Severity.ERROR, "GGS-00105", text, page=parsed.page, source=masked(raw.text))]


def _take(parsed: Parsed, name: str, group: str, place: Place, facts: Facts) -> None:
    args = parsed.args
    if name in ("EXTTRAIL", "RMTTRAIL"):
        facts.written.append(Use(trail(str(args["trail"])), place, group))
    elif name == "MAP" and "target" in args:
        facts.maps.append(MapUse(group, str(args["source_table"]), str(args["target"]), place))
    elif args.get("useridalias") or (name == "USERIDALIAS" and args.get("alias")):
        facts.logins.append(Use(str(args.get("useridalias") or args["alias"]), place))
