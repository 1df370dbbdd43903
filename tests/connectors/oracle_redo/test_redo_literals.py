"""Literals and statements as LogMiner prints them, by table and by property: they are parsed to the printed values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ggshell.connectors.oracle_redo.literals import UNSUPPORTED, value_of
from ggshell.connectors.oracle_redo.sql import ROWID, parse_delete, parse_insert, parse_update
from ggshell.demo.redo_writer import literal
from ggshell.errors import CaptureError
from ggshell.types import quote

LITERALS = {
    "NULL": None,
    "'a'": "a",
    "''": None,
    "'it''s'": "it's",
    "''''": "'",
    "' '": " ",
    "12": "12",
    "-1.5E+003": "-1.5E+003",
    ".5": ".5",
    "Unsupported Type": UNSUPPORTED.decode(),
    "HEXTORAW('DEAD01')": r"\xdead01",
    "HEXTORAW('')": None,
    "EMPTY_CLOB()": "",
    "EMPTY_BLOB()": "",
    r"UNISTR('gr\00fc\00dfe')": "grüße",
    r"UNISTR('\D83D\DE00 \\')": "😀 \\",
    r"UNISTR('\00e9')||'a'||UNISTR('\00e8')": "éaè",
    "'a'||'b'": "ab",
    "'x''y' || 'z'": "x'yz",
    "N'n'": "n",
    "TO_DATE('2026-11-20 08:00:00', 'YYYY-MM-DD HH24:MI:SS')": "2026-11-20 08:00:00",
    "TO_DATE(' 2026-11-20 08:00:00', 'SYYYY-MM-DD HH24:MI:SS')": "2026-11-20 08:00:00",
    "TO_DATE('-0044-03-15 00:00:00', 'SYYYY-MM-DD HH24:MI:SS')": "0044-03-15 00:00:00 BC",
    "TO_DATE('20-NOV-26','DD-MON-RR')": "2026-11-20 00:00:00",
    "TO_DATE('20-NOV-76')": "1976-11-20 00:00:00",
    "TO_DATE('11/20/2026 11:05:06 PM','MM/DD/YYYY HH:MI:SS AM')": "2026-11-20 23:05:06",
    "TO_DATE('12:30 AM 2026.01.02','HH:MI AM YYYY.MM.DD')": "2026-01-02 00:30:00",
    "TO_TIMESTAMP('2020-02-01 00:00:00.')": "2020-02-01 00:00:00",
    "TO_TIMESTAMP('20-NOV-26 08.00.00.123456 AM','DD-MON-RR HH.MI.SS.FF AM')": "2026-11-20 08:00:00.123456",
    "TO_TIMESTAMP('20-NOV-26 08.00.00.123456 AM','DD-MON-RR HH.MI.SSXFF AM')": "2026-11-20 08:00:00.123456",
    "TO_TIMESTAMP_TZ('2026-11-20 08:00:00.5 +02:00','YYYY-MM-DD HH24:MI:SS.FF TZH:TZM')": "2026-11-20 08:00:00.5+02:00",
    "TO_TIMESTAMP_TZ('2026-11-20 08:00:00 UTC')": "2026-11-20 08:00:00+00:00",
    "TIMESTAMP '2026-11-20 08:00:00'": "2026-11-20 08:00:00",
    "DATE '2026-11-20'": "2026-11-20 00:00:00",
    "TO_DATE('no date','YYYY-MM-DD')": UNSUPPORTED.decode(),
    "TO_DSINTERVAL('+05 10:00:00.5')": "+05 10:00:00.5",
    "TO_YMINTERVAL('+01-02')": "+01-02",
    "TO_BINARY_DOUBLE('1.5')": "1.5",
    "SOMETHING_NEW('x')": UNSUPPORTED.decode(),
}


@pytest.mark.parametrize("text", LITERALS)
def test_a_literal_is_parsed_to_its_value(text: str) -> None:
    expected = LITERALS[text]
    assert value_of(text.encode()) == (None if expected is None else expected.encode())
    sql = f'insert into "A"."B"("X","Y","Z") values (\'1\',{text},NULL);'
    assert [value for _, value in parse_insert(sql.encode()).assigned] == [b"1", value_of(text.encode()), None]


TEXTS = st.one_of(st.none(), st.text(min_size=1, max_size=40).filter(lambda text: not text.startswith("=")))
NAMES = st.text(min_size=1, max_size=20).filter(lambda name: "\0" not in name)
ROWS = st.dictionaries(NAMES, TEXTS, min_size=1, max_size=8)
SPACES = st.sampled_from(["", " ", "\n  ", "\t"])


def expected(row: dict[str, str | None]) -> list[tuple[bytes, bytes | None]]:
    return [(name.encode(), None if value is None else value.encode()) for name, value in row.items()]


@given(ROWS, NAMES, NAMES, SPACES)
def test_an_insert_is_parsed_to_the_printed_row(row: dict[str, str | None], owner: str, table: str, space: str) -> None:
    names = f",{space}".join(map(quote, row))
    values = f"{space},{space}".join(map(literal, row.values()))
    sql = f"insert into {quote(owner)}.{quote(table)}{space}({names}) values ({values}){space};"
    assert parse_insert(sql.encode()).assigned == expected(row)


@given(ROWS, ROWS, SPACES, st.booleans())
def test_an_update_is_parsed_to_the_printed_rows(
    new: dict[str, str | None], old: dict[str, str | None], space: str, rowid: bool
) -> None:
    changes = f",{space or ' '}".join(f"{quote(name)} = {literal(value)}" for name, value in new.items())
    parts = [quote(name) + (f" = {literal(value)}" if value is not None else " IS NULL") for name, value in old.items()]
    parts += ["ROWID = 'AAAB'"] if rowid else []
    sql = f'update "A"."B" set {changes} where {f" and{space or chr(32)}".join(parts)};'
    found = parse_update(sql.encode())
    assert found.assigned == expected(new)
    assert found.where == expected(old) + ([(ROWID, b"AAAB")] if rowid else [])


@given(ROWS, st.sampled_from([";", "", " ;"]))
def test_a_delete_is_parsed_to_the_printed_row(old: dict[str, str | None], end: str) -> None:
    parts = [quote(name) + (f" = {literal(value)}" if value is not None else " IS NULL") for name, value in old.items()]
    found = parse_delete(f'delete from "A"."B" where {" and ".join(parts)}{end}'.encode())
    assert found.where == expected(old)


@given(st.binary(max_size=200))
def test_text_that_is_not_a_statement_is_refused(junk: bytes) -> None:
    for parse in (parse_insert, parse_update, parse_delete):
        with pytest.raises(CaptureError):
            parse(junk)


@pytest.mark.parametrize(
    "sql",
    [
        'insert into "A"."B"("X") values (\'1\',\'2\');',
        'insert into "A"."B"("X","Y") values (\'1\');',
        'insert into "A"."B"("X") values (\'1\') and more;',
        'insert into "A"."B"("X") values (XMLTYPE(\'<a/>\', 1);',
        'insert into "A"."B"("X") values (\'1\' \'2\');',
        'delete from "A"."B"',
        'update "A"."B" set "X" = \'1\'',
        'update "A"."B" set "X" = \'1\' and "Y" = \'2\' where "X" = \'1\';',
        'delete from "A"."B" where "X" = \'1\' or "Y" = \'2\';',
        'delete from "A"."B" where "X" = \'unfinished;',
    ],
)
def test_an_incomplete_statement_is_refused(sql: str) -> None:
    parse = {"i": parse_insert, "u": parse_update, "d": parse_delete}[sql[0]]
    with pytest.raises(CaptureError, match="SQL_REDO cannot be read"):
        parse(sql.encode())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/* JSON */ EMPTY_BLOB()", UNSUPPORTED),
        ("/* JSON */ HEXTORAW('7b2261223a317d')", b'{"a":1}'),
        ("/* JSON */ HEXTORAW('ff4a5a01')", UNSUPPORTED),
        ("/* a comment */ HEXTORAW('0A')", b"\\x0a"),
        ("Infinity", b"Infinity"),
        ("-Infinity", b"-Infinity"),
        ("Nan", b"NaN"),
        ("XMLTYPE('<a/>', 1)", UNSUPPORTED),
        ('"MDSYS"."SDO_GEOMETRY"(2001, NULL, "MDSYS"."SDO_POINT_TYPE"(1.5, -2, NULL), NULL, NULL)', UNSUPPORTED),
        ("SHOP.LIST_T('it''s (1', 'b)', OBJ(1))", UNSUPPORTED),
    ],
)
def test_other_values_of_logminer_are_parsed_or_unsupported(text: str, expected: bytes) -> None:
    inserted = parse_insert(f'insert into "A"."B"("X","Y","Z") values (\'1\', {text},NULL);'.encode()).assigned
    assert [value for _, value in inserted] == [b"1", expected, None]
    updated = parse_update(f'update "A"."B" set "X" = {text}, "Y" = \'2\' where "K" = {text} and "L" IS NULL;'.encode())
    assert updated.assigned == [(b"X", expected), (b"Y", b"2")]
    assert updated.where == [(b"K", expected), (b"L", None)]


def test_statements_without_a_where_clause_have_no_key_values() -> None:
    assert parse_update(b'update "A"."B" set "X" = \'1\', "Y" = NULL;') == ([(b"X", b"1"), (b"Y", None)], [])
    assert parse_delete(b'delete from "A"."B";') == ([], [])
