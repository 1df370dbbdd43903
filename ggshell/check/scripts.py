"""Obey files: every statement, understood as the shell would, and what it says about groups, trails and aliases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

from ggshell.check.facts import Facts, Group, Use, trail
from ggshell.check.findings import Checked, Finding, Place, Severity
from ggshell.check.gaps import gaps
from ggshell.check.secrets import masked
from ggshell.errors import StatementError
from ggshell.syntax import grammar
from ggshell.syntax.grammar import COMMANDS
from ggshell.syntax.statement import Statement, split


def check_script(text: str, file: str, facts: Facts) -> list[Checked]:
    """The statements of an obey file; what they say goes into ``facts``."""
    return [_check(statement, facts) for statement in split(text, file)]


def _check(statement: Statement, facts: Facts) -> Checked:
    def at(column: int) -> Place:
        return Place(statement.file, *statement.at(column))

    place = at(1)
    try:
        parsed = grammar.parse(statement.text)
    except StatementError as error:
        return Checked(place, masked(statement.text), (refused(error, at(error.column), statement.text),))
    taker = _TAKERS.get(parsed.key)
    if taker is not None:
        taker(parsed.args, place, facts)
    return Checked(place, masked(statement.text), tuple(gaps(COMMANDS, parsed, statement.text, at)))


def refused(error: StatementError, place: Place, text: str) -> Finding:
    """A syntax error as a finding at its place; its column counts in the text."""
    spot = error.column - 1
    return Finding(place, Severity.ERROR, error.code, error.message, error.hint, error.page, masked(text), spot)


Arguments = dict[str, Any]
Taker = Callable[[Arguments, Place, Facts], None]


def _add_extract(args: Arguments, place: Place, facts: Facts) -> None:
    source = str(args.get("exttrailsource") or "")
    facts.add_group(Group(str(args["group_name"]), "EXTRACT", place, trail(source) if source else ""))


def _add_replicat(args: Arguments, place: Place, facts: Facts) -> None:
    source = str(args.get("exttrail") or "")
    facts.add_group(Group(str(args["group_name"]), "REPLICAT", place, trail(source) if source else ""))


def _add_path(args: Arguments, place: Place, facts: Facts) -> None:
    name = str(args["path_name"])
    source, target = urlsplit(str(args.get("source", ""))), urlsplit(str(args.get("target", "")))
    read = parse_qs(source.query).get("trail", [source.netloc + source.path])[0]
    facts.add_group(Group(name, "DISTPATH", place, trail(read)))
    written = parse_qs(target.query).get("trail", [target.netloc + target.path])[0]
    facts.add_trail(Use(trail(written), place, name, "DISTPATH"))


def _add_trail(args: Arguments, place: Place, facts: Facts) -> None:
    facts.add_trail(Use(trail(str(args["trail"])), place, str(args.get("extract") or ""), "EXTRACT"))


def _delete(kind: str) -> Taker:
    """A group or trail that is deleted may be added again."""

    def take(args: Arguments, _: Place, facts: Facts) -> None:
        facts.delete_groups(kind, str(args.get("group_name") or args.get("path_name") or ""))

    return take


def _delete_trail(args: Arguments, _: Place, facts: Facts) -> None:
    facts.delete_trail(trail(str(args["trail"])))


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
    "DELETE EXTRACT": _delete("EXTRACT"),
    "DELETE REPLICAT": _delete("REPLICAT"),
    "DELETE DISTPATH": _delete("DISTPATH"),
    "DELETE EXTTRAIL": _delete_trail,
    "DELETE RMTTRAIL": _delete_trail,
    "START EXTRACT": _start("EXTRACT"),
    "START REPLICAT": _start("REPLICAT"),
    "START DISTPATH": _start("DISTPATH"),
    "START ER": _start(""),
    "RESTART EXTRACT": _start("EXTRACT"),
    "RESTART REPLICAT": _start("REPLICAT"),
    "RESTART ER": _start(""),
    "START": _start(""),
    "ALTER CREDENTIALSTORE ADD USER": _add_alias,
    "DBLOGIN USERIDALIAS": _login,
}
