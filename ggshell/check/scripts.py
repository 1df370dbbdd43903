"""Checks statements of obey files: parses them as the shell would, and collects groups, trails and aliases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

from ggshell.check.facts import AddedGroup, StatedFacts, Use, trail
from ggshell.check.findings import Checked, CheckFinding, FilePlace, FindingSeverity, noted
from ggshell.errors import StatementError
from ggshell.home.checkpoint import GroupKind
from ggshell.language import grammar
from ggshell.language.redaction import starred
from ggshell.language.statement import Statement
from ggshell.language.unsupported import refusal_of


def check_statement(statement: Statement, facts: StatedFacts) -> tuple[Checked, str]:
    """Check a statement and add what it states to ``facts``. Returns also the file if it is OBEY, or an empty text."""

    def at(column: int) -> FilePlace:
        return FilePlace(statement.file, *statement.at(column))

    place = at(1)
    try:
        parsed = grammar.parse(statement.text, suspect=statement.suspect)
    except StatementError as error:
        shown = starred(statement.text, suspect=statement.suspect)
        return Checked(place, shown, (refused(error, at(error.column), shown),)), ""
    taker = _TAKERS.get(parsed.key)
    if taker is not None:
        taker(parsed.args, place, facts)
    refusal = refusal_of(parsed, statement.text)  # the same error as in the shell
    if refusal is not None:
        findings = [refused(refusal, at(refusal.column), statement.text)]
    else:
        findings = noted(parsed.notes, parsed, statement.text, at)
    obeyed = str(parsed.args["file"]) if parsed.key == "OBEY" else ""
    return Checked(place, starred(statement.text), tuple(findings)), obeyed


def refused(error: StatementError, place: FilePlace, text: str) -> CheckFinding:
    """Convert a syntax error to a finding at its place; the error's column is relative to the text."""
    spot = error.column - 1
    return CheckFinding(
        place, FindingSeverity.ERROR, error.code, error.message, error.hint, error.page, starred(text), spot
    )


Arguments = dict[str, Any]
Taker = Callable[[Arguments, FilePlace, StatedFacts], None]


def _add_extract(args: Arguments, place: FilePlace, facts: StatedFacts) -> None:
    source = str(args.get("exttrailsource") or "")
    facts.add_group(AddedGroup(str(args["group_name"]), GroupKind.EXTRACT, place, trail(source) if source else ""))


def _add_replicat(args: Arguments, place: FilePlace, facts: StatedFacts) -> None:
    source = str(args.get("exttrail") or args.get("file") or "")
    facts.add_group(AddedGroup(str(args["group_name"]), GroupKind.REPLICAT, place, trail(source) if source else ""))


def _add_path(args: Arguments, place: FilePlace, facts: StatedFacts) -> None:
    name = str(args["path_name"])
    source, target = urlsplit(str(args.get("source", ""))), urlsplit(str(args.get("target", "")))
    read = parse_qs(source.query).get("trail", [source.netloc + source.path])[0]
    facts.add_group(AddedGroup(name, GroupKind.PATH, place, trail(read)))
    written = parse_qs(target.query).get("trail", [target.netloc + target.path])[0]
    facts.add_trail(Use(trail(written), place, name, GroupKind.PATH))


def _add_recvpath(args: Arguments, place: FilePlace, facts: StatedFacts) -> None:
    name, target = str(args["path_name"]), urlsplit(str(args.get("target", "")))
    facts.add_group(AddedGroup(name, GroupKind.RECVPATH, place, ""))
    written = parse_qs(target.query).get("trail", [target.netloc + target.path])[0]
    facts.add_trail(Use(trail(written), place, name, GroupKind.RECVPATH))


def _add_trail(args: Arguments, place: FilePlace, facts: StatedFacts) -> None:
    facts.add_trail(Use(trail(str(args["trail"])), place, str(args.get("extract") or ""), GroupKind.EXTRACT))


def _delete(kind: str) -> Taker:
    """Collect a deletion: a deleted group may be added again."""

    def take(args: Arguments, _: FilePlace, facts: StatedFacts) -> None:
        facts.delete_groups(kind, str(args.get("group_name") or args.get("path_name") or ""))

    return take


def _delete_trail(args: Arguments, _: FilePlace, facts: StatedFacts) -> None:
    facts.delete_trail(trail(str(args["trail"])))


def _start(kind: str) -> Taker:
    def take(args: Arguments, place: FilePlace, facts: StatedFacts) -> None:
        name = str(args.get("group_name") or args.get("path_name") or "")
        if name:
            facts.started.append(Use(name, place, kind=kind))

    return take


def _add_alias(args: Arguments, place: FilePlace, facts: StatedFacts) -> None:
    facts.aliases.append(Use(str(args.get("alias") or args.get("user") or ""), place))


def _login(args: Arguments, place: FilePlace, facts: StatedFacts) -> None:
    name = args.get("useridalias") or args.get("alias")
    if name:
        facts.logins.append(Use(str(name), place))


_TAKERS: dict[str, Taker] = {
    "ADD EXTRACT": _add_extract,
    "ADD REPLICAT": _add_replicat,
    "ADD REPLICAT EXTFILE": _add_replicat,
    "ADD DISTPATH": _add_path,
    "ADD RECVPATH": _add_recvpath,
    "ADD EXTTRAIL": _add_trail,
    "ADD RMTTRAIL": _add_trail,
    "DELETE EXTRACT": _delete(GroupKind.EXTRACT),
    "DELETE REPLICAT": _delete(GroupKind.REPLICAT),
    "DELETE DISTPATH": _delete(GroupKind.PATH),
    "DELETE RECVPATH": _delete(GroupKind.RECVPATH),
    "DELETE EXTTRAIL": _delete_trail,
    "DELETE RMTTRAIL": _delete_trail,
    "START EXTRACT": _start(GroupKind.EXTRACT),
    "START REPLICAT": _start(GroupKind.REPLICAT),
    "START DISTPATH": _start(GroupKind.PATH),
    "START RECVPATH": _start(GroupKind.RECVPATH),
    "START ER": _start(""),
    "RESTART EXTRACT": _start(GroupKind.EXTRACT),
    "RESTART REPLICAT": _start(GroupKind.REPLICAT),
    "RESTART ER": _start(""),
    "START": _start(""),
    "ALTER CREDENTIALSTORE ADD USER": _add_alias,
    "DBLOGIN USERIDALIAS": _login,
}
