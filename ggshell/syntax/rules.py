"""Ranges and rules between options: the ``Values`` section of a page, read and held against a statement.

The notation says what may stand where; what a value may be, and which options exclude or need each other, is said here:
``BRINTERVAL: 20M to 96H``, ``group_name: 1 to 8 characters``, ``BRDIR: not containing temp, tmp``, ``number: at least 1``,
``CHECKPOINTSECS: multiple of 5``, ``BROFF: not with BRINTERVAL``, ``EXTRBA: only with EXTSEQNO``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from ggshell.errors import StatementError
from ggshell.syntax import pages

CODE = "GGS-00104"
_TIME = {"S": 1, "SEC": 1, "SECS": 1, "SECOND": 1, "SECONDS": 1, "M": 60, "MIN": 60, "MINUTE": 60, "MINUTES": 60}
_TIME |= {"H": 3600, "HOUR": 3600, "HOURS": 3600, "D": 86400, "DAY": 86400, "DAYS": 86400}
_SIZE = {"B": 1, "K": 1 << 10, "KB": 1 << 10, "M": 1 << 20, "MB": 1 << 20, "G": 1 << 30, "GB": 1 << 30, "T": 1 << 40}
_AMOUNT = re.compile(r"(-?\d+(?:\.\d+)?)\s*([A-Za-z]*)")
Spans = Mapping[str, tuple[tuple[int, int], ...]]
_NOWHERE: Spans = MappingProxyType({})
Test = Callable[[Any, Mapping[str, Any]], str]
"""What is wrong with a value among a statement's arguments; empty when nothing is."""


class Rule(NamedTuple):
    """One rule: whose value it is about (a keyword or a placeholder), and the test."""

    subject: str
    argument: str
    test: Test


@cache
def rules_of(path: Path) -> tuple[Rule, ...]:
    """The rules of a page.  Raises StatementError for one that is none."""
    found = []
    for line in pages.section(path, "Values"):
        subject, colon, text = line.partition(":")
        test = _test(text.strip()) if colon else None
        if test is None:
            raise StatementError(f"{path.name}: {line} is no rule of values", where=str(path))
        found.append(Rule(subject.strip(), pages.argument(subject), test))
    return tuple(found)


def check(path: Path, args: Mapping[str, Any], text: str, spans: Spans = _NOWHERE) -> None:
    """Hold a statement's arguments against its page's rules.  Raises StatementError at the first value that breaks one."""
    for rule in rules_of(path):
        if rule.argument not in args or args[rule.argument] is None:
            continue
        wrong = rule.test(args[rule.argument], args)
        if wrong:
            name = rule.subject if rule.subject.isupper() else rule.subject.replace("_", " ")
            column = spans[rule.argument][0][0] + 1 if rule.argument in spans else 1
            raise StatementError(f"{name}: {wrong}", code=CODE, column=column, source=text, page=path.stem)


def _test(text: str) -> Test | None:
    for pattern, make in _FORMS:
        match = re.fullmatch(pattern, text)
        if match:
            return make(*match.groups())
    return None


def _characters(low: str, high: str) -> Test:
    def test(value: Any, _: Mapping[str, Any]) -> str:
        size = len(str(value))
        return "" if int(low) <= size <= int(high) else f"{size} characters, {low} to {high} are allowed"

    return test


def _between(low: str, high: str) -> Test:
    def test(value: Any, _: Mapping[str, Any]) -> str:
        units = _units(low, high)
        wrong = any(
            not amount(low, units) <= each <= amount(high, units) for each in _amounts(value, units) if each is not None
        )
        return f"{_shown(value)} is not within {low} to {high}" if wrong else ""

    return test


def _at_least(low: str) -> Test:
    def test(value: Any, _: Mapping[str, Any]) -> str:
        units = _units(low)
        wrong = any(each < amount(low, units) for each in _amounts(value, units))
        return f"{_shown(value)} is less than {low}" if wrong else ""

    return test


def _at_most(high: str) -> Test:
    def test(value: Any, _: Mapping[str, Any]) -> str:
        units = _units(high)
        wrong = any(each > amount(high, units) for each in _amounts(value, units))
        return f"{_shown(value)} is more than {high}" if wrong else ""

    return test


def _multiple(step: str) -> Test:
    def test(value: Any, _: Mapping[str, Any]) -> str:
        wrong = any(each % int(step) for each in _amounts(value, {}))
        return f"{_shown(value)} is no multiple of {step}" if wrong else ""

    return test


def _not_containing(words: str) -> Test:
    forbidden = [word.strip() for word in words.split(",")]

    def test(value: Any, _: Mapping[str, Any]) -> str:
        found = next((word for word in forbidden if word.lower() in str(value).lower()), None)
        return f"{value} contains {found}, which is not allowed" if found else ""

    return test


def _not_with(words: str) -> Test:
    others = [word.strip() for word in words.split(",")]

    def test(_: Any, args: Mapping[str, Any]) -> str:
        found = next((word for word in others if args.get(pages.argument(word))), None)
        return f"excludes {found}" if found else ""

    return test


def _only_with(words: str) -> Test:
    others = [word.strip() for word in words.split(",")]

    def test(_: Any, args: Mapping[str, Any]) -> str:
        given = any(args.get(pages.argument(word)) is not None for word in others)
        return "" if given else f"needs {' or '.join(others)}"

    return test


_FORMS: tuple[tuple[str, Callable[..., Test]], ...] = (
    (r"(\d+) to (\d+) characters", _characters),
    (r"(-?[\d.]+\s*[A-Za-z]*) to (-?[\d.]+\s*[A-Za-z]*)", _between),
    (r"at least (-?[\d.]+\s*[A-Za-z]*)", _at_least),
    (r"at most (-?[\d.]+\s*[A-Za-z]*)", _at_most),
    (r"multiple of (\d+)", _multiple),
    (r"not containing (.+)", _not_containing),
    (r"not with (.+)", _not_with),
    (r"only with (.+)", _only_with),
)


def _units(*bounds: str) -> Mapping[str, int]:
    """Sizes or times, by the bounds' own units: an ``M`` beside an ``H`` is minutes."""
    found = {match[2].upper() for bound in bounds if (match := _AMOUNT.fullmatch(bound.strip())) and match[2]}
    return _SIZE if found and found <= _SIZE.keys() else _TIME if found else {}


def amount(text: str, units: Mapping[str, int]) -> float:
    """A number with its unit.  Raises ValueError when it is none."""
    match = _AMOUNT.fullmatch(str(text).strip())
    if match is None:
        raise ValueError(text)
    return float(match[1]) * units.get(match[2].upper(), 1)


def _amounts(value: Any, units: Mapping[str, int]) -> list[float]:
    """The numbers of a value: itself, or a number with the unit that follows it; none for words such as NOW."""
    if isinstance(value, tuple):
        if len(value) == 2 and isinstance(value[0], int) and isinstance(value[1], str):
            return [amount(f"{value[0]}{value[1]}", units)]
        return [number for each in value for number in _amounts(each, units)]
    try:
        return [amount(str(value), units)]
    except ValueError:
        return []


def _shown(value: Any) -> str:
    return "".join(map(str, value)) if isinstance(value, tuple) else str(value)
