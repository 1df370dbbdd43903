"""Oracle literals, as LogMiner prints values, to the text that a trail carries.

Texts are UTF-8; dates and timestamps ``YYYY-MM-DD HH:MI:SS[.fraction][+hh:mi]``; RAW is ``\\x`` and hexadecimal digits; an
empty string is NULL, as Oracle has it, but ``EMPTY_CLOB()`` is an empty value.  What LogMiner could not print
(``Unsupported Type``, functions that are not known here) is ``UNSUPPORTED``, which the caller must report.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

UNSUPPORTED = b"\0unsupported"
"""Stands for a value that the log does not hold in a form that can be read."""
Value = bytes | None

QUOTED = rb"'[^']*(?:''[^']*)*'"
_ARGUMENTS = rb"\(\s*(?:" + QUOTED + rb"(?:\s*,\s*" + QUOTED + rb")*)?\s*\)"
PRIMARY = (
    rb"(?:NULL|[nN]?"
    + QUOTED
    + rb"|Unsupported Type|(?:DATE|TIMESTAMP)\s*"
    + QUOTED
    + rb"|[A-Za-z_][\w$#.]*\s*"
    + _ARGUMENTS
    + rb"|[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"
)
VALUE = PRIMARY + rb"(?:\s*\|\|\s*" + PRIMARY + rb")*"

_PRIMARIES = re.compile(PRIMARY)
_CALL = re.compile(rb"([A-Za-z_][\w$#.]*)\s*\(\s*(.*?)\s*\)", re.DOTALL)
_ARGUMENT = re.compile(QUOTED)
_PLAIN_CALL = re.compile(rb"([A-Z_]+)\('([^']*)'(?:, ?'([^']*)')?\)")
_PLAIN_DATE = re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
_PLAIN_STYLES = (b"YYYY-MM-DD HH24:MI:SS", b"SYYYY-MM-DD HH24:MI:SS")
_UNIT = re.compile(rb"\\([0-9A-Fa-f]{4}|\\)")
_MONTHS = b"JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split()
_ISO = re.compile(
    rb"\s*(?P<bc>-)?(?P<year>\d{1,4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})"
    rb"(?:[ T](?P<hour>\d{1,2}):(?P<minute>\d{1,2})(?::(?P<second>\d{1,2})(?:[.,](?P<fraction>\d*))?)?)?"
    rb"(?:\s*(?P<zone>[-+]\d{1,2}:?\d{2}|UTC|GMT|Z))?\s*"
)
_DEFAULT = "DD-MON-RR"
_ELEMENTS = {
    "SYYYY": rb"(?P<bc>-)?\s*(?P<year>\d{1,4})",
    "YYYY": rb"(?P<year>\d{1,4})",
    "RRRR": rb"(?P<year>\d{4})",
    "RR": rb"(?P<rr>\d{2})",
    "YY": rb"(?P<rr>\d{2})",
    "MONTH": rb"(?P<name>[A-Za-z]+)\s*",
    "MON": rb"(?P<name>[A-Za-z]+)",
    "MM": rb"(?P<month>\d{1,2})",
    "DD": rb"(?P<day>\d{1,2})",
    "HH24": rb"(?P<hour>\d{1,2})",
    "HH12": rb"(?P<hour>\d{1,2})",
    "HH": rb"(?P<hour>\d{1,2})",
    "MI": rb"(?P<minute>\d{1,2})",
    "SS": rb"(?P<second>\d{1,2})",
    "XFF": rb"[.,](?P<fraction>\d*)",
    "FF": rb"(?P<fraction>\d*)",
    "AM": rb"(?P<half>[AaPp]\.?[Mm]\.?)",
    "PM": rb"(?P<half>[AaPp]\.?[Mm]\.?)",
    "TZH:TZM": rb"(?P<zone>[-+]\d{1,2}:\d{2})",
    "TZR": rb"(?P<zone>[-+]\d{1,2}:\d{2}|UTC|GMT|Z)",
}
_ELEMENT = re.compile("|".join(sorted(_ELEMENTS, key=len, reverse=True)) + r"|FF[1-9]|.", re.IGNORECASE | re.DOTALL)


def value_of(token: bytes) -> Value:
    """The value that a literal stands for."""
    if token[0] == 0x27 and b"||" not in token:
        inner = token[1:-1]
        return (inner.replace(b"''", b"'") if b"'" in inner else inner) or None
    if token == b"NULL":
        return None
    call = _PLAIN_CALL.fullmatch(token)
    if call is not None:
        name, first, second = call.groups()
        if name == b"TO_DATE" and second in _PLAIN_STYLES and _PLAIN_DATE.fullmatch(first):
            return first
        function = _FUNCTIONS.get(name)
        return UNSUPPORTED if function is None else function([first] if second is None else [first, second])
    primaries = _PRIMARIES.findall(token)
    if len(primaries) == 1:
        return _primary(token)
    parts = [_primary(part) for part in primaries]
    if UNSUPPORTED in parts:
        return UNSUPPORTED
    return b"".join(part for part in parts if part) or None


def _primary(token: bytes) -> Value:
    if token[0] == 0x27:
        return token[1:-1].replace(b"''", b"'") or None
    if token == b"NULL":
        return None
    if token[0] in b"-+.0123456789":
        return token
    if token == b"Unsupported Type":
        return UNSUPPORTED
    call = _CALL.fullmatch(token)
    if call is not None:
        arguments = [part[1:-1].replace(b"''", b"'") for part in _ARGUMENT.findall(call[2])]
        function = _FUNCTIONS.get(call[1].upper())
        return UNSUPPORTED if function is None else function(arguments)
    first = token.index(b"'")
    text = token[first + 1 : -1].replace(b"''", b"'")
    return text or None if token[:first].upper() == b"N" else moment(text, "")


def _text(arguments: list[bytes]) -> Value:
    return arguments[0].strip() or None if arguments else UNSUPPORTED


def _characters(arguments: list[bytes]) -> Value:
    return arguments[0] or None if arguments else UNSUPPORTED


def _empty(_: list[bytes]) -> Value:
    return b""


def _raw(arguments: list[bytes]) -> Value:
    return b"\\x" + arguments[0].lower() if arguments and arguments[0] else None


def _moment(arguments: list[bytes]) -> Value:
    if not arguments or not arguments[0].strip():
        return None
    return moment(arguments[0], arguments[1].decode("ascii", "replace") if len(arguments) > 1 else "")


def _unistr(arguments: list[bytes]) -> Value:
    """``\\XXXX`` are UTF-16 code units, two of them for what lies beyond the first 65,536 characters."""
    if not arguments or not arguments[0]:
        return None
    units: list[bytes] = []
    place, text = 0, arguments[0]
    for match in _UNIT.finditer(text):
        units.append(text[place : match.start()].decode().encode("utf-16-be"))
        units.append(b"\0\\" if match[1] == b"\\" else bytes.fromhex(match[1].decode()))
        place = match.end()
    units.append(text[place:].decode().encode("utf-16-be"))
    try:
        return b"".join(units).decode("utf-16-be").encode()
    except UnicodeDecodeError:
        return UNSUPPORTED


_FUNCTIONS: dict[bytes, Callable[[list[bytes]], Value]] = {
    b"TO_DATE": _moment,
    b"TO_TIMESTAMP": _moment,
    b"TO_TIMESTAMP_TZ": _moment,
    b"TO_TIMESTAMP_LTZ": _moment,
    b"HEXTORAW": _raw,
    b"UNISTR": _unistr,
    b"EMPTY_CLOB": _empty,
    b"EMPTY_BLOB": _empty,
    b"TO_DSINTERVAL": _text,
    b"TO_YMINTERVAL": _text,
    b"TO_NUMBER": _text,
    b"TO_BINARY_FLOAT": _text,
    b"TO_BINARY_DOUBLE": _text,
    b"TO_CLOB": _characters,
    b"TO_NCLOB": _characters,
    b"TO_CHAR": _characters,
    b"TO_NCHAR": _characters,
    b"CHARTOROWID": _characters,
}


@lru_cache(maxsize=1 << 14)
def moment(text: bytes, style: str) -> Value:
    """A date or timestamp in a format of Oracle's as the trail has it; UNSUPPORTED when it does not fit the format."""
    match = _pattern(style).fullmatch(text) if style else None
    match = match or _ISO.fullmatch(text) or _pattern(_DEFAULT).fullmatch(text)
    if match is None:
        return UNSUPPORTED
    found = {name: part for name, part in match.groupdict().items() if part is not None}
    month = int(found.get("month", b"1"))
    if "name" in found:
        short = found["name"][:3].upper()
        if short not in _MONTHS:
            return UNSUPPORTED
        month = _MONTHS.index(short) + 1
    year = int(found["year"]) if "year" in found else _century(int(found.get("rr", b"0")))
    hour = int(found.get("hour", b"0"))
    if "half" in found:
        hour = hour % 12 + (12 if found["half"][:1].upper() == b"P" else 0)
    result = b"%04d-%02d-%02d %02d:%02d:%02d" % (
        year,
        month,
        int(found.get("day", b"1")),
        hour,
        int(found.get("minute", b"0")),
        int(found.get("second", b"0")),
    )
    fraction = found.get("fraction", b"")
    result += b"." + fraction if fraction else b""
    return result + _zone(found.get("zone", b"")) + (b" BC" if "bc" in found else b"")


def _century(year: int) -> int:
    """RR: the years 50 to 99 are those of the last century."""
    return 1900 + year if year >= 50 else 2000 + year


def _zone(zone: bytes) -> bytes:
    if not zone or zone[:1] in b"+-":
        return zone
    return b"+00:00"


@lru_cache(maxsize=256)
def _pattern(style: str) -> re.Pattern[bytes]:
    """A format as a pattern; an element that is not known here matches itself, so that such a date does not fit."""
    parts = [rb"\s*"]
    for match in _ELEMENT.finditer(style):
        word = match[0].upper()
        if re.fullmatch(r"FF[1-9]", word):
            word = "FF"
        parts.append(_ELEMENTS.get(word, rb"\s+" if word == " " else re.escape(match[0].encode())))
    pattern = b"".join(parts) + rb"\s*"
    try:
        return re.compile(pattern)
    except re.error:  # an element that stands there twice
        return re.compile(rb"(?!)")
