"""A table with a column of every type, values for it, and how the server and mariadb-binlog show them."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

Value = Any
WORDS = ("", "a", "abc  ", "héllo €", "日本語", "😀 x", "it's", '"q"', "a\\b", "tab\there", "new\nline", "x" * 60)
EASTERN = ("", "日本", "カナ", "abc", "表示", "予\\定")


class Kind(NamedTuple):
    """A type. ``value``: a value for one row; ``select``: the expression whose text the trail must have.

    ``log``: what mariadb-binlog prints (without quotes) for the text of the trail.
    """

    type: str
    value: Callable[[random.Random], Value]
    select: str = "CAST({0} AS CHAR)"
    log: Callable[[str], object] = str


def _number(low: int, high: int) -> Callable[[random.Random], Value]:
    return lambda chance: chance.choice([low, high, 0, 1, chance.randint(low, high)])


def _decimal(whole: int, scale: int, *, signed: bool = True) -> Callable[[random.Random], Value]:
    def value(chance: random.Random) -> str:
        digits = "".join(chance.choice("0123456789") for _ in range(chance.randint(0, whole))) or "0"
        fraction = "".join(chance.choice("0009") for _ in range(scale))
        sign = chance.choice(["", "-"]) if signed else ""
        return sign + chance.choice([f"{digits}.{fraction}", "9" * whole + "." + "9" * scale, "0"])

    return value


def _moment(digits: int, first: datetime, last: datetime, *zeros: str) -> Callable[[random.Random], Value]:
    def value(chance: random.Random) -> str:
        found = first + timedelta(seconds=chance.randint(0, int((last - first).total_seconds())))
        found = found.replace(microsecond=chance.choice([0, 999_999, 1, 500_000]))
        text = found.isoformat(" ", "microseconds")[: 19 + (1 + digits if digits else 0)]
        return chance.choice([text, text, *zeros])

    return value


def _time(digits: int) -> Callable[[random.Random], Value]:
    def value(chance: random.Random) -> str:
        hours = chance.choice([0, 1, 99, 100, 837, chance.randint(0, 837)])
        fraction = f".{chance.choice([0, 999_999, 1, 500_000]):06d}"[: 1 + digits] if digits else ""
        return (
            f"{chance.choice(['', '-'])}{hours:02d}:{chance.randint(0, 59):02d}:{chance.randint(0, 59):02d}{fraction}"
        )

    return value


def _bytes(most: int) -> Callable[[random.Random], Value]:
    return lambda chance: chance.choice(
        [b"", b"\0", b"\\x", chance.randbytes(chance.randint(0, most)), b"a" * (most - 1) + b"\0"]
    )


def _hex(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("\\x"))


def _epoch(text: str) -> float:
    if text.startswith("0000"):
        return 0.0
    found = datetime.fromisoformat(text.ljust(26, "0") if "." in text else text).replace(tzinfo=UTC)
    return round(found.timestamp(), 6)


def _encoded(codec: str) -> Callable[[str], bytes]:
    return lambda text: text.encode(codec)


FIRST, LAST = datetime(1000, 1, 1), datetime(9999, 12, 31, 23, 59, 59)
EPOCH, END = datetime(1970, 1, 1, 0, 0, 1), datetime(2038, 1, 19, 3, 14, 7)
BINARY = "CONCAT('\\\\x', LOWER(HEX({0})))"
LABELS = ("new", "é, x", "it's", "")
MEMBERS = ("read", "wrîte", "all rights")

KINDS = (
    Kind("tinyint", _number(-128, 127)),
    Kind("tinyint unsigned", _number(0, 255)),
    Kind("smallint", _number(-32768, 32767)),
    Kind("smallint unsigned", _number(0, 65535)),
    Kind("mediumint", _number(-(1 << 23), (1 << 23) - 1)),
    Kind("mediumint unsigned", _number(0, (1 << 24) - 1)),
    Kind("int", _number(-(1 << 31), (1 << 31) - 1)),
    Kind("int unsigned", _number(0, (1 << 32) - 1)),
    Kind("bigint", _number(-(1 << 63), (1 << 63) - 1)),
    Kind("bigint unsigned", _number(0, (1 << 64) - 1)),
    Kind("decimal(65,30)", _decimal(35, 30)),
    Kind("decimal(10,2)", _decimal(8, 2)),
    Kind("decimal(5,5)", _decimal(0, 5)),
    Kind("decimal(18,0) unsigned", _decimal(18, 0, signed=False)),
    Kind("decimal(38,9)", _decimal(29, 9)),
    Kind("float", lambda chance: chance.choice([0, 1.5, -0.1, 1e30, 1e-30, chance.randint(0, 9999) / 4]), log=float),
    Kind(
        "double",
        lambda chance: chance.choice([0, -0.5, 1e15, 1e14, 123456.75, 1e-14, 1e-15, 1e300, chance.random()]),
        log=float,
    ),
    Kind("bit(1)", _number(0, 1), "LPAD(BIN({0}), 1, '0')"),
    Kind("bit(13)", _number(0, 8191), "LPAD(BIN({0}), 13, '0')"),
    Kind("bit(64)", _number(0, (1 << 64) - 1), "LPAD(BIN({0}), 64, '0')"),
    Kind("year", _number(1901, 2155), "CONCAT({0})", lambda text: "1900" if text == "0000" else text),
    Kind("date", _moment(-9, FIRST, LAST, "0000-00-00", "2024-02-29"), log=lambda text: text.replace("-", ":")),
    Kind("time", _time(0)),
    Kind("time(1)", _time(1), log=lambda text: text),
    Kind("time(3)", _time(3)),
    Kind("time(6)", _time(6)),
    Kind("datetime", _moment(0, FIRST, LAST, "0000-00-00 00:00:00")),
    Kind("datetime(1)", _moment(1, FIRST, LAST)),
    Kind("datetime(5)", _moment(5, FIRST, LAST)),
    Kind("datetime(6)", _moment(6, FIRST, LAST, "2024-00-00 00:00:00")),
    Kind("timestamp NULL", _moment(0, EPOCH, END, "0000-00-00 00:00:00"), log=_epoch),
    Kind("timestamp(2) NULL", _moment(2, EPOCH, END), log=_epoch),
    Kind("timestamp(6) NULL", _moment(6, EPOCH, END, "0000-00-00 00:00:00"), log=_epoch),
    Kind("char(70)", lambda chance: chance.choice(WORDS), log=_encoded("utf-8")),
    Kind("varchar(70)", lambda chance: chance.choice(WORDS), log=_encoded("utf-8")),
    Kind("varchar(500)", lambda chance: chance.choice(WORDS) * chance.randint(1, 7), log=_encoded("utf-8")),
    Kind(
        "varchar(20) CHARACTER SET latin1",
        lambda chance: chance.choice(["", "é", "€uro", "abc"]),
        log=_encoded("cp1252"),
    ),
    Kind("varchar(70) CHARACTER SET ucs2", lambda chance: chance.choice(WORDS[:5]), log=_encoded("utf-16-be")),
    Kind(
        "varchar(20) CHARACTER SET sjis",
        lambda chance: chance.choice(EASTERN),
        log=lambda text: text.replace("\\", "＼").encode("shift_jis"),
    ),
    Kind("char(20) CHARACTER SET utf8mb3", lambda chance: chance.choice(WORDS[:5]), log=_encoded("utf-8")),
    Kind("tinytext", lambda chance: chance.choice(WORDS), log=_encoded("utf-8")),
    Kind("text", lambda chance: chance.choice(WORDS) * chance.randint(0, 300), log=_encoded("utf-8")),
    Kind("longtext", lambda chance: "long " * chance.choice([0, 1, 14000]), log=_encoded("utf-8")),
    Kind("binary(5)", _bytes(5), BINARY, lambda text: _hex(text).rstrip(b"\0")),
    Kind("varbinary(300)", _bytes(300), BINARY, _hex),
    Kind("blob", _bytes(2000), BINARY, _hex),
    Kind("longblob", lambda chance: chance.randbytes(chance.choice([0, 10, 70_000])), BINARY, _hex),
    Kind(
        f"enum({', '.join(map(repr, LABELS[:2]))}, 'it''s', '')",
        lambda chance: chance.choice(LABELS),
        log=lambda text: LABELS.index(text) + 1,
    ),
    Kind(
        f"set({', '.join(map(repr, MEMBERS))})",
        lambda chance: ",".join(label for label in MEMBERS if chance.random() < 0.5),
        log=lambda text: sum(1 << bit for bit, label in enumerate(MEMBERS) if label in text.split(",")),
    ),
    Kind("json", lambda chance: chance.choice(['{"a": [1, null]}', '"é"', "[]"]), log=_encoded("utf-8")),
)


def create_table(table: str) -> str:
    """The statement that creates a table with all types; the columns are named k0, k1 …"""
    columns = ", ".join(f"k{number} {kind.type}" for number, kind in enumerate(KINDS))
    return f"CREATE TABLE {table} (id int PRIMARY KEY, {columns}) CHARACTER SET utf8mb4"


def random_row(chance: random.Random) -> list[Value]:
    """A value for each column; about every fifth is NULL."""
    return [None if chance.random() < 0.2 else kind.value(chance) for kind in KINDS]


def expressions() -> str:
    return ", ".join(kind.select.format(f"k{number}") for number, kind in enumerate(KINDS))
