"""The filters of FILTER, which select the records that NEXT, COUNT and the scan commands use."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple

from ggshell.errors import StatementError, TrailError, UsageError
from ggshell.record.operation import TransInd
from ggshell.trail import iotypes
from ggshell.trail.record import Record
from ggshell.types import Csn

Test = Callable[["FilterCandidate"], bool]
Moment = Callable[[str], datetime]
Compare = Callable[[Any, Any], bool]

_COMPARE: Final[dict[str, Compare]] = {
    **dict.fromkeys(("=", "==", "EQ"), operator.eq),
    **dict.fromkeys(("!=", "<>", "NE"), operator.ne),
    **dict.fromkeys(("<", "LT"), operator.lt),
    **dict.fromkeys((">", "GT"), operator.gt),
    **dict.fromkeys(("<=", "LE"), operator.le),
    **dict.fromkeys((">=", "GE"), operator.ge),
}
_SIGN = r"<=|>=|<>|!=|==|=|<|>|\b(?:EQ|NE|LT|GT|LE|GE)\b"
_COMPARISON = re.compile(rf"\s*({_SIGN})?\s*(.*?)\s*", re.IGNORECASE | re.DOTALL)
_BEHIND = re.compile(rf"\s*(.*?)\s*({_SIGN})\s*", re.IGNORECASE | re.DOTALL)
_TOKEN = re.compile(r"\s*(\"[^\"]*\"|'[^']*'|[^\s=<>!]+)\s*(.*?)\s*", re.DOTALL)
_RANGE = re.compile(r"(.*?)(?:[,\s]+(\d+)(?::(\d+))?)?\s*", re.DOTALL)
_NUMBERS: Final[dict[str, Callable[[FilterCandidate], int]]] = {
    "RBA": lambda candidate: candidate.rba,
    "RECLEN": lambda candidate: candidate.record.rec_length,
    "TRANSIND": lambda candidate: candidate.record.trans_ind,
    "UNDOFLAG": lambda candidate: candidate.record.undo_flag,
    "SYSKEYLEN": lambda candidate: candidate.record.syskey_len,
    "AUDITRBA": lambda candidate: candidate.record.audit_rba,
    "AUDITPOS": lambda candidate: candidate.record.audit_pos,
}
_TOKENS: Final = {"LOGCSN": "L", "TRANID": "6", "LOGBSN": "B", "ORAROWID": "R", "ORATAG": "t", "DDL": "D"}
_ALIASES: Final = {"IOTYPE": "RECTYPE", "RECTYPES": "RECTYPE", "LOGCSN": "CSN"}
_PARTS: Final = re.compile(r",\s*(?=['\"/])")
_WIDTHS: Final = {"INT16": 2, "INT32": 4, "INT64": 8}
SUBJECTS: Final = frozenset(
    {"RECTYPE", "IOTYPE", "FILENAME", "ANSINAME", "TRANSID", "IOTIME", "STARTTIME", "ENDTIME", "STRING", "HEX", "CSN"}
    | {"LOGCSN", "SYSKEY", "GGSTOKEN", "USERTOKEN", "PROCESS"}
    | _NUMBERS.keys()
    | _WIDTHS.keys()
)
_INDICATORS: Final = {item.name: int(item) for item in TransInd} | {"FIRST": 0, "LAST": 2, "WHOLE": 3, "ONLY": 3}


class Identity(NamedTuple):
    """A transaction's id and commit sequence number, as the trail prints them; empty if not known."""

    xid: str
    csn: str


class FilterCandidate(NamedTuple):
    """A record to test against filters; ``identity`` looks up its transaction, which only the first record identifies."""

    rba: int
    record: Record
    table: str
    identity: Callable[[], Identity]


class Filter(NamedTuple):
    """One condition: ``text`` as it is listed, and ``more``, a second line (the bytes of HEX and STRING)."""

    subject: str
    text: str
    test: Test
    more: str = ""


@dataclass(slots=True)
class FilterSide:
    """The filters of one side: those that include records, or those that exclude them."""

    filters: list[Filter] = field(default_factory=list)
    match_all: bool = False

    def fits(self, candidate: FilterCandidate) -> bool:
        tests = (each.test(candidate) for each in self.filters)
        return all(tests) if self.match_all else any(tests)


@dataclass(slots=True)
class Filters:
    """All settings of FILTER."""

    enabled: bool = True
    include: FilterSide = field(default_factory=FilterSide)
    exclude: FilterSide = field(default_factory=FilterSide)

    @property
    def any(self) -> bool:
        return bool(self.include.filters or self.exclude.filters)

    def passes(self, candidate: FilterCandidate) -> bool:
        """Whether a record passes the filters."""
        if not self.enabled:
            return True
        if self.exclude.filters and self.exclude.fits(candidate):
            return False
        return not self.include.filters or self.include.fits(candidate)

    def listed(self) -> list[Filter]:
        """Return all filters in the order of FILTER SHOW."""
        return [*self.include.filters, *self.exclude.filters]

    def clear(self) -> None:
        """Remove all filters."""
        self.include.filters.clear()
        self.exclude.filters.clear()

    def remove(self, number: int) -> None:
        """Remove a filter by its number. Raises UsageError if it does not exist."""
        if not 1 <= number <= len(self.listed()):
            raise UsageError(f"filter {number} does not exist", hint="FILTER SHOW lists them")
        inside = len(self.include.filters)
        if number <= inside:
            del self.include.filters[number - 1]
        else:
            del self.exclude.filters[number - 1 - inside]

    def remove_kind(self, subject: str) -> None:
        """Remove all filters of one kind. Raises UsageError if there are none."""
        wanted = _ALIASES.get(subject.upper(), subject.upper())
        before = len(self.listed())
        for side in (self.include, self.exclude):
            side.filters = [each for each in side.filters if each.subject != wanted]
        if len(self.listed()) == before:
            raise UsageError(f"no filter of {subject.upper()} exists", hint="FILTER SHOW lists them")


def make(subject: str, text: str, moment: Moment) -> list[Filter]:
    """Create the filters for a subject and its value: one, or one per text of STRING and HEX. Raises UsageError."""
    subject = _ALIASES.get(subject.upper(), subject.upper())
    text = text.strip()
    if not text:
        raise UsageError(f"FILTER {subject} requires a value", hint="HELP FILTER")
    if subject in ("STRING", "HEX"):
        return [_bytes_filter(subject, part) for part in _PARTS.split(text)]
    listed = text
    if subject == "RECTYPE":
        listed = ", ".join(iotypes.io_type_name(number) for number in sorted(_rectypes(text)))
    return [Filter(subject, listed, _test(subject, text, moment))]


def _test(subject: str, text: str, moment: Moment) -> Test:
    if subject in _NUMBERS:
        return _number_test(subject, text)
    if subject == "RECTYPE":
        numbers = _rectypes(text)
        return lambda candidate: candidate.record.io_type in numbers
    if subject in ("FILENAME", "ANSINAME"):
        patterns = [part.strip("'\"").upper() for part in re.split(r"[,\s]+", text)]
        return lambda candidate: any(fnmatchcase(candidate.table.upper(), pattern) for pattern in patterns)
    if subject == "TRANSID":
        wanted = text.strip("'\"=").strip()
        return lambda candidate: candidate.identity().xid == wanted
    if subject in ("CSN", "LOGCSN"):
        return _csn_test(text)
    if subject in ("IOTIME", "STARTTIME", "ENDTIME"):
        return _time_test(subject, text, moment)
    if subject == "SYSKEY":
        return _integer_test(_WIDTHS["INT64"], text)
    if subject in _WIDTHS:
        return _integer_test(_WIDTHS[subject], text)
    if subject in ("GGSTOKEN", "USERTOKEN"):
        return _token_test(subject, text)
    raise UsageError(f"FILTER {subject}: records of PostgreSQL or Oracle contain no process name", hint="HELP FILTER")


def _comparison(text: str) -> tuple[Compare, str]:
    match = _COMPARISON.fullmatch(text)
    sign, value = (match[1] or "", match[2]) if match is not None else ("", text)
    behind = None if sign else _BEHIND.fullmatch(value)
    if behind is not None and behind[1]:
        sign, value = behind[2], behind[1]
    return _COMPARE[(sign or "=").upper()], value.strip("'\"")


def _number_test(subject: str, text: str) -> Test:
    compare, value = _comparison(text)
    if subject == "TRANSIND" and value.upper() in _INDICATORS:
        value = str(_INDICATORS[value.upper()])
    number, get = _integer(value), _NUMBERS[subject]
    return lambda candidate: compare(get(candidate), number)


def _integer(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise UsageError(f"{text} is not a number") from None


def _rectypes(text: str) -> frozenset[int]:
    try:
        return frozenset(iotypes.io_type_number(part) for part in re.split(r"[,\s]+", text) if part)
    except ValueError as error:
        raise UsageError(str(error), hint="SHOW RECTYPE lists them") from None


def _csn_test(text: str) -> Test:
    compare, value = _comparison(text)
    wanted = parsed_csn(value).value

    def test(candidate: FilterCandidate) -> bool:
        try:
            return compare(Csn.parse(candidate.identity().csn).value, wanted)
        except ValueError:  # the CSN is not known, or has another database's format
            return False

    return test


def parsed_csn(text: str) -> Csn:
    """Parse a CSN. Raises UsageError if it is not valid."""
    try:
        return Csn.parse(text)
    except ValueError:
        raise UsageError(f"{text} is not a valid CSN", hint="a number, or two halves of an LSN: 0/50056B8") from None


def _time_test(subject: str, text: str, moment: Moment) -> Test:
    compare, value = _comparison(text)
    ends: dict[str, Compare] = {"STARTTIME": operator.ge, "ENDTIME": operator.le}
    compare = ends.get(subject, compare)
    wanted = moment(value)
    return lambda candidate: candidate.record.io_time is not None and compare(candidate.record.io_time, wanted)


def _bytes_filter(subject: str, text: str) -> Filter:
    text = re.sub(r"^BOTH\s+", "", text, flags=re.IGNORECASE)
    quoted = re.fullmatch(r"(['\"/])(.*?)\1(?:[,\s]+(\d+)(?::(\d+))?)?\s*", text, re.DOTALL)
    match = quoted or _RANGE.fullmatch(text)
    if match is None:
        raise UsageError(f"{text} is not a valid value of FILTER {subject}")
    content, first, last = (match[2], match[3], match[4]) if quoted else (match[1], match[2], match[3])
    wanted = content.encode() if subject == "STRING" else _hex(content)
    low, high = int(first or 0), int(last) + 1 if last else None
    if first and not last:
        high = low + len(wanted)
    where = f", Col {low}:{high - 1}" if high is not None else ""
    more = f"{wanted.hex(' ', -2).upper() if subject == 'HEX' else content}"
    return Filter(
        subject, f"({len(wanted):>2}){where}", lambda candidate: wanted in candidate.record.data[low:high], more
    )


def _hex(text: str) -> bytes:
    try:
        wanted = bytes.fromhex(text.strip("'\"").removeprefix("0x"))
    except ValueError:
        wanted = b""
    if not wanted:
        raise UsageError(f"{text} is not a hexadecimal value", hint="for example 0004")
    return wanted


def _integer_test(width: int, text: str) -> Test:
    _, value = _comparison(text)
    number = _integer(value)
    try:
        wanted = {number.to_bytes(width, order, signed=number < 0) for order in ("little", "big")}
    except OverflowError:
        raise UsageError(f"{number} does not fit into {width} bytes") from None
    return lambda candidate: any(each in candidate.record.data for each in wanted)


def _has_user_token(record: Record, name: str, compare: Compare | None, value: str) -> bool:
    """Whether a record has a user token of this name (in any case) with a matching value."""
    try:
        named = record.named_user_tokens()
    except TrailError:  # another producer's format: search the bytes for the name and the value
        return all(word.encode() in record.user_tokens for word in (name, value))
    found = next((text for token, text in named.items() if token.upper() == name.upper()), None)
    return found is not None and (compare is None or compare(found.decode(errors="replace"), value))


def _token_test(subject: str, text: str) -> Test:
    match = _TOKEN.fullmatch(text)
    name, rest = (match[1].strip("'\""), match[2]) if match is not None else (text, "")
    compare, value = _comparison(rest) if rest else (None, "")
    if subject == "USERTOKEN":
        return lambda candidate: _has_user_token(candidate.record, name, compare, value)
    letter = _TOKENS.get(name.upper(), name if len(name) == 1 else "")
    if not letter:
        raise StatementError(f"token {name} does not exist", hint=f"one of {', '.join(_TOKENS)}")

    def test(candidate: FilterCandidate) -> bool:
        found = candidate.record.tokens.get(letter)
        return found is not None and (compare is None or compare(found.decode(errors="replace"), value))

    return test
