"""Statements to actions and arguments, as the manual's pages define them, and the error of a statement that does not fit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from ggshell.errors import StatementError
from ggshell.language import pages
from ggshell.language.redaction import holds_password, may_hold_secret, starred, without_secrets
from ggshell.language.suggest import did_you_mean
from ggshell.language.unsupported import UnsupportedPart, idle_arguments, lacks, notes_of
from ggshell.language.values import check_values, slot_type, takes_any_text

if TYPE_CHECKING:
    from ggshell.language.notation import Leaf
    from ggshell.language.pages import SyntaxLine
    from ggshell.language.statement import Span


COMMANDS = "commands"
PARAMETERS = "parameters"
LOGDUMP = "logdump"
_CALLED = {COMMANDS: "command", PARAMETERS: "parameter", LOGDUMP: "Logdump command"}
_TOKEN = re.compile(r"[^\s,;()=!\"']+")
_FOUND = re.compile(r"[^\s,;()=]+|\S")
_NAME = ""
_MOST = 8
"""How many of the possible words an error lists."""
_NOTHING: Mapping[str, tuple[Span, ...]] = MappingProxyType({})


class Parsed(NamedTuple):
    """The meaning of a statement: the key of the action, its arguments by name, and its page.

    ``notes``: the parts that are understood but not supported; ``spans``: the positions of each argument's values in the
    text.
    """

    key: str
    args: dict[str, Any]
    page: str
    notes: tuple[UnsupportedPart, ...] = ()
    spans: Mapping[str, tuple[Span, ...]] = _NOTHING


class Failure(NamedTuple):
    """How far a line matched, and what it expected there."""

    place: int
    wanted: Sequence[Leaf]
    reasons: Sequence[str]
    page: str


def parse(text: str, kind: str = COMMANDS, *, suspect: bool = False) -> Parsed:
    """Parse one statement.

    ``suspect``: the statement before ends where its password would stand, so this text can be that password.

    Raises StatementError with the column, what was expected there, and the page to read. The error contains no secret of the
    statement.
    """
    try:
        parsed = _understood(text, kind)
        if kind == COMMANDS:
            _refuse_passwords(text, parsed)
    except StatementError as error:
        if suspect or may_hold_secret(text):
            error.message = without_secrets(error.message, text, kind, suspect=suspect)
            error.hint = without_secrets(error.hint, text, kind, suspect=suspect)
            error.source = starred(error.source or text, kind, suspect=suspect)
            error.args = (error.message,)
        raise
    return parsed


def shape(text: str, kind: str = COMMANDS) -> Mapping[str, tuple[Span, ...]]:
    """The positions of a statement's values, whether or not the rules of its page allow the values.

    Raises StatementError if the statement does not fit any line of the manual. The error can quote the statement's secrets.
    """
    words = text.strip().rstrip(";").split()
    if not words:
        raise StatementError("an empty statement", source=text)
    if not pages.syntax_lines(words_of(text)[0] if words_of(text) else "", kind):
        raise StatementError(
            "unknown", source=text, column=len(text) - len(text.lstrip()) + 1
        )  # this message is never shown
    return {} if _literal(words, kind) is not None else _fitting(text, kind)[2]


def _understood(text: str, kind: str) -> Parsed:
    """Parse a statement. Errors can quote its secrets."""
    words = text.strip().rstrip(";").split()
    if not words:
        raise StatementError("an empty statement", source=text)
    literal = _literal(words, kind)
    if literal is not None:
        return literal
    line, args, spans = _fitting(text, kind)
    return _meant(text, kind, line, args, spans)


def _refuse_passwords(text: str, parsed: Parsed) -> None:
    """Raise StatementError for a URL with a password in a name, a file or a text that is stored and shown later."""
    if "://" not in text:
        return
    for name, spans in parsed.spans.items():
        for first, end in spans:
            if not takes_any_text(name) and holds_password(text[first:end]):
                raise StatementError(
                    f"a URL with a login is not allowed for {name.rstrip('_')}",
                    column=first + 1,
                    source=text,
                    hint="add the login to the credential store, and use its alias",
                    page=parsed.page,
                )


def _literal(words: list[str], kind: str) -> Parsed | None:
    """Parse a statement that consists of fixed words only. This needs no parser, so none is loaded."""
    stem = "_".join(words).lower()
    path = pages.index(kind).get(stem)
    if path is None:
        return None
    wanted = " ".join(words).upper()
    if wanted not in pages.read(path).syntax:
        return None
    return Parsed(wanted, {}, path.stem, notes_of(path, wanted, {}, {}))


def verbs(kind: str) -> list[str]:
    """Every verb of a kind, in the manual's order."""
    stems = pages.index(kind)
    return list(dict.fromkeys((stem.split("_")[0] if kind == COMMANDS else stem).upper() for stem in stems))


def words_of(text: str) -> list[str]:
    """The words of a statement in upper case, without punctuation and quotes."""
    return [word.upper() for word in _TOKEN.findall(text)]


def candidates(words: list[str], kind: str, *, whole: bool = True) -> tuple[tuple[SyntaxLine, int], ...]:
    """The lines of the verb, each with the number of its leading words that the statement has.

    A word that can follow the verb is not read as a name. An abbreviation (EXT, REPL) is a keyword only if a name follows
    it. In a statement that is not ``whole`` yet it can be either.
    """
    return _candidates(_leading(words, kind), kind, whole)


def _leading(words: list[str], kind: str) -> tuple[str, ...]:
    """The words that decide which lines a statement can fit. ``_NAME`` stands for each one that is not a keyword there."""
    known, most = pages.leading_vocabulary(words[0], kind)
    return (words[0], *(word if word in known else _NAME for word in words[1:most]))


@lru_cache(maxsize=1024)
def _complete(words: tuple[str, ...], kind: str) -> tuple[SyntaxLine, ...]:
    """The lines all of whose leading words a statement has."""
    return tuple(line for line, depth in _candidates(words, kind, whole=True) if depth == len(line.leading))


@lru_cache(maxsize=1024)
def _candidates(words: tuple[str, ...], kind: str, whole: bool) -> tuple[tuple[SyntaxLine, int], ...]:
    """The same as ``candidates`` for the leading words."""
    second = words[1] if len(words) > 1 else ""
    taken = second in pages.second_words(words[0], kind)
    named = taken and len(words) > 2 and words[2] not in pages.later_words(words[0], kind)
    name = taken and not named and pages.is_abbreviation(words[0], second, kind)
    found = [line for line in pages.syntax_lines(words[0], kind) if name or not (line.bare and taken)]
    if whole and name:
        found.sort(key=lambda line: not line.bare)
    return tuple((line, line.depth(words)) for line in found)


def _fitting(text: str, kind: str) -> tuple[SyntaxLine, dict[str, Any], Mapping[str, tuple[Span, ...]]]:
    """The syntax line that a statement fits, with the values and their positions."""
    from ggshell.language.parser import Attempt

    words = words_of(text)
    start = Attempt(text)
    first = start.skip(0)
    verb, end = start.token(first)
    if not verb or not pages.syntax_lines(verb, kind):
        raise unknown(text, text[first:end], first, _CALLED.get(kind, kind), verbs(kind))
    whole = frozenset(words)
    for line in _complete(_leading(words, kind), kind):
        if not any(map(whole.isdisjoint, line.later)):
            run = Attempt(text)
            found = pages.parser_of(line).parse(run)
            if found is not None:
                args, spans = {pair.name: pair.value for pair in found}, {pair.name: pair.spans for pair in found}
                return line, args, spans
    raise _refused(text, kind, words, candidates(words, kind))


def _meant(
    text: str, kind: str, line: SyntaxLine, args: dict[str, Any], spans: Mapping[str, tuple[Span, ...]]
) -> Parsed:
    """Check a statement that fits a line against the rules of its page, and return its meaning."""
    path = pages.index(kind)[line.page]
    check_values(path, args, text, spans)
    if kind == PARAMETERS and "(" in text:
        from ggshell.language.clauses import check_clauses

        check_clauses(args, spans, text)
    key = pages.compiled(line).key
    idle = idle_arguments(path)
    args = {name: value for name, value in args.items() if name not in idle} if idle else args
    return Parsed(key, args, line.page, notes_of(path, key, args, spans), spans)


def _refused(text: str, kind: str, words: list[str], possible: Sequence[tuple[SyntaxLine, int]]) -> StatementError:
    """The error of the line that matched furthest."""
    from ggshell.language.notation import Word
    from ggshell.language.parser import Attempt

    starts = [match.start() for match in _TOKEN.finditer(text)] + [len(text)]
    failures: list[Failure] = []
    for line, depth in possible:
        if depth < len(line.leading):
            word = line.leading[depth]
            failures.append(Failure(starts[min(depth, len(words))], (Word(word, len(word)),), (), line.page))
            continue
        run = Attempt(text)
        pages.parser_of(line).parse(run)
        failures.append(Failure(run.far, run.wanted(), run.reasons, line.page))
    return refused(text, _misspelt(words, starts, failures, kind) or failures, kind)


def _misspelt(words: list[str], starts: list[int], failures: list[Any], kind: str) -> list[Any]:
    """The failures at the second word, if it looks like a misspelt keyword; else none.

    The word could be a name, but the keyword is more likely. A word with a digit is taken as a name.
    """
    seconds = pages.second_words(words[0], kind)
    if len(words) < 3 or words[1] in seconds or not words[1].isalpha() or not did_you_mean(words[1], seconds):
        return []
    return [failure for failure in failures if failure.place == starts[1]]


def refused(text: str, failures: Sequence[Failure], kind: str) -> StatementError:
    """The error of the lines that matched furthest. It does not offer what is not supported."""
    from ggshell.language.notation import Slot

    place = max(failure.place for failure in failures)
    best = [failure for failure in failures if failure.place == place]
    found = _FOUND.match(text, place)
    leaves = list(dict.fromkeys(_offered(best, kind)) or dict.fromkeys(leaf for each in best for leaf in each.wanted))
    words = [leaf.text for leaf in leaves if not isinstance(leaf, Slot)]
    reason = next((reason for failure in best for reason in failure.reasons), "")
    what = reason or (f"unexpected {found[0]}" if found else "the statement is incomplete")
    could = (
        "" if reason else _listed([*words, *(slot_type(leaf.name).called for leaf in leaves if isinstance(leaf, Slot))])
    )
    return StatementError(
        f"{what}; expected {could}" if could else what,
        column=place + 1,
        source=text,
        hint=did_you_mean(found[0].upper(), words) if found else "",
        page=best[0].page,
    )


def _offered(failures: Sequence[Failure], kind: str) -> Iterator[Leaf]:
    """What was expected, without unsupported keywords."""
    from ggshell.language.notation import Slot

    for failure in failures:
        for leaf in failure.wanted:
            if isinstance(leaf, Slot) or not lacks(kind, failure.page, leaf.text):
                yield leaf


def _listed(names: Iterable[str]) -> str:
    unique = list(dict.fromkeys(names))
    return ", ".join(unique[:_MOST]) + (", …" if len(unique) > _MOST else "")


def unknown(text: str, verb: str, place: int, what: str, known: Iterable[str]) -> StatementError:
    """The error of a statement that does not begin with a verb of the manual."""
    hint = did_you_mean(verb.upper(), known)
    shown = verb or text[place : place + 1]
    return StatementError(
        f"unknown {what} {shown}", column=place + 1, source=text, hint=hint or "use HELP to list them"
    )
