"""Converts Oracle literals, as LogMiner prints values, to the text that a trail contains.

Texts are UTF-8. Dates and timestamps are ``YYYY-MM-DD HH:MI:SS[.fraction][+hh:mi]``. RAW is ``\\x`` followed by
hexadecimal digits. An empty string is NULL, as in Oracle, but ``EMPTY_CLOB()`` is an empty value. What LogMiner could
not print (``Unsupported Type``, functions that are not known here) becomes ``UNSUPPORTED``, which the caller must
report.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from ggshell.files import read_json

UNSUPPORTED = b"\0unsupported"
"""Stands for a value that the log does not contain in a readable form."""
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
_WHOLE = re.compile(VALUE)
_COMMENT = rb"/\*(?:[^*]|\*(?!/))*\*/"
_IGNORED = re.compile(rb"(?:\s|" + _COMMENT + rb")*")
_WORDS = re.compile(rb"[-+]?(?:inf(?:inity)?|nan)\b(?!\s*\()", re.IGNORECASE)
_NUMBERS = {b"inf": b"Infinity", b"nan": b"NaN"}
_JOIN = re.compile(rb"\s*\|\|")
_IDENTIFIER = rb'(?:"(?:[^"]|"")*"|[A-Za-z_][\w$#]*)'
_CONSTRUCTOR = re.compile(_IDENTIFIER + rb"(?:\s*\.\s*" + _IDENTIFIER + rb")*\s*\(")
_WITHIN = re.compile(QUOTED + rb'|"(?:[^"]|"")*"|' + _COMMENT + rb"|[()]|[^'\"();/]+|/")
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


def value_end(sql: bytes, place: int) -> int:
    """The end of the value that begins at an offset, of any kind; -1 if no value begins there.

    In addition to readable values, this recognizes comments, object constructors (``"MDSYS"."SDO_GEOMETRY"(2001, NULL,
    ...)``) and the bare words Infinity and Nan.
    """
    end = _term_end(sql, place)
    while end >= 0 and (match := _JOIN.match(sql, end)) is not None:
        end = _term_end(sql, match.end())
    return end


def _term_end(sql: bytes, place: int) -> int:
    place = skipped(_IGNORED, sql, place)
    plain = _PRIMARIES.match(sql, place) or _WORDS.match(sql, place)
    name = _CONSTRUCTOR.match(sql, place)
    if name is None:
        return plain.end() if plain is not None else -1
    if plain is not None and plain.end() > name.end():
        return plain.end()
    depth, place = 1, name.end()
    while depth:
        match = _WITHIN.match(sql, place)
        if match is None:
            return -1
        depth += (match[0] == b"(") - (match[0] == b")")
        place = match.end()
    return place


def skipped(pattern: re.Pattern[bytes], sql: bytes, place: int) -> int:
    """The offset after what a pattern matches, or the offset itself if it does not match."""
    match = pattern.match(sql, place)
    return match.end() if match is not None else place


def any_value(token: bytes) -> Value:
    """Convert what ``value_end`` found to a value; UNSUPPORTED if it cannot be read."""
    comment = _IGNORED.match(token)
    text = token[comment.end() :] if comment is not None else token
    if _WORDS.fullmatch(text):
        return _NUMBERS[text.lstrip(b"+-")[:3].lower()] if text[:1] != b"-" else b"-Infinity"
    if _WHOLE.fullmatch(text) is None:
        return UNSUPPORTED
    value = value_of(text)
    return _json(value) if comment is not None and b"JSON" in comment[0].upper() else value


def _json(value: Value) -> Value:
    """The value of a JSON column, if the log contains it as text. The database's binary form is not read."""
    if value is None or value == b"" or not value.startswith(b"\\x"):
        return value if value else UNSUPPORTED if value == b"" else None
    try:
        text = bytes.fromhex(value[2:].decode()).decode()
        read_json(text)
    except ValueError:
        return UNSUPPORTED
    return text.encode()


def value_of(token: bytes) -> Value:
    """Convert a literal to its value."""
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
    """``\\XXXX`` are UTF-16 code units; a character beyond the first 65,536 is two of them."""
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
    """Convert a date or timestamp in one of Oracle's formats to the trail's; UNSUPPORTED if it does not match."""
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
    """RR: the years 50 to 99 are in the last century."""
    return 1900 + year if year >= 50 else 2000 + year


def _zone(zone: bytes) -> bytes:
    if not zone or zone[:1] in b"+-":
        return zone
    return b"+00:00"


@lru_cache(maxsize=256)
def _pattern(style: str) -> re.Pattern[bytes]:
    """Convert a format to a pattern. An unknown element matches only itself, so such a date does not match."""
    parts = [rb"\s*"]
    for match in _ELEMENT.finditer(style):
        word = match[0].upper()
        if re.fullmatch(r"FF[1-9]", word):
            word = "FF"
        parts.append(_ELEMENTS.get(word, rb"\s+" if word == " " else re.escape(match[0].encode())))
    pattern = b"".join(parts) + rb"\s*"
    try:
        return re.compile(pattern)
    except re.error:  # an element that occurs twice
        return re.compile(rb"(?!)")
