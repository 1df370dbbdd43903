"""The values of statements: what each placeholder takes, and the ranges and rules of the pages.

One table has the placeholders by name. A name that is not in the table takes any word. A value has a type of its own (``Size``,
``Interval``, ``Timestamp`` …), read by the one function that reads such quantities.

The section ``Values`` of a page defines which values are valid, and which options exclude or require each other:
``BRINTERVAL: 20M to 96H``, ``group_name: 1 to 8 characters``, ``BRDIR: not containing temp, tmp``, ``number: at least 1``,
``CHECKPOINTSECS: multiple of 5``, ``BROFF: not with BRINTERVAL``, ``EXTRBA: only with EXTSEQNO``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from ggshell.durations import Interval, read_hours, read_interval
from ggshell.errors import StatementError
from ggshell.language import pages
from ggshell.object_stores import STORE_SCHEMES
from ggshell.quantities import Size, read_size, read_time_of_day, read_timestamp, read_weekday
from ggshell.types import Csn

VALUE_CODE = "GGS-00104"
SHOWN = "{value}"
"""Placeholder for the value as it was typed, in the message of a test."""
Spans = Mapping[str, tuple[tuple[int, int], ...]]
_NOWHERE: Spans = MappingProxyType({})
Test = Callable[[Any, Mapping[str, Any]], str]
"""Checks a value, given the statement's arguments, and returns what is wrong with it (empty if valid)."""
_PART = re.compile(r"[^()'\",;]+|'[^']*'|\"[^\"]*\"|.", re.DOTALL)


def balanced_end(text: str, place: int) -> int:
    """The end of the parentheses that open at a position; quoted text is ignored.

    -1 if none open there or they never close.
    """
    if text[place : place + 1] != "(":
        return -1
    depth = 0
    for part in _PART.finditer(text, place):
        if part[0] == "(":
            depth += 1
        elif part[0] == ")":
            depth -= 1
            if not depth:
                return part.end()
    return -1


def unclosed(text: str, place: int) -> str:
    """Why the text at a position is not a complete body: a quote or the parenthesis is not closed.

    Empty if none opens there.
    """
    if text[place : place + 1] != "(":
        return ""
    for part in _PART.finditer(text, place):
        if part[0] in "'\"":
            return "a quote in the parentheses is not closed"
    return "the parenthesis is not closed"


def split_list(text: str) -> list[str]:
    """Split a list at its commas and strip the parts. Commas within quotes and parentheses do not split."""
    parts, depth, first = [], 0, 0
    for part in _PART.finditer(text):
        if part[0] == "(":
            depth += 1
        elif part[0] == ")":
            depth -= 1
        elif part[0] == "," and depth <= 0:
            parts.append(text[first : part.start()].strip())
            first = part.end()
    return [*parts, text[first:].strip()]


_QUOTED = r"\"[^\"\n]*\"|'[^'\n]*'"
_PLAIN = r"(?!!(?:[\s;]|$))[^\s,;()]+"
PARENTHESISED, EXPRESSION = "()", "@()"
_HEAD = re.compile(r"@?\w*\s*(?=\()")


class SlotType(NamedTuple):
    """A pattern, the conversion of its text to a value, and its name in messages.

    ``()`` stands for balanced parentheses. ``@()`` stands for the same with an optional function name before it, or for a
    word.
    """

    pattern: str
    convert: Callable[[str], Any]
    called: str

    def end(self, text: str, place: int) -> int:
        """The end of a value that begins at a position, or -1 if there is none."""
        if self.pattern == PARENTHESISED:
            return balanced_end(text, place)
        if self.pattern == EXPRESSION:
            head = _HEAD.match(text, place)
            return balanced_end(text, head.end()) if head else WORD.end(text, place)
        match = _compiled(self.pattern).match(text, place)
        return match.end() if match and match.end() > place else -1

    def broken(self, text: str, place: int) -> str:
        """What is wrong with a value that begins at a position. Empty if nothing is left open there."""
        return unclosed(text, place) if self.pattern == PARENTHESISED else _open_quote(text, place)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


def _open_quote(text: str, place: int) -> str:
    quote = text[place : place + 1]
    return "the quote is not closed" if quote in ("'", '"') and text.find(quote, place + 1) < 0 else ""


def unquoted(text: str) -> str:
    """Text without the quotes around it."""
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    return text


def _names(text: str) -> tuple[str, ...]:
    return tuple(unquoted(part) for part in split_list(text[1:-1]) if part)


def _csn(text: str) -> str:
    """A CSN as it was typed. Raises ValueError if it is not valid."""
    plain = unquoted(text)
    try:
        Csn.parse(plain)
    except ValueError:
        raise ValueError(
            f"{plain} is not a valid CSN: for example 0/50056B8 for PostgreSQL, 000012:000000000000121 for MariaDB, or a"
            " number for Oracle"
        ) from None
    return plain


def _lsn(text: str) -> str:
    """An LSN as it was typed, without ``0x``. Raises ValueError if it is not valid."""
    try:
        Csn.parse(text.removeprefix("0x"))
    except ValueError:
        raise ValueError(f"{text} is not a valid log position: for example 0/50056B8") from None
    return text.removeprefix("0x")


def _share(text: str) -> Decimal:
    value = Decimal(text.rstrip("% "))
    if value > 100:
        raise ValueError(f"{text} is not a percentage from 0 to 100")
    return value


def _seconds(text: str) -> Decimal:
    value = Decimal(text.rstrip("sS "))
    if value > 86_400:
        raise ValueError(f"{text} is not a number of seconds from 0 to 86400")
    return value


def _sql_text(text: str) -> str:
    """Text without the quotes around it; doubled quotes within it become one."""
    return text[1:-1].replace(text[0] * 2, text[0])


def _replaced_text(text: str) -> str:
    """A text in quotes, in which doubled quotes stand for one, or a word without quotes."""
    return _sql_text(text) if text[0] in "\"'" else text


def _object_name(text: str) -> str:
    """A name whose parts may be quoted, or such a name with quotes around all of it."""
    return text[1:-1] if _compiled(_QUOTED).fullmatch(text) else text


def _trail(text: str) -> str:
    """A trail's name. Raises ValueError for a login or a URL; the message does not repeat the text."""
    plain = unquoted(text)
    if "://" in plain or ("@" in plain and plain[0] not in "./\\~"):
        raise ValueError("a trail name cannot contain :// or @ (write ./ before a folder with @)")
    return plain


def _trail_location(text: str) -> str:
    """A trail's name, or its location in an object store. Raises ValueError as ``_trail``."""
    plain = unquoted(text)
    return plain if plain.startswith(tuple(f"{scheme}://" for scheme in STORE_SCHEMES)) else _trail(text)


WORD = SlotType(f"{_QUOTED}|{_PLAIN}", unquoted, "a word")
NUMBER = SlotType(r"\d{1,40}(?![.\d])", int, "a number")
SIGNED = SlotType(r"[-+]?\d{1,40}(?![.\d])", int, "a number")
GROUP = SlotType(r"[A-Za-z0-9_*?][A-Za-z0-9_*?-]*", str.upper, "a group name")
TABLE_PART = r"(?:\"(?:[^\"\n]|\"\")+\"|[^\s,;().!\"']+)"
TABLE = SlotType(rf"{TABLE_PART}(?:\.{TABLE_PART}){{0,2}}", str, "a table")
NAME = SlotType(rf"{_QUOTED}|[^\s,;().!\"']+", unquoted, "a name")
BODY = SlotType(PARENTHESISED, str, "a list in parentheses")
NAMES = SlotType(PARENTHESISED, _names, "names in parentheses")
REST = SlotType(r"[^\n]+", str.strip, "text")
QUOTED = SlotType(_QUOTED, unquoted, "a quoted text")
SQL = SlotType(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"", _sql_text, "SQL in quotes")
REPLACED_TEXT = SlotType(rf"{SQL.pattern}|{_PLAIN}", _replaced_text, "a text in quotes")
OBJECT_NAME = SlotType(rf"{TABLE_PART}(?:\.{TABLE_PART}){{1,2}}|{_QUOTED}|{_PLAIN}", _object_name, "a name")
FILE = SlotType(f"{_QUOTED}|{_PLAIN}", unquoted, "a file")
DIRECTORY = SlotType(f"{_QUOTED}|{_PLAIN}", unquoted, "a directory")
TRAIL = SlotType(f"{_QUOTED}|{_PLAIN}", _trail, "a trail")
TRAIL_LOCATION = SlotType(f"{_QUOTED}|{_PLAIN}", _trail_location, "a trail")
ALIAS = SlotType(f"{_QUOTED}|{_PLAIN}", unquoted, "an alias")
HOST = SlotType(rf"{_QUOTED}|\[[0-9A-Fa-f:]+\]|{_PLAIN}", unquoted, "a host")
# What begins like a quantity is read as one, so that a wrong unit or an hour 25 is reported as such.
SIZE = SlotType(r"\d[\w.]*(?:\s+(?:[KMG]B?|B)(?!\w))?", read_size, "a size (500MB, 1G)")
_UNITS = r"SECONDS?|SECS?|MINUTES?|MINS?|HOURS?|HRS?|DAYS?|WEEKS?|[SMHD]"
INTERVAL = SlotType(rf"\d[\w.]*(?:\s+(?:{_UNITS})(?!\w))?", read_interval, "an interval (20M, 4H, 600sec)")
HOURS = SlotType(INTERVAL.pattern, read_hours, "an interval (20M, 4H; a bare number is hours)")
PERCENT = SlotType(r"\d{1,3}(?:\.\d+)?\s*%?(?![\w.])", str, "a percentage")
DECIMAL = SlotType(r"\d{1,20}(?:\.\d{1,20})?(?![\w.])", Decimal, "a number")
CLOCK = SlotType(r"\d[\w:.]*", read_time_of_day, "a time of day (hh:mi)")
DAY = SlotType(r"[^\s,;()]+", read_weekday, "a day of the week")
_DATE = r"\d{4}-\d\d?-\d\d?"
_CLOCK = r"\d\d?:\d\d(?::\d\d(?:\.\d{1,9})?)?"
WHEN = SlotType(rf"{_DATE}(?:(?:[ T:]|\s+){_CLOCK}Z?)?(?![\w:])", read_timestamp, "a time (yyyy-mm-dd hh:mi:ss)")
TIME = SlotType(rf"[\"']?{_DATE}(?:(?:[ T:]|\s+){_CLOCK}Z?)?[\"']?(?![\w:])", read_timestamp, WHEN.called)
_LOOSE_DATE, _LOOSE_CLOCK = r"(?:\d{4}|\d{2})[-/]\d\d?[-/]\d\d?", r"\d\d?(?::\d\d?(?::\d\d?(?:\.[\d.]{1,7})?)?)?Z?"
LOOSE_TIME = SlotType(
    rf"{_QUOTED}|(?:{_LOOSE_DATE}(?:(?:[T:]|\s+){_LOOSE_CLOCK})?|{_LOOSE_CLOCK})(?![\w:/-])", unquoted, WHEN.called
)
LSN = SlotType(
    r"(?:0x)?[0-9A-F]{1,8}/[0-9A-F]{1,8}(?!\w)|[0-9A-F]+(?::[0-9A-F]+){2}(?!\w)|\d+(?!\w)", _lsn, "a log position"
)
CSN = SlotType(rf"{_QUOTED}|[0-9A-F]{{1,8}}/[0-9A-F]{{1,8}}(?!\w)|[0-9A-F]+(?:[:.,-][0-9A-F]+)*(?!\w)", _csn, "a CSN")
SCN = SlotType(r"\d+(?:\.\d+)?(?!\w)", str, "an SCN")
TRANSACTION = SlotType(r"\w+(?:[.:/-]\w+)*", str, "a transaction ID")
SECRET = SlotType(rf"{_QUOTED}|[^\s,;]+", unquoted, "a password")
LOGIN = SlotType(rf"{_QUOTED}|[^\s,;]+", unquoted, "a user or connection")
MACRO = SlotType(r"[^\s\w;,()'\"]\w[\w$-]*", str, "a macro name (#name)")

SLOTS: dict[str, SlotType] = {
    "group_name": GROUP,
    "path_name": GROUP,
    "process_name": GROUP,
    "report": SlotType(
        r"[A-Za-z0-9_][A-Za-z0-9_-]*", str.upper, "a group name, optionally with the number of an older report"
    ),
    "number": NUMBER,
    "n": NUMBER,
    "megabytes": NUMBER,
    "begin_value": NUMBER,
    "end_value": NUMBER,
    "number_of_errors": NUMBER,
    "objective": SlotType(r"\d{1,9}(?:\.\d{1,9})?\s*%?(?![\w.])", _share, "a percentage"),
    "limit_in_seconds": SlotType(r"\d{1,9}(?:\.\d{1,9})?(?:\s*s)?(?![\w.])", _seconds, "a time in seconds"),
    "seconds": NUMBER,
    "signed": SIGNED,
    "percent": PERCENT,
    "bytes": NUMBER,
    "buffer_size": NUMBER,
    "centiseconds": NUMBER,
    "milliseconds": NUMBER,
    "minutes": NUMBER,
    "days": DECIMAL,
    "number_in_days": NUMBER,
    "number_in_seconds": DECIMAL,
    "clock": CLOCK,
    "day": DAY,
    "size": SIZE,
    "interval": INTERVAL,
    "hours": HOURS,
    "port": SlotType(r"\d+(?:\s*-\s*\d+)?(?![\w.])", str, "a port"),
    "host": HOST,
    "file": FILE,
    "directory": DIRECTORY,
    "trail": TRAIL,
    "trail_location": TRAIL_LOCATION,
    "alias": ALIAS,
    "domain": SlotType(f"{_QUOTED}|{_PLAIN}", unquoted, "a domain"),
    "table": TABLE,
    "source_table": TABLE,
    "target_table": TABLE,
    "checkpoint_table": TABLE,
    "sequence": TABLE,
    "schema": SlotType(rf"{TABLE_PART}(?:\.{TABLE_PART})?", str, "a schema"),
    "source_schema": SlotType(rf"{TABLE_PART}", str, "a schema"),
    "target_schema": SlotType(rf"{TABLE_PART}", str, "a schema"),
    "container": SlotType(TABLE_PART, unquoted, "a container"),
    "column": SlotType(TABLE_PART, str, "a column"),
    "columns": NAMES,
    "body": BODY,
    "expression": SlotType(EXPRESSION, str, "an expression"),
    "text": REST,
    "rest": REST,
    "command_text": REST,
    "quoted": QUOTED,
    "search_text": REPLACED_TEXT,
    "replacement": REPLACED_TEXT,
    "object_name": OBJECT_NAME,
    "sql": SQL,
    "when": WHEN,
    "until": WHEN,
    "time": TIME,
    "time_string": LOOSE_TIME,
    "csn": CSN,
    "lsn": LSN,
    "scn": SCN,
    "transaction_id": TRANSACTION,
    "password": SECRET,
    "userid": LOGIN,
    "macro_name": MACRO,
    "undocumented": SlotType(r"_[A-Za-z]\w*", str, "an option that begins with _"),
}


_ANY_TEXT = frozenset({"password", "userid", "text", "rest", "command_text", "sql", "body", "expression"})


def takes_any_text(name: str) -> bool:
    """Whether a placeholder is for a login, or for a text that is not stored as a name, such as program arguments or SQL."""
    return name in _ANY_TEXT


def slot_type(name: str) -> SlotType:
    """The type of a placeholder."""
    return SLOTS.get(name, WORD)


_REQUIRES = "requires "


class Rule(NamedTuple):
    """One rule: the keyword or placeholder whose value it checks, and the test."""

    subject: str
    argument: str
    test: Test


@cache
def rules_of(path: Path) -> tuple[Rule, ...]:
    """The rules of a page. Raises StatementError for a line that is not a valid rule."""
    found = []
    for line in pages.section(path, "Values"):
        subject, colon, text = line.partition(":")
        test = _test(text.strip()) if colon else None
        if test is None:
            raise StatementError(f"{path.name}: {line} is not a rule of values", where=str(path))
        found.append(Rule(subject.strip(), pages.argument(subject), test))
    return tuple(found)


def check_values(path: Path, args: Mapping[str, Any], text: str, spans: Spans = _NOWHERE) -> None:
    """Check a statement's arguments against the rules of its page.

    Raises StatementError at the first value that breaks one.
    """
    for rule in rules_of(path):
        if rule.argument not in args or args[rule.argument] is None:
            continue
        wrong = rule.test(args[rule.argument], args)
        if wrong:
            of_all = wrong.startswith(_REQUIRES) and not rule.subject.isupper()  # the statement as a whole
            name = pages.read(path).title if of_all else rule.subject.replace("_", " ")
            begin, end = spans[rule.argument][0] if rule.argument in spans else (0, 0)
            shown = text[begin:end] or str(args[rule.argument])
            colon = "" if wrong.startswith(_REQUIRES) else ":"
            message = f"{name}{colon} {wrong.replace(SHOWN, shown)}"
            raise StatementError(message, code=VALUE_CODE, column=begin + 1, source=text, page=path.stem)


def _test(text: str) -> Test | None:
    for pattern, make in _FORMS:
        match = re.fullmatch(pattern, text)
        if match:
            return make(*match.groups())
    return None


def _characters(low: str, high: str) -> Test:
    def test(value: Any, _: Mapping[str, Any]) -> str:
        size = len(str(value))
        return "" if int(low) <= size <= int(high) else f"{size} characters; {low} to {high} are allowed"

    return test


def _between(low: str, high: str) -> Test:
    def test(value: Any, _: Mapping[str, Any]) -> str:
        wrong = any(not limit_of(low, each) <= each <= limit_of(high, each) for each in _amounts(value))
        return f"{SHOWN} is not in the range {low} to {high}" if wrong else ""

    return test


def _one_or_between(one: str, low: str, high: str) -> Test:
    def test(value: Any, _: Mapping[str, Any]) -> str:
        wrong = any(
            each != limit_of(one, each) and not limit_of(low, each) <= each <= limit_of(high, each)
            for each in _amounts(value)
        )
        return f"{SHOWN} is neither {one} nor in the range {low} to {high}" if wrong else ""

    return test


def _at_least(low: str) -> Test:
    def test(value: Any, _: Mapping[str, Any]) -> str:
        return f"{SHOWN} is less than {low}" if any(each < limit_of(low, each) for each in _amounts(value)) else ""

    return test


def _at_most(high: str) -> Test:
    def test(value: Any, _: Mapping[str, Any]) -> str:
        return f"{SHOWN} is more than {high}" if any(each > limit_of(high, each) for each in _amounts(value)) else ""

    return test


def _multiple(step: str) -> Test:
    def test(value: Any, _: Mapping[str, Any]) -> str:
        wrong = any(each % int(step) for each in _amounts(value))
        return f"{SHOWN} is not a multiple of {step}" if wrong else ""

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
        return f"cannot be used with {found}" if found else ""

    return test


def _only_with(words: str, more: str | None) -> Test:
    """``more``: other words that are accepted, but not offered in the message."""
    named = [word.strip() for word in words.split(",")]
    others = [*named, *(word.strip() for word in (more or "").split(",") if word.strip())]
    shown = f"{', '.join(named[:-1])} or {named[-1]}" if len(named) > 1 else named[0]

    def test(_: Any, args: Mapping[str, Any]) -> str:
        given = any(args.get(pages.argument(word)) is not None for word in others)
        return "" if given else f"{_REQUIRES}{shown}"

    return test


_RESERVED: Final = ("ALL", "ER", "GLOBALS", "JAGENT", "MANAGER", "MGR", "PMSRVR", "SERVICE")


def is_reserved(name: str) -> bool:
    """Whether a new group or path cannot have a name.

    These are words of commands, and names of parameter files and reports of other processes.
    """
    return name.upper() in _RESERVED


def _new_name() -> Test:
    def test(value: Any, _: Mapping[str, Any]) -> str:
        if is_reserved(str(value)):
            return f"{SHOWN} is reserved: commands and files of other processes use this name"
        return "" if re.fullmatch(r"[A-Za-z][\w-]*", str(value)) else f"{SHOWN} is not a valid group name"

    return test


def _trail_name() -> Test:
    def test(value: Any, _: Mapping[str, Any]) -> str:
        name = str(value).replace("\\", "/").rpartition("/")[2]
        return "" if len(name) == 2 else f"a trail name must have two characters: {SHOWN}"

    return test


_FORMS: tuple[tuple[str, Callable[..., Test]], ...] = (
    (r"(\d+) to (\d+) characters", _characters),
    (r"(-?[\d.]+), or (-?[\d.]+) to (-?[\d.]+)", _one_or_between),
    (r"(-?[\d.]+\s*[A-Za-z]*) to (-?[\d.]+\s*[A-Za-z]*)", _between),
    (r"at least (-?[\d.]+\s*[A-Za-z]*)", _at_least),
    (r"at most (-?[\d.]+\s*[A-Za-z]*)", _at_most),
    (r"multiple of (\d+)", _multiple),
    (r"a new name", _new_name),
    (r"a trail of two characters", _trail_name),
    (r"not containing (.+)", _not_containing),
    (r"not with (.+)", _not_with),
    (r"only with ([^(]+?)(?: \(or (.+)\))?", _only_with),
)


Amount = int | float | Decimal


def limit_of(text: str, like: Amount) -> Amount:
    """A limit of a page, converted to the type of the value that it limits. Raises ValueError."""
    if isinstance(like, Size):
        return read_size(text)
    return read_interval(text) if isinstance(like, Interval) else Decimal(text)


def _amounts(value: Any) -> list[Amount]:
    """The numbers in a value: the value itself, or an interval in two parts (``4``, ``H``). Words such as NOW have none."""
    if isinstance(value, tuple):
        if len(value) == 2 and isinstance(value[0], int) and isinstance(value[1], str):
            return [read_interval(f"{value[0]}{value[1]}")]
        return [number for each in value for number in _amounts(each)]
    return [value] if isinstance(value, int | float | Decimal) and not isinstance(value, bool) else []
