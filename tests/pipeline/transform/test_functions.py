"""The @functions behave as their pages describe."""

from __future__ import annotations

import hashlib
import zlib
from decimal import Decimal

import pytest
from batches import Row, Tx, make_batch
from pipeline.transform.expressions import T, batch_of, image, rows_of, scope, value, values

from ggshell.clock import JULIAN_EPOCH_MICROSECONDS, FakeClock, local_text
from ggshell.errors import GgsError, StatementError
from ggshell.language import pages
from ggshell.language.expressions import FUNCTIONS, parse_expression
from ggshell.pipeline.transform.compiler import compile_expression
from ggshell.pipeline.transform.environment import Environment
from ggshell.pipeline.transform.functions.table import MAKERS
from ggshell.pipeline.transform.values import State, Value
from ggshell.record.image import join_key_update
from ggshell.record.operation import IoType

WHERE_TESTS = {"PRESENT", "ABSENT", "NULL"}
NOT_HERE = {"CONVERTFLOAT"}


def test_every_function_of_the_manual_exists() -> None:
    named = {name.upper() for name in pages.index(FUNCTIONS)}
    assert named - WHERE_TESTS - NOT_HERE == set(MAKERS)


@pytest.mark.parametrize(
    ("text", "given", "expected"),
    [
        ("@STRCAT (name, '-', id)", {"name": "x ", "id": "7"}, "x -7"),
        (r"@STRCAT ('a\x41', '\u00e9\101')", {}, "aAéA"),
        ("@STRCAT (name, 'x')", {"name": None}, State.NULL),
        ("@STRCAT (name, 'x')", {}, State.MISSING),
        ("@STRCMP ('JOHNSON ', 'JOHNSON')", {}, 0),
        ("@STRCMP ('A', 'a')", {}, -1),
        ("@STREQ (name, 'CA')", {"name": "CA  "}, 1),
        ("@STREQ (name, 'CA')", {"name": "ca"}, 0),
        ("@STREXT (name, 1, 3)", {"name": "(555) 1234"}, "(55"),
        ("@STREXT ('abcdef', 2, 2)", {}, "b"),
        ("@STREXT ('abcdef', 4, 99)", {}, "def"),
        ("@STREXT ('abcdef', 4, 2)", {}, ""),
        ("@STREXT ('äöü', 2, 3)", {}, "öü"),
        ("@STRFIND ('ABC123ABC', '23')", {}, 5),
        ("@STRFIND ('ABC123ABC', 'ABC', 2)", {}, 7),
        ("@STRFIND ('äb', 'b')", {}, 3),
        ("@STRFIND ('abc', 'z')", {}, 0),
        ("@STRLEN ('ab ä')", {}, 4),
        ("@STRLTRIM ('  x ')", {}, "x "),
        ("@STRRTRIM ('  x ')", {}, "  x"),
        ("@STRTRIM ('  x y ')", {}, "x y"),
        ("@STRUP (name)", {"name": "straße"}, "STRASSE"),
        ("@STRNCAT ('ABCDEF', 3, '123456', 3)", {}, "ABC123"),
        ("@STRNCMP ('JOHNSON', 'JONES', 2)", {}, 0),
        ("@STRNCMP ('JOHNSON', 'JONES', 3)", {}, -1),
        ("@STRNUM (id, LEFT, 4)", {"id": "15"}, "15"),
        ("@STRNUM (id, LEFTSPACE, 4)", {"id": "15"}, "15  "),
        ("@STRNUM (id, RIGHT, 4)", {"id": "15"}, "  15"),
        ("@STRNUM (id, RIGHTZERO, 4)", {"id": "15"}, "0015"),
        ("@STRNUM (price, RIGHT, 6)", {"price": "-1.27"}, "  -1.27"),
        ("@STRNUM (price, RIGHTZERO, 6)", {"price": "-1.27"}, "-001.27"),
        ("@STRSUB ('123ABC123', 'A', 'z', '1', '0')", {}, "023zBC023"),
        (r"@STRSUB (name, '\x1A', ' ')", {"name": "a\x1ab"}, "a b"),
        ("@VALONEOF (name, 'CA', 'NY')", {"name": "NY "}, 1),
        ("@VALONEOF (name, 'CA', code)", {"name": "X", "code": "X"}, 1),
        ("@VALONEOF (name, 'CA', code)", {"name": "X", "code": None}, 0),
        ("@VALONEOF (name, 'CA')", {"name": None}, State.NULL),
    ],
)
def test_text_functions(text: str, given: dict[str, str | None], expected: Value) -> None:
    assert value(text, **given) == expected


def test_strnum_fills_up_to_the_length_of_the_target_column() -> None:
    assert value("@STRNUM (id, RIGHTZERO)", length=6, id="15") == "000015"
    assert value("@STRNUM (id, RIGHTZERO)", id="15") == "15"


@pytest.mark.parametrize(
    ("text", "given", "expected"),
    [
        ("@COMPUTE (price + 0.1)", {"price": "0.2"}, Decimal("0.3")),
        ("@COMPUTE (id * 2)", {"id": "21"}, 42),
        (r"@COMPUTE (id \ 10)", {"id": "-27"}, -7),
        ("@COMPUTE (7 / 2)", {}, Decimal("3.5")),
        ("@COMPUTE (1 / 0)", {}, State.INVALID),
        ("@COMPUTE (name + 1)", {"name": "x"}, State.INVALID),
        ("@COMPUTE (name + 1)", {"name": "2"}, 3),
        ("@COMPUTE ((id > 0) AND (price < 3))", {"id": "1", "price": "2"}, 1),
        ("@COMPUTE ((id < 0) OR (id > 10))", {"id": "5"}, 0),
        ("@COMPUTE (id + price)", {"id": "5", "price": None}, State.NULL),
        ("@COMPUTE (id + price)", {"id": None}, State.MISSING),
        ("@NUMSTR ('-1.5E3 ')", {}, Decimal(-1500)),
        ("@NUMSTR (name)", {"name": "007"}, 7),
        ("@NUMSTR (name)", {"name": ""}, State.INVALID),
        ("@NUMBIN (data)", {"data": "\\x0102"}, 258),
        ("@NUMBIN (data)", {"data": "\\x"}, State.INVALID),
        ("@BINTOHEX ('12345')", {}, "3132333435"),
        ("@BINTOHEX (data)", {"data": "\\xff0a"}, "FF0A"),
        ("@HEXTOBIN ('414243')", {}, b"ABC"),
        ("@HEXTOBIN ('41424')", {}, State.INVALID),
        ("@BINARY (data)", {"data": "\\x00ff"}, b"\x00\xff"),
        ("@HIGHVAL (3)", {}, b"\xff\xff\xff"),
        ("@LOWVAL (2)", {}, b"\0\0"),
        ("@LOWVAL ()", {}, State.INVALID),
        ("@OGG_SHA1 (name)", {"name": "abc"}, hashlib.sha1(b"abc", usedforsecurity=False).digest()),
    ],
)
def test_number_and_byte_functions(text: str, given: dict[str, str | None], expected: Value) -> None:
    assert value(text, **given) == expected


@pytest.mark.parametrize(
    ("text", "given", "expected"),
    [
        ("@IF (id > 5, 'much', 'little')", {"id": "6"}, "much"),
        ("@IF (id > 5, 'much', 'little')", {"id": "5"}, "little"),
        ("@IF (id > 5, price, name)", {"id": None}, State.NULL),
        ("@IF (id > 5, price, name)", {"id": "1", "name": "n"}, "n"),
        ("@IF (@COLTEST (price, PRESENT) AND price > 5, 1, 0)", {}, 0),
        ("@IF (name = 'CA', 1, 0)", {"name": "CA "}, 1),
        ("@CASE (name, 'NO', 'north', 'IT', 'south')", {"name": "IT"}, "south"),
        ("@CASE (name, 'NO', 'north', 'IT', 'south')", {"name": "X"}, State.MISSING),
        ("@CASE (id, 1, 'open', 2, 'paid', 'unknown')", {"id": "3"}, "unknown"),
        ("@CASE (price, 1, 'one')", {"price": "1.00"}, "one"),
        ("@CASE (name, 'A', 1, 2)", {"name": None}, State.NULL),
        ("@EVAL (id > 10, 'big', id > 5, 'middle', 'small')", {"id": "7"}, "middle"),
        ("@EVAL (id > 10, 'big')", {"id": "7"}, State.MISSING),
        ("@COLTEST (price, NULL, MISSING)", {"price": None}, 1),
        ("@COLTEST (price, PRESENT)", {"price": "1"}, 1),
        ("@COLTEST (price, INVALID)", {"price": "x"}, 1),
        ("@COLTEST (price, NAN)", {"price": "NaN"}, 1),
        ("@COLTEST (price, INF)", {"price": "-Infinity"}, 1),
        ("@COLSTAT (NULL)", {}, State.NULL),
        ("@COLSTAT (INFINITY)", {}, "Infinity"),
        ("@IF (price < 0, @COLSTAT (MISSING), price)", {"price": "-1"}, State.MISSING),
        ("name = @NULL", {"name": None}, 1),
        ("name <> @PRESENT", {}, 1),
        ("name = @ABSENT", {"name": None}, 0),
        ("NOT (id = 1)", {"id": "1"}, 0),
    ],
)
def test_conditional_functions(text: str, given: dict[str, str | None], expected: Value) -> None:
    assert value(text, **given) == expected


@pytest.mark.parametrize(
    ("text", "given", "expected"),
    [
        ("@DATE ('YYYY-MM-DD', 'YYMMDD', name)", {"name": "261121"}, "2026-11-21"),
        ("@DATE ('YYYY-MM-DD', 'YYMMDD', id)", {"id": "10203"}, "2001-02-03"),
        ("@DATE ('YYYY-MM-DD', 'YYMMDD', name)", {"name": "500101"}, "1950-01-01"),
        ("@DATE ('YYYY-MM-DD', 'YYYY-MM-DD', name)", {"name": "2026-02-30"}, State.INVALID),
        (
            "@DATE ('DD.MM.YYYY HH:MI', 'YYYY-MM-DD HH:MI:SS', made)",
            {"made": "2026-11-21 07:08:09"},
            "21.11.2026 07:08",
        ),
        (
            "@DATE ('YYYY-MM-DD HH:MI:SS', 'YY', id, 'MM', '3', 'DD', '4', 'HH', '5', 'MI', '6', 'SS', '7')",
            {"id": "26"},
            "2026-03-04 05:06:07",
        ),
        ("@DATE ('MMM DDD DOWA DOW0', 'YYYY-MM-DD', '2026-11-21')", {}, "NOV 325 SAT 6"),
        ("@DATE ('YYYY-MM-DD', 'CC', '19', 'YY', '05', 'MM', '1', 'DD', '2')", {}, "1905-01-02"),
        ("@DATE ('JUL', 'YYYY-MM-DD', '1970-01-01')", {}, 2440588),
        ("@DATE ('JTSLCT', 'YYYY-MM-DD', '1970-01-01')", {}, JULIAN_EPOCH_MICROSECONDS),
        (
            "@DATE ('YYYY-MM-DD HH:MI:SS.FFFFFF', 'YYYY-MM-DD HH:MI:SS.FFFFFF', name)",
            {"name": "2026-01-02 03:04:05.5"},
            "2026-01-02 03:04:05.500000",
        ),
        (
            "@DATE ('YYYY-MM-DD HH:MI:SS', 'JTS', @DATE ('JTS', 'YYYY-MM-DD HH:MI:SS', made))",
            {"made": "2026-07-01 12:00:00"},
            "2026-07-01 12:00:00",
        ),
        ("@DATE ('YYYY', 'HH', '3')", {}, State.INVALID),
        ("@DATE ('PHAMIS', 'YYYY-MM-DD', '1970-01-01')", {}, State.INVALID),
        ("@DATEDIFF ('SS', '2011-01-01', '2011-01-01 00:01:00')", {}, 60),
        ("@DATEDIFF ('DD', '2011-01-02:23:59', '2011-01-01 00:00')", {}, -1),
        ("@DATEDIFF ('DD', made, '2011-01-01')", {"made": "soon"}, State.INVALID),
    ],
)
def test_date_functions(text: str, given: dict[str, str | None], expected: Value) -> None:
    assert value(text, **given) == expected


def test_functions_of_row_images() -> None:
    deleted = batch_of([{"id": "1"}], IoType.DELETE)
    assert values("@BEFORE (id)", deleted) == values("BEFORE.id", deleted) == values("id", deleted) == ["1"]
    assert values("@AFTER (id)", deleted) == [State.MISSING]
    assert values("@BEFOREAFTER (id)", batch_of([{"id": "2"}])) == ["2"]
    assert values("@BEFORE (id)", batch_of([{"id": "2"}])) == [State.MISSING]


def test_functions_of_the_process_environment() -> None:
    clock = FakeClock()
    known = Environment(
        clock, {"GROUPNAME": "REP1"}, lambda table, kind: 7 if (table, kind) == ("b.t", "INSERTS") else 9
    )
    batch = batch_of([{"id": "1"}, {"id": "2"}])
    clock.advance(2)
    assert values("@GETENV ('GGENVIRONMENT', 'GROUPNAME')", batch, known) == ["REP1"] * 2
    assert values("@GETENV ('LAG')", batch, known) == [1, 1]
    assert values("@GETENV ('STATS', 'TABLE', 'b.t', 'INSERTS')", batch, known) == [7, 7]
    assert values("@GETENV ('GGHEADER', 'OPTYPE')", batch, known) == ["INSERT"] * 2
    assert values("GGS_OP_TYPE", batch, known) == ["INSERT"] * 2
    assert values("@GETENV ('GGHEADER', 'TRANSACTIONINDICATOR')", batch, known) == ["BEGIN", "END"]
    assert values("@GETENV ('RECORD', 'RSN')", batch, known) == [1, 2]
    assert values("@GETENV ('TRANSACTION', 'CSN')", batch, known) == ["00000000/0000000A"] * 2
    assert values("@GETENV ('LASTERR', 'DBERRNUM')", batch, known) == [0, 0]
    assert values("@DATENOW ()", batch, known) == [local_text(clock.now())] * 2
    assert values("@TOKEN ('TK')", batch, known) == [State.MISSING] * 2


def test_delta_statistics_start_at_zero_after_each_call() -> None:
    counts = iter([5, 12])
    known = Environment(FakeClock(), count=lambda table, kind: next(counts))
    node = compile_expression(parse_expression("@GETENV ('DELTASTATS', 'INSERTS')"), scope(known))
    rows = rows_of(batch_of([{"id": "1"}]))
    assert [node.evaluate(rows), node.evaluate(rows)] == [[5], [7]]


def test_each_row_belongs_to_exactly_one_range() -> None:
    batch = batch_of([{"id": str(number)} for number in range(100)])
    parts = [values(f"@RANGE ({part}, 3)", batch) for part in (1, 2, 3)]
    assert [sum(int(str(each)) for each in row) for row in zip(*parts, strict=True)] == [1] * 100
    assert parts[0][7] == int(zlib.crc32(b"7\0") % 3 == 0)
    with pytest.raises(GgsError, match="NULL or missing"):
        values("@RANGE (1, 3, price)", batch)


@pytest.mark.parametrize(
    "text",
    [
        "nothing",
        "@RANGE (4, 3)",
        "@GETENV ('NOTHING')",
        "other.column",
        "@STRCAT ('a', '\\x00')",
        "id > @NULL",
        "made > '2026-01-01'",
        "'b' <= name",
    ],
)
def test_an_invalid_expression_is_refused_with_its_position(text: str) -> None:
    with pytest.raises(StatementError) as caught:
        value(text, id="1")
    assert caught.value.column >= 1


@pytest.mark.parametrize("count", [1, 20])
def test_a_column_that_only_the_before_image_has_is_unchanged(count: int) -> None:
    """An update does not repeat a large value; with LOGALLSUPCOLS its before image has it."""
    both = join_key_update(image({"id": "1", "name": "large", "code": "old"}), image({"id": "1", "code": None}))
    batch = make_batch([Tx(10, [Row(T, IoType.UNIFIED_UPDATE, both)] * count)])
    assert values("@STRLEN (name)", batch) == [5] * count
    assert values("@STRCAT (name, '-', id)", batch) == ["large-1"] * count
    assert values("@IF (@COLTEST (code, NULL), 'null', code)", batch) == ["null"] * count
    assert values("@COLTEST (price, MISSING)", batch) == [1] * count
