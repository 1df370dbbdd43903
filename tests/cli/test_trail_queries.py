"""TRAIL SQL, COUNT, FIND, TOP and GAPS as statements: answers and refusals, without starting Spark."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from batches import Row, Tx, make_batch
from cli.shell import Shell

from ggshell.cli.commands.trail_queries import key_values
from ggshell.cli.output.tables import cell_text
from ggshell.cli.trail_queries import answer_text
from ggshell.clock import FakeClock
from ggshell.errors import UsageError
from ggshell.query.views import QueryAnswer
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.image import encode_image
from ggshell.record.operation import IoType
from ggshell.trail.fileheader import Producer
from ggshell.trail.name import TrailName
from ggshell.trail.writer import TrailWriter
from ggshell.types import TableName

ORDERS = TableDefinition(
    TableName("shop", "orders"), (Column("order_id", "bigint", 20), Column("name", "text", 25)), (0,)
)


def write(shell: Shell, trail: str, changes: list[tuple[int, int, bytes]]) -> TrailName:
    """Write a trail with one change per transaction: order number, operation, name."""
    shell.home.ensure()
    name = TrailName.parse(trail, shell.home.root)
    producer = Producer("EXT1", "Extract", "PostgreSQL", "n", "18")
    writer = TrailWriter.open(name, clock=FakeClock(), producer=producer, max_bytes=1000)
    for csn, (number, kind, text) in enumerate(changes, 1):
        image = encode_image([(0, str(number).encode()), (1, text)])
        writer.write(make_batch([Tx(csn, [Row(ORDERS, kind, image)])]))
        writer.flush()
    writer.close()
    return name


@pytest.fixture
def trail(shell: Shell) -> TrailName:
    """Ten orders, each inserted and then updated."""
    both = ((IoType.INSERT, b"new"), (IoType.FIELD_COMP, b"it's"))
    return write(shell, "./dirdat/ea", [(number, kind, text) for number in range(10) for kind, text in both])


def test_count_returns_a_table_with_totals(shell: Shell, trail: TrailName) -> None:
    answer = shell.batch("TRAIL COUNT FROM ./dirdat/ea")
    assert (answer.code, answer.err) == (0, "")
    assert "shop   orders  FieldComp" in answer.out
    assert "20 records, 410 bytes of data, 20 transactions begin in it" in answer.out
    assert "pyspark" not in sys.modules or "(local, " in answer.out


def test_sql_queries_all_trails_or_one_by_name(shell: Shell, trail: TrailName) -> None:
    statement = (
        'TRAIL SQL "select t.op, count(*) as n from trail t join ea e on e.rba = t.rba and e.seqno = t.seqno'
        " where element_at(t.columns, 'name') <> 'it''s' group by t.op\" FROM ./dirdat"
    )
    found = shell.run("--format", "json", "-c", statement).objects[0]
    assert (found["columns"], found["rows"]) == (["op", "n"], [["Insert", 10]])


def test_an_error_in_sql_is_shown_with_its_position(shell: Shell, trail: TrailName) -> None:
    answer = shell.batch("TRAIL SQL 'select opp from trail' FROM ./dirdat/ea")
    assert answer.code == 1
    assert '"op"' in answer.err
    assert answer.err.startswith('ERROR: Referenced column "opp" not found')
    assert "  select opp from trail\n         ^\n" in answer.err
    assert "Traceback" not in answer.err


def test_sql_on_an_unknown_view_lists_the_views(shell: Shell, trail: TrailName) -> None:
    """Regression: the hint was a table of DuckDB's own catalog."""
    answer = shell.batch("TRAIL SQL 'select op from trial' FROM ./dirdat/ea")
    assert answer.err.startswith("ERROR: the view trial does not exist")
    assert "  Hint: the views are trail, ea\n" in answer.err
    assert "pg_" not in answer.err


@pytest.mark.parametrize(
    ("statement", "part"),
    [
        ("TRAIL SQL 'drop table trail' FROM ./dirdat/ea", "TRAIL SQL accepts only SELECT and WITH"),
        ("TRAIL COUNT FROM ./dirdat/zz", "is not a trail"),
        ("TRAIL COUNT FROM ./GLOBALS", "is not a trail"),
        ("TRAIL COUNT FROM ./dirdat/ea, ONLY shop.order", "it has shop.orders"),
        ("TRAIL FIND TABLE shop.orders KEY (1, 2) FROM ./dirdat/ea", "does not match the key (order_id)"),
        ("TRAIL FIND TABLE shop.orders KEY (99) FROM ./dirdat/ea", "no row of shop.orders"),
        ("TRAIL FIND TRANSACTION 1 FROM ./dirdat/ea", "transaction 1 was not found"),
        ("TRAIL FIND CSN zz FROM ./dirdat/ea", "zz"),
    ],
)
def test_an_invalid_query_is_refused_with_the_reason(shell: Shell, trail: TrailName, statement: str, part: str) -> None:
    (shell.home.root / "GLOBALS").touch()
    answer = shell.batch(statement)
    assert answer.code != 0
    assert part in answer.err


@pytest.mark.parametrize(("csn", "rows"), [("0", 0), ("1", 1), ("0/1", 1), ("00000000/00000005", 3), ("999", 10)])
def test_a_csn_can_be_a_number_or_in_the_format_of_the_trail(
    shell: Shell, trail: TrailName, csn: str, rows: int
) -> None:
    found = shell.run("--format", "json", "-c", f"TRAIL ASOF CSN {csn}, TABLE shop.orders, FROM ./dirdat/ea").objects[0]
    assert len(found["rows"]) == rows


def test_a_transaction_is_found_by_its_csn_as_a_number(shell: Shell, trail: TrailName) -> None:
    answer = shell.batch("TRAIL FIND CSN 20 FROM ./dirdat/ea")
    assert (answer.code, answer.err) == (0, "")
    assert "00000000/00000014" in answer.out


def test_a_transaction_that_is_not_found_might_be_in_the_unread_end(shell: Shell, trail: TrailName) -> None:
    last = trail.file(trail.sequences()[-1])
    last.write_bytes(last.read_bytes()[:-20])
    answer = shell.batch("TRAIL FIND CSN 20 FROM ./dirdat/ea")
    assert answer.code == 1
    assert "no transaction has CSN 20" in answer.err
    assert "GGS-00710" in answer.out + answer.err


def test_damage_is_reported_with_its_position_and_without_a_traceback(shell: Shell, trail: TrailName) -> None:
    content = bytearray(trail.file(1).read_bytes())
    content[-30] ^= 0xFF
    trail.file(1).write_bytes(content)
    answer = shell.batch("TRAIL COUNT FROM ./dirdat/ea")
    assert answer.code == 1
    assert answer.err.startswith(f"ERROR: trail file {trail.file(1)} is damaged at RBA ")
    assert answer.err.count("\n") == 2
    assert "Traceback" not in answer.err


def test_a_row_is_found_by_its_key(shell: Shell, trail: TrailName) -> None:
    statement = "TRAIL FIND TABLE SHOP.ORDERS KEY (ORDER_ID = 3) FROM ./dirdat/ea"
    found = shell.run("--format", "json", "-c", statement).objects[0]
    place = found["columns"].index
    assert [row[place("columns")] for row in found["rows"]] == [
        {"order_id": "3", "name": "new"},
        {"order_id": "3", "name": "it's"},
    ]


def test_top_has_three_sections_or_one(shell: Shell, trail: TrailName) -> None:
    assert "Top 2 minutes" in shell.batch("TRAIL TOP 2 FROM ./dirdat/ea").out
    found = shell.run("--format", "json", "-c", "TRAIL TOP 2 FROM ./dirdat/ea").objects[0]
    assert [row[0] for row in found["rows"]] == ["transactions", "transactions", "tables", "minutes"]
    assert [row[2] for row in found["rows"]][2] == "shop.orders"
    found = shell.run("--format", "json", "-c", "TRAIL TOP 1 FROM ./dirdat/ea BY TABLES").objects[0]
    assert found["rows"][0][:3] == ["shop", "orders", 20]


def test_asof_shows_the_former_rows_and_reports_unknown_ones(shell: Shell, trail: TrailName) -> None:
    statement = "TRAIL ASOF CSN 0/{:X}, TABLE shop.orders, FROM ./dirdat/ea"
    found = shell.run("--format", "json", "-c", statement.format(5)).objects[0]
    assert (found["columns"], found["rows"]) == (["order_id", "name"], [["0", "it's"], ["1", "it's"], ["2", "new"]])
    assert found["message"] == ""
    write(shell, "./dirdat/eb", [(7, IoType.FIELD_COMP, b"old")])
    answer = shell.batch("TRAIL ASOF CSN 0/1, TABLE shop.orders, FROM ./dirdat/eb")
    assert (answer.code, "1 of these rows existed before the trail began" in answer.err) == (0, True)
    late = shell.batch("TRAIL ASOF TIME 2000-01-01, TABLE shop.orders, FROM ./dirdat/ea")
    assert "0 rows (local" in late.out
    assert "10 rows (local" in shell.batch("TRAIL ASOF TIME NOW, TABLE shop.orders, FROM ./dirdat/ea").out


def test_gaps_set_the_exit_code(shell: Shell, trail: TrailName) -> None:
    assert shell.batch("TRAIL GAPS FROM ./dirdat/ea").code == 0
    trail.file(1).unlink()
    answer = shell.batch("TRAIL GAPS FROM ./dirdat/ea")
    assert answer.code == 1
    assert "GAP  files" in answer.out
    assert "something is missing or wrong" in answer.err


def test_unread_bytes_are_reported(shell: Shell, trail: TrailName) -> None:
    last: Path = trail.file(max(trail.sequences()))
    size = last.stat().st_size
    with last.open("ab") as file:
        file.write(b"torn")
    answer = shell.batch("TRAIL COUNT FROM ./dirdat/ea")
    assert answer.code == 0
    assert f"is read up to RBA {size:,}; 4 bytes after it" in answer.err


def test_queries_are_not_logged(shell: Shell, trail: TrailName) -> None:
    shell.batch("TRAIL COUNT FROM ./dirdat/ea")
    log = shell.home.root / "ggserr.log"
    assert not log.exists() or "TRAIL COUNT" not in log.read_text()


@pytest.mark.parametrize(
    ("body", "values"),
    [
        ("(1, 'a, b')", ("1", "a, b")),
        ("(B = 'it''s', a = 1)", ("1", "it's")),
        ("(NULL, 'NULL')", (None, "NULL")),
        ('("a" = "x=y", b = null)', ("x=y", None)),
    ],
)
def test_keys_are_parsed(body: str, values: tuple[str | None, ...]) -> None:
    assert key_values(body, ("a", "b")) == (("a", "b"), values)


@pytest.mark.parametrize("body", ["()", "(1)", "(1, 2, 3)", "(a = 1, a = 2)", "(a = 1, c = 2)"])
def test_invalid_keys_are_refused(body: str) -> None:
    with pytest.raises(UsageError, match=r"does not match the key \(a, b\)"):
        key_values(body, ("a", "b"))


def test_the_text_reports_truncated_values_and_where_to_see_them_in_full() -> None:
    whole, cut = (answer_text(QueryAnswer(("columns",), [("x" * size,)], "local", 0.1)) for size in (60, 61))
    assert "--format vertical" not in whole
    assert "x" * 57 + "...\n" in cut
    assert "--format vertical" in cut
    assert cell_text("2026-11-21T18:21:00.000000+00:00") == "2026-11-21 18:21:00"
