"""Statements to (action, arguments): the manual's pages decide what is understood."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from ggshell.errors import StatementError
from ggshell.syntax import pages, rules

if TYPE_CHECKING:
    from ggshell.syntax.parser import LineParser
    from ggshell.syntax.tree import Line

COMMANDS = "commands"
PARAMETERS = "parameters"


class Parsed(NamedTuple):
    """What a statement means: the action's key, its arguments by name, the page it stands on."""

    key: str
    args: dict[str, Any]
    page: str


class _Failure(NamedTuple):
    place: int
    message: str
    line: Line


def parse(text: str, kind: str = COMMANDS) -> Parsed:
    """Understand one statement.  Raises StatementError with the column, what could stand there, and the page to read."""
    words = text.strip().rstrip(";").split()
    if not words:
        raise StatementError("an empty statement", source=text)
    literal = _literal(words, kind)
    return literal if literal is not None else _parse(text, words[0], kind)


def _literal(words: list[str], kind: str) -> Parsed | None:
    """A statement of fixed words alone: no parser is needed, and none is loaded."""
    path = pages.index(kind).get("_".join(words).lower())
    if path is None:
        return None
    wanted = " ".join(words).upper()
    return Parsed(wanted, {}, path.stem) if wanted in pages.read(path).syntax else None


@cache
def lines_of(verb: str, kind: str) -> tuple[Line, ...]:
    """The syntax lines that begin with a verb (any spelling that a page declares)."""
    from ggshell.syntax.notation import compile_line

    found = [compile_line(text, page.path.stem) for page in pages.of_verb(kind, verb) for text in page.syntax]
    # A verb with a bare placeholder (INFO group_name) comes last: a keyword beats a value.
    return tuple(sorted(found, key=lambda line: len(line.key.split()) == 1 or line.page == "send_group"))


@cache
def _parser(line: Line) -> LineParser:
    from ggshell.syntax.parser import LineParser

    return LineParser(line)


def _parse(text: str, verb: str, kind: str) -> Parsed:
    import pyparsing as pp

    verb = re.split(r"[^A-Za-z0-9_@!#]", verb)[0]
    candidates = lines_of(verb, kind)
    if not candidates:
        raise _unknown(text, verb, kind)
    failures: list[_Failure] = []
    for line in candidates:
        try:
            args = _parser(line).parse(text)
        except pp.ParseBaseException as error:
            failures.append(_Failure(error.loc, error.msg, line))
            continue
        rules.check(pages.index(kind)[line.page], args, text)
        return Parsed(line.key, args, line.page)
    raise _refused(text, failures)


def _unknown(text: str, verb: str, kind: str) -> StatementError:
    from ggshell.syntax.suggest import did_you_mean

    verbs = (
        {stem.split("_")[0].upper() for stem in pages.index(kind)}
        if kind == COMMANDS
        else {stem.upper() for stem in pages.index(kind)}
    )
    what = "command" if kind == COMMANDS else "parameter"
    column = len(text) - len(text.lstrip()) + 1
    hint = did_you_mean(verb.upper(), verbs)
    return StatementError(f"unknown {what} {verb}", column=column, source=text, hint=hint or "HELP lists what there is")


def _refused(text: str, failures: list[_Failure]) -> StatementError:
    """The error of the line that understood most."""
    from ggshell.syntax.suggest import did_you_mean
    from ggshell.syntax.tree import keywords

    furthest = max(failure.place for failure in failures)
    best = [failure for failure in failures if failure.place == furthest]
    place = furthest
    while place < len(text) and text[place] in " \t\r\n,":
        place += 1
    found = re.match(r"[^\s,;]+", text[place:])
    said = {word.text for failure in best for word in keywords(failure.line.body)}
    expected = sorted({failure.message.removeprefix("Expected ") for failure in best})
    words = sorted(word for word in said if not re.search(rf"\b{re.escape(word)}\b", text, re.IGNORECASE))
    hint = did_you_mean(found[0].upper(), words) if found else ""
    what = f"unexpected {found[0]}" if found else "the statement ends too early"
    if any(message.endswith("stands twice") for message in expected):
        what = next(message for message in expected if message.endswith("stands twice"))
    could = ", ".join(words[:8]) or ", ".join(expected[:4])
    return StatementError(
        f"{what}; expected {could}" if could else what,
        column=place + 1,
        source=text,
        hint=hint,
        page=best[0].line.page,
    )
