"""Character sets: which one a collation number of the log means, and how its text becomes UTF-8.

The numbers are those of ``information_schema.COLLATIONS``. A character set whose text Python cannot decode exactly as the
server does is refused with a message that names it.
"""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from functools import cache
from typing import Final, NamedTuple

from ggshell.errors import CaptureError

BINARY: Final = 63
"""The collation of binary strings."""

_BY_COLLATION: Final[Mapping[str, str]] = {
    "ascii": "11 65",
    "big5": "1 84",
    "cp1250": "26 34 44 66 99",
    "cp1251": "14 23 50 51 52",
    "cp1256": "57 67",
    "cp1257": "29 58 59",
    "cp850": "4 80",
    "cp852": "40 81",
    "cp866": "36 68",
    "cp932": "95 96",
    "euckr": "19 85",
    "gb2312": "24 86",
    "gbk": "28 87",
    "gb18030": "248 249 250",
    "greek": "25 70",
    "hebrew": "16 71",
    "koi8r": "7 74",
    "koi8u": "22 75",
    "latin1": "5 8 15 31 47 48 49 94",
    "latin2": "2 9 21 27 77",
    "latin5": "30 78",
    "latin7": "20 41 42 79",
    "macce": "38 43",
    "macroman": "39 53",
    "sjis": "13 88",
    "tis620": "18 89",
    "ujis": "12 91",
    "armscii8": "32 64",
    "dec8": "3 69",
    "eucjpms": "97 98",
    "geostd8": "92 93",
    "hp8": "6 72",
    "keybcs2": "37 73",
    "swe7": "10 82",
    "ucs2": "35 90 128-151 159 640-642",
    "utf16": "54 55 101-124 672-674",
    "utf16le": "56 62",
    "utf32": "60 61 160-183 736-738",
    "utf8mb3": "33 76 83 192-215 223 576-578",
    "utf8mb4": "45 46 224-247 255-323 608-610",
}
"""The collations of each character set. MariaDB's collations without padding have the numbers of others plus 1024."""

_NO_PAD: Final = 1024
_UCA_1400: Final = range(2048, 3328)
_UCA_CHARSETS: Final = ("utf8mb3", "utf8mb4", "ucs2", "utf16", "utf32")
"""The character sets of MariaDB's UCA 14.0.0 collations, 256 numbers each."""

_CODECS: Final[Mapping[str, str]] = {
    "greek": "iso8859-7",
    "hebrew": "iso8859-8",
    "koi8r": "koi8-r",
    "koi8u": "koi8-u",
    "latin1": "cp1252",
    "latin2": "iso8859-2",
    "latin5": "iso8859-9",
    "latin7": "iso8859-13",
    "macce": "mac_latin2",
    "macroman": "mac_roman",
    "tis620": "tis-620",
    "euckr": "cp949",
    "sjis": "shift_jis",
    "ujis": "euc_jp",
    "ucs2": "utf-16-be",
    "utf16": "utf-16-be",
    "utf16le": "utf-16-le",
    "utf32": "utf-32-be",
}
"""Python's codecs with another name than the character set."""
_UNSUPPORTED: Final = frozenset({"armscii8", "dec8", "eucjpms", "geostd8", "hp8", "keybcs2", "swe7"})
_OWN: Final[Mapping[str, Mapping[int, str]]] = {
    "cp866": {0xFC: "ⁿ", 0xFD: "²"},
    "greek": {0xA1: "ʽ", 0xA2: "ʼ"},
    "hebrew": {0xAF: "‾"},
    "koi8u": {0x95: "•"},
    "latin1": {code: chr(code) for code in (0x81, 0x8D, 0x8F, 0x90, 0x9D)},
}
"""The characters of one byte that the server maps to others than Python does."""
_BACKSLASH: Final = frozenset({"sjis", "ujis"})
"""In these the server maps the full-width backslash to the plain one."""
_WIDTHS: Final[Mapping[str, int]] = (
    {"utf8mb3": 3, "utf8mb4": 4, "utf16": 4, "utf16le": 4, "utf32": 4, "gb18030": 4}
    | dict.fromkeys(("ucs2", "big5", "cp932", "euckr", "gb2312", "gbk", "sjis"), 2)
    | {"ujis": 3, "eucjpms": 3}
)


_MORE: Final = "ggshell.big5"
_BIG5_MORE: Final = bytes.fromhex("f9d6f9d7f9d8f9d9f9daf9dbf9dc")
_BIG5_CHARACTERS: Final = _BIG5_MORE.decode("cp950")


class Charset(NamedTuple):
    """A character set. ``direct``: its bytes are UTF-8; ``ascii``: bytes below 128 are ASCII; ``width``: bytes a character."""

    name: str
    direct: bool
    ascii: bool
    width: int

    def text(self, value: bytes) -> bytes:
        """The text of a column as UTF-8. Raises CaptureError as ``decode`` does."""
        return value if self.direct else self.decode(value).encode()

    def decode(self, text: bytes) -> str:
        """Decode text of a column. Raises CaptureError if it is not valid, or the character set is not supported."""
        if self.name in _UNSUPPORTED:
            raise CaptureError(
                f"the character set {self.name} is not supported",
                code="GGS-00470",
                hint="convert the column to utf8mb4, or leave the table out",
            )
        try:
            table = _table(self.name)
            if table is not None:
                return codecs.charmap_decode(text, "strict", table)[0]
            found = text.decode(_CODECS.get(self.name, self.name), _MORE if self.name == "big5" else "strict")
        except UnicodeDecodeError as error:
            raise CaptureError(
                f"the bytes {text[error.start : error.end].hex()} are not valid in the character set {self.name}",
                code="GGS-00470",
                hint="correct the value in the source, or leave the table out",
            ) from None
        return found.replace("＼", "\\") if self.name in _BACKSLASH else found


def _more_of_big5(error: UnicodeError) -> tuple[str, int]:
    """The seven characters that the server's big5 has and Python's does not."""
    if isinstance(error, UnicodeDecodeError):
        place = _BIG5_MORE.find(error.object[error.start : error.start + 2])
        if place >= 0 and place % 2 == 0:
            return _BIG5_CHARACTERS[place // 2], error.start + 2
    raise error


codecs.register_error(_MORE, _more_of_big5)


@cache
def charset_of(collation: int) -> Charset:
    """Return the character set of a collation. Raises CaptureError for a number that no server has."""
    if collation in _UCA_1400:
        return _charset(_UCA_CHARSETS[(collation - _UCA_1400.start) >> 8])
    base = collation - _NO_PAD if _NO_PAD < collation < _UCA_1400.start else collation
    name = _names().get(base, "")
    if not name:
        raise CaptureError(
            f"collation {collation} is not known", code="GGS-00470", hint="convert the column to utf8mb4"
        )
    return _charset(name)


def _charset(name: str) -> Charset:
    direct = name in ("ascii", "utf8mb3", "utf8mb4", "binary")
    return Charset(name, direct, name not in ("ucs2", "utf16", "utf16le", "utf32"), _WIDTHS.get(name, 1))


@cache
def _names() -> dict[int, str]:
    found = {BINARY: "binary"}
    for name, numbers in _BY_COLLATION.items():
        for part in numbers.split():
            first, _, last = part.partition("-")
            found |= dict.fromkeys(range(int(first), int(last or first) + 1), name)
    return found


@cache
def _table(name: str) -> str | None:
    """The 256 characters of a character set whose own mapping differs from Python's; None if it does not."""
    own = _OWN.get(name)
    if own is None:
        return None
    codec = _CODECS.get(name, name)
    return "".join(own.get(code) or bytes([code]).decode(codec, "replace") for code in range(256))
