"""Obey files: every statement, understood as the shell would, and what it says about groups, trails and aliases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

from ggshell.check.facts import Facts, Group, Use, trail
from ggshell.check.findings import Checked, Finding, Place, Severity
from ggshell.check.gaps import gap
from ggshell.check.secrets import masked
from ggshell.errors import StatementError
from ggshell.syntax import grammar
from ggshell.syntax.grammar import COMMANDS
from ggshell.syntax.statement import Statement, split


def check_script(text: str, file: str, facts: Facts) -> list[Checked]:
    """The statements of an obey file; what they say goes into ``facts``."""
    return [_check(statement, facts) for statement in split(text, file)]


def _check(statement: Statement, facts: Facts) -> Checked:
    place = Place(statement.file, statement.line, statement.column)
    try:
        parsed = grammar.parse(statement.text)
    except StatementError as error:
        return Checked(place, masked(statement.text), (refused(error, place, statement.text),))
    taker = _TAKERS.get(parsed.key)
    if taker is not None:
        taker(parsed.args, place, facts)
    missing = gap(COMMANDS, parsed, statement.text, place)
    return Checked(place, masked(statement.text), (missing,) if missing is not None else ())


def refused(error: StatementError, place: Place, text: str) -> Finding:
    """A syntax error as a finding, at its own column."""
    at = place._replace(column=place.column + error.column - 1)
    return Finding(at, Severity.ERROR, error.code, error.message, error.hint, error.page, masked(text))


Arguments = dict[str, Any]
Taker = Callable[[Arguments, Place, Facts], None]


def _add_extract(args: Arguments, place: Place, facts: Facts) -> None:
    source = str(args.get("exttrailsource") or "")
    facts.groups.append(Group(str(args["group_name"]), "EXTRACT", place, trail(source) if source else ""))


def _add_replicat(args: Arguments, place: Place, facts: Facts) -> None:
    source = str(args.get("exttrail") or "")
    facts.groups.append(Group(str(args["group_name"]), "REPLICAT", place, trail(source) if source else ""))


def _add_path(args: Arguments, place: Place, facts: Facts) -> None:
    name = str(args["path_name"])
    source, target = urlsplit(str(args.get("source", ""))), urlsplit(str(args.get("target", "")))
    read = parse_qs(source.query).get("trail", [source.netloc + source.path])[0]
    facts.groups.append(Group(name, "DISTPATH", place, trail(read)))
    written = parse_qs(target.query).get("trail", [target.netloc + target.path])[0]
    facts.trails.append(Use(trail(written), place, name, "DISTPATH"))


def _add_trail(args: Arguments, place: Place, facts: Facts) -> None:
    facts.trails.append(Use(trail(str(args["trail"])), place, str(args.get("extract") or ""), "EXTRACT"))


def _start(kind: str) -> Taker:
    def take(args: Arguments, place: Place, facts: Facts) -> None:
        name = str(args.get("group_name") or args.get("path_name") or "")
        if name:
            facts.started.append(Use(name, place, kind=kind))

    return take


def _add_alias(args: Arguments, place: Place, facts: Facts) -> None:
    facts.aliases.append(Use(str(args.get("alias") or args.get("user") or ""), place))


def _login(args: Arguments, place: Place, facts: Facts) -> None:
    name = args.get("useridalias") or args.get("alias")
    if name:
        facts.logins.append(Use(str(name), place))


_TAKERS: dict[str, Taker] = {
    "ADD EXTRACT": _add_extract,
    "ADD REPLICAT": _add_replicat,
    "ADD DISTPATH": _add_path,
    "ADD EXTTRAIL": _add_trail,
    "ADD RMTTRAIL": _add_trail,
    "START EXTRACT": _start("EXTRACT"),
    "START REPLICAT": _start("REPLICAT"),
    "START DISTPATH": _start("DISTPATH"),
    "START ER": _start(""),
    "START": _start(""),
    "ALTER CREDENTIALSTORE ADD USER": _add_alias,
    "DBLOGIN USERIDALIAS": _login,
}
