"""Statements to (action, arguments): the manual's pages decide what is understood."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from ggshell.errors import StatementError
from ggshell.syntax import gaps, lines, pages, rules
from ggshell.syntax.parsed import Parsed

if TYPE_CHECKING:
    from ggshell.syntax.attempt import Span
    from ggshell.syntax.lines import LineText
    from ggshell.syntax.tree import Line

COMMANDS = "commands"
PARAMETERS = "parameters"
LOGDUMP = "logdump"
_CALLED = {COMMANDS: "command", PARAMETERS: "parameter", LOGDUMP: "Logdump command"}
_TOKEN = re.compile(r"[^\s,;()=!\"']+")


def parse(text: str, kind: str = COMMANDS) -> Parsed:
    """Understand one statement.  Raises StatementError with the column, what could stand there, and the page to read."""
    words = text.strip().rstrip(";").split()
    if not words:
        raise StatementError("an empty statement", source=text)
    literal = _literal(words, kind)
    return literal if literal is not None else _parse(text, kind)


def _literal(words: list[str], kind: str) -> Parsed | None:
    """A statement of fixed words alone: no parser is needed, and none is loaded."""
    stem = "_".join(words).lower()
    path = pages.index(kind).get(stem)
    if path is None:
        return None
    wanted = " ".join(words).upper()
    if wanted not in pages.read(path).syntax:
        return None
    return Parsed(wanted, {}, path.stem, gaps.notes_of(path, wanted, {}, {}))


@cache
def lines_of(verb: str, kind: str) -> tuple[Line, ...]:
    """The syntax lines that begin with a verb (any spelling that a page declares)."""
    return tuple(lines.compiled(line) for line in lines.texts_of(verb.upper(), kind))


def verbs(kind: str) -> list[str]:
    """Every verb of a kind, in the manual's order."""
    stems = pages.index(kind)
    return list(dict.fromkeys((stem.split("_")[0] if kind == COMMANDS else stem).upper() for stem in stems))


def words_of(text: str) -> list[str]:
    """The words of a statement in upper case, without marks and quotes."""
    return [word.upper() for word in _TOKEN.findall(text)]


def candidates(words: list[str], kind: str) -> Iterator[tuple[LineText, int]]:
    """The lines of the verb, each with how many of its leading words stand there; no name is a word that follows the verb."""
    taken = len(words) > 1 and words[1] in lines.second_words(words[0], kind)
    for line in lines.texts_of(words[0], kind):
        if not (taken and line.bare):
            yield line, line.depth(words)


def _parse(text: str, kind: str) -> Parsed:
    from ggshell.syntax.attempt import Attempt
    from ggshell.syntax.refusal import unknown

    words = words_of(text)
    start = Attempt(text)
    first = start.skip(0)
    verb, end = start.token(first)
    if not verb or not lines.texts_of(verb, kind):
        raise unknown(text, text[first:end], first, _CALLED.get(kind, kind), verbs(kind))
    whole = frozenset(words)
    possible = list(candidates(words, kind))
    for line, depth in possible:
        if depth == len(line.leading) and all(forms & whole for forms in line.later):
            run = Attempt(text)
            found = lines.parser_of(line).parse(run)
            if found is not None:
                args, spans = {pair.name: pair.value for pair in found}, {pair.name: pair.spans for pair in found}
                return _meant(text, kind, line, args, spans)
    raise _refused(text, kind, words, possible)


def _meant(text: str, kind: str, line: LineText, args: dict[str, Any], spans: Mapping[str, tuple[Span, ...]]) -> Parsed:
    """A statement that is one, held against its page's rules."""
    path = pages.index(kind)[line.page]
    rules.check(path, args, text, spans)
    if kind == PARAMETERS and "(" in text:
        from ggshell.syntax.clauses import check_clauses

        check_clauses(args, spans, text)
    key = lines.compiled(line).key
    return Parsed(key, args, line.page, gaps.notes_of(path, key, args, spans), spans)


def _refused(text: str, kind: str, words: list[str], possible: list[tuple[LineText, int]]) -> StatementError:
    """The error of the line that understood most."""
    from ggshell.syntax.attempt import Attempt
    from ggshell.syntax.refusal import Failure, refused
    from ggshell.syntax.tree import Word

    starts = [match.start() for match in _TOKEN.finditer(text)] + [len(text)]
    failures: list[Failure] = []
    for line, depth in possible:
        if depth < len(line.leading):
            word = line.leading[depth]
            failures.append(Failure(starts[min(depth, len(words))], (Word(word, len(word)),), (), line.page))
            continue
        run = Attempt(text)
        lines.parser_of(line).parse(run)
        failures.append(Failure(run.far, run.wanted(), run.reasons, line.page))
    return refused(text, _misspelt(words, starts, failures, kind) or failures)


def _misspelt(words: list[str], starts: list[int], failures: list[Any], kind: str) -> list[Any]:
    """Where the second word is nearly one of the manual's, it is the fault, though it could be a name; with a digit it is."""
    from ggshell.syntax.suggest import did_you_mean

    seconds = lines.second_words(words[0], kind)
    if len(words) < 3 or words[1] in seconds or not words[1].isalpha() or not did_you_mean(words[1], seconds):
        return []
    return [failure for failure in failures if failure.place == starts[1]]
