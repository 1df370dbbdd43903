"""Queries of trails: correct by what was written, and the same rows from both engines."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from batches import Row
from both_engines import local_engine, spark_engine
from trail_samples import (
    BEGIN,
    EMPLOYEES,
    delete,
    insert,
    key_update,
    random_transactions,
    trail_in,
    update,
    write_trail,
)

from ggshell.query.queries import counts, finding, gaps
from ggshell.query.queries.trails import QueriedTrails, TrailSpan, trails
from ggshell.query.session import WarmSession
from ggshell.query.views import QueryAnswer
from ggshell.record.image import decode_image
from ggshell.record.operation import IoType
from ggshell.types import Csn, TableName

TABLE = TableName("hr", "employees")
HALF = TrailSpan(since=BEGIN + 60_000, until=BEGIN + 120_000, table=TABLE)
QUERIES: dict[str, Callable[[QueriedTrails], QueryAnswer]] = {
    "count": counts.count,
    **{f"count by {by}": lambda queried, by=by: counts.count(queried, by) for by in ("TABLE", "OP", *counts.PERIODS)},
    "count of a part": lambda queried: counts.count(queried, "MINUTE", HALF),
    "largest transactions": lambda queried: counts.largest_transactions(queried, 7),
    "busiest tables": lambda queried: counts.busiest_tables(queried, 7, HALF),
    "busiest minutes": lambda queried: counts.busiest_minutes(queried, 7),
    "a transaction": lambda queried: finding.find_transaction(queried, xid="717"),
    "a CSN": lambda queried: finding.find_transaction(queried, csn=str(Csn(19))),
    **{f"row {number}": lambda queried, key=str(number): find(queried, key) for number in (1, 9, 20)},
    "gaps": lambda queried: QueryAnswer((), [gaps.gap_values(each) for each in gaps.gaps(queried, 0.001)]),
    "SQL": lambda queried: queried.ask(
        "SQL",
        "select e.table, element_at(e.columns, 'name') as name, e.tokens, r.commit_ts, e.before from ea e"
        " join trail r on r.csn = e.csn and r.rba = e.rba and r.seqno = e.seqno"
        " where map_contains_key(e.columns, 'name') order by e.seqno, e.rba",
    ),
    "SQL with functions that both have": lambda queried: queried.ask(
        "SQL",
        "select concat(e.op, null, 'x') as none, concat(op, ':', csn) as two, regexp_replace(csn, '[0-9]', 'N') as n,"
        " datediff(commit_ts, timestamp '2023-11-01 23:00:00') as days, commit_ts - io_time as span,"
        " commit_ts - timestamp '2023-11-13 00:00:00' as long, columns['body'] like '%\\_%' as one, columns['body']"
        " like '%''\\%' as other, columns['body'] like '%!_%' escape '!' as third, '\\' as kept"
        " from ea e order by seqno, rba",
    ),
    "SQL of a median": lambda queried: queried.ask(
        "SQL", "select op, percentile_approx(length, 0.5) as middle from trail group by op order by op"
    ),
    "SQL of a list": lambda queried: queried.ask(
        "SQL",
        "select count(*) as n, greatest(min(a.rba), min(e.rba)) as r from trail a, /* , */ ea e, ea"
        " where a.rba = e.rba and e.rba = ea.rba and a.seqno = 0 and e.seqno = 0 and ea.seqno = 0",
    ),
    "SQL with a name of its own": lambda queried: queried.ask(
        "SQL",
        "with trail as (select op, rba from ea where seqno = 0), c(n) as (select max(rba) from trail) select n from c",
    ),
}


def find(queried: QueriedTrails, key: str) -> QueryAnswer:
    return finding.find_row(queried, TABLE, ("id",), (key,))


def written(folder: Path, transactions: list[list[Row]], max_bytes: int = 9000) -> QueriedTrails:
    name = trail_in(folder)
    write_trail(name, transactions, max_bytes=max_bytes)
    return trails([str(name)], folder, local_engine())


@pytest.mark.parametrize("query", QUERIES)
def test_both_engines_return_the_same_rows_as_of_a_csn(query: str, warm: WarmSession, tmp_path: Path) -> None:
    seed = random.Random(query).randrange(1000)
    queried = written(tmp_path, random_transactions(seed, 150))
    on_duckdb = QUERIES[query](queried)
    on_spark = QUERIES[query](QueriedTrails(queried.files, spark_engine(warm)))
    assert (on_spark.columns, on_spark.rows) == (on_duckdb.columns, on_duckdb.rows)
    assert len(queried.files) > 3
    assert on_duckdb.rows


def names_of(row: Row) -> tuple[str, str, int]:
    return row.table.name.owner, row.table.name.name, row.io_type


def test_counts_equal_what_was_written(tmp_path: Path) -> None:
    transactions = random_transactions(3, 150)
    answer = counts.count(written(tmp_path, transactions))
    wanted = Counter(names_of(row) for rows in transactions for row in rows)
    kinds = {"Insert": IoType.INSERT, "Delete": IoType.DELETE, "FieldComp": IoType.FIELD_COMP}
    found = {
        (owner, table, int(kinds.get(op, IoType.KEY_FIELD_COMP))): records
        for owner, table, op, records, *_ in answer.rows
    }
    assert found == wanted
    assert sum(row[5] for row in answer.rows) == len(transactions)
    assert sum(row[4] for row in answer.rows) == sum(len(row.data) for rows in transactions for row in rows)


def test_a_time_range_counts_the_transactions_committed_in_it(tmp_path: Path) -> None:
    transactions = random_transactions(4, 150)
    answer = counts.count(written(tmp_path, transactions), "TABLE", HALF)
    wanted = sum(row.table.name == TABLE for rows in transactions[59:119] for row in rows)
    assert [row[:3] for row in answer.rows] == [("hr", "employees", wanted)]


def test_the_largest_transaction_is_found_with_its_position(tmp_path: Path) -> None:
    transactions = [[insert(EMPLOYEES, id=str(csn * 100 + n)) for n in range(csn % 5 + 1)] for csn in range(1, 40)]
    transactions[20] = [insert(EMPLOYEES, id=str(9000 + n)) for n in range(9)]
    queried = written(tmp_path, transactions)
    answer = counts.largest_transactions(queried, 1)
    row = dict(zip(answer.columns, answer.rows[0], strict=True))
    assert (row["csn"], row["records"], row["tables"]) == (str(Csn(21)), 9, 1)
    first = finding.find_transaction(queried, csn=row["csn"])
    place = first.columns.index
    assert (row["seqno"], row["rba"]) == (first.rows[0][place("seqno")], first.rows[0][place("rba")])


def test_a_row_is_followed_through_its_key_changes(tmp_path: Path) -> None:
    def history(answer: QueryAnswer) -> list[tuple[Any, ...]]:
        return [(row[answer.columns.index("csn")][-2:], row[answer.columns.index("op")]) for row in answer.rows]

    queried = written(
        tmp_path,
        [
            [insert(EMPLOYEES, id="1", name="the first 1")],
            [delete(EMPLOYEES, id="1")],
            [insert(EMPLOYEES, id="1", name="a"), insert(EMPLOYEES, id="7", name="another")],
            [key_update(EMPLOYEES, {"id": "1"}, {"id": "2"})],
            [insert(EMPLOYEES, id="1", name="another 1")],
            [update(EMPLOYEES, id="2", name="b"), update(EMPLOYEES, id="7", name="c")],
            [key_update(EMPLOYEES, {"id": "2"}, {"id": "3"})],
            [delete(EMPLOYEES, id="3")],
            [insert(EMPLOYEES, id="3")],
        ],
    )
    lines = [("03", "Insert"), ("04", "GGSKeyFieldComp"), ("06", "FieldComp"), ("07", "GGSKeyFieldComp")]
    assert history(find(queried, "2")) == [*lines, ("08", "Delete")]
    assert history(find(queried, "1")) == [
        ("01", "Insert"),
        ("02", "Delete"),
        *lines[:2],
        ("05", "Insert"),
        *lines[2:],
        ("08", "Delete"),
    ]
    assert history(find(queried, "4")) == []


def test_the_history_of_random_rows_is_complete(tmp_path: Path) -> None:
    """Keys are never reused here, so the history of a row is all records that lead to its key and from it."""
    transactions = random_transactions(5, 120)
    queried = written(tmp_path, transactions)
    rows = [row for each in transactions for row in each if row.table.name == TABLE]
    moved = {}
    for row in rows:
        if row.io_type == IoType.KEY_FIELD_COMP:
            size = int.from_bytes(row.data[:2], "little")
            moved[decode_image(row.data[2 + size :])[0][1]] = decode_image(row.data[2 : 2 + size])[0][1]
    key = next(reversed(moved))
    chain = [key]
    while chain[-1] in moved:
        chain.append(moved[chain[-1]])
    expected = 0
    for row in rows:
        size = int.from_bytes(row.data[:2], "little") + 2 if row.io_type == IoType.KEY_FIELD_COMP else 0
        expected += decode_image(row.data[size:])[0][1] in chain
    assert key is not None
    assert len(find(queried, key.decode()).rows) == expected
