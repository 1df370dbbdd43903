"""Questions about trails: right by what was written, and the same rows from either engine."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from batches import Row
from both import local_engine, spark_engine
from trail_samples import BEGIN, EMPLOYEES, delete, insert, move, random_transactions, trail_in, update, write_trail

from ggshell.query.questions import counts, finding, gaps
from ggshell.query.questions.trails import QueriedTrails, TrailSpan, trails
from ggshell.query.session import WarmSession
from ggshell.query.views import QueryAnswer
from ggshell.record.image import decode_image
from ggshell.record.operation import IoType
from ggshell.types import Csn, TableName

TABLE = TableName("hr", "employees")
HALF = TrailSpan(since=BEGIN + 60_000, until=BEGIN + 120_000, table=TABLE)
QUESTIONS: dict[str, Callable[[QueriedTrails], QueryAnswer]] = {
    "count": counts.count,
    **{f"count by {by}": lambda asked, by=by: counts.count(asked, by) for by in ("TABLE", "OP", *counts.PERIODS)},
    "count of a part": lambda asked: counts.count(asked, "MINUTE", HALF),
    "largest transactions": lambda asked: counts.largest_transactions(asked, 7),
    "busiest tables": lambda asked: counts.busiest_tables(asked, 7, HALF),
    "busiest minutes": lambda asked: counts.busiest_minutes(asked, 7),
    "a transaction": lambda asked: finding.find_transaction(asked, xid="717"),
    "a CSN": lambda asked: finding.find_transaction(asked, csn=str(Csn(19))),
    **{f"row {number}": lambda asked, key=str(number): find(asked, key) for number in (1, 9, 20)},
    "gaps": lambda asked: QueryAnswer((), [gaps.gap_values(each) for each in gaps.gaps(asked, 0.001)]),
    "SQL": lambda asked: asked.ask(
        "SQL",
        "select e.table, element_at(e.columns, 'name') as name, e.tokens, r.commit_ts, e.before from ea e"
        " join trail r on r.csn = e.csn and r.rba = e.rba and r.seqno = e.seqno"
        " where map_contains_key(e.columns, 'name') order by e.seqno, e.rba",
    ),
    "SQL with functions that both have": lambda asked: asked.ask(
        "SQL",
        "select concat(e.op, null, 'x') as none, concat(op, ':', csn) as two, regexp_replace(csn, '[0-9]', 'N') as n,"
        " datediff(commit_ts, timestamp '2023-11-01 23:00:00') as days, commit_ts - io_time as span,"
        " commit_ts - timestamp '2023-11-13 00:00:00' as long, columns['body'] like '%\\_%' as one, columns['body']"
        " like '%''\\%' as other, columns['body'] like '%!_%' escape '!' as third, '\\' as kept"
        " from ea e order by seqno, rba",
    ),
    "SQL of a median": lambda asked: asked.ask(
        "SQL", "select op, percentile_approx(length, 0.5) as middle from trail group by op order by op"
    ),
    "SQL of a list": lambda asked: asked.ask(
        "SQL",
        "select count(*) as n, greatest(min(a.rba), min(e.rba)) as r from trail a, /* , */ ea e, ea"
        " where a.rba = e.rba and e.rba = ea.rba and a.seqno = 0 and e.seqno = 0 and ea.seqno = 0",
    ),
    "SQL with a name of its own": lambda asked: asked.ask(
        "SQL",
        "with trail as (select op, rba from ea where seqno = 0), c(n) as (select max(rba) from trail) select n from c",
    ),
}


def find(asked: QueriedTrails, key: str) -> QueryAnswer:
    return finding.find_row(asked, TABLE, ("id",), (key,))


def written(folder: Path, transactions: list[list[Row]], max_bytes: int = 9000) -> QueriedTrails:
    name = trail_in(folder)
    write_trail(name, transactions, max_bytes=max_bytes)
    return trails([str(name)], folder, local_engine())


@pytest.mark.parametrize("question", QUESTIONS)
def test_both_engines_give_the_same_rows(question: str, warm: WarmSession, tmp_path: Path) -> None:
    seed = random.Random(question).randrange(1000)
    asked = written(tmp_path, random_transactions(seed, 150))
    here = QUESTIONS[question](asked)
    there = QUESTIONS[question](QueriedTrails(asked.files, spark_engine(warm)))
    assert (there.columns, there.rows) == (here.columns, here.rows)
    assert len(asked.files) > 3
    assert here.rows


def names_of(row: Row) -> tuple[str, str, int]:
    return row.table.name.owner, row.table.name.name, row.io_type


def test_counts_are_those_of_what_was_written(tmp_path: Path) -> None:
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


def test_a_span_counts_what_was_committed_in_it(tmp_path: Path) -> None:
    transactions = random_transactions(4, 150)
    answer = counts.count(written(tmp_path, transactions), "TABLE", HALF)
    wanted = sum(row.table.name == TABLE for rows in transactions[59:119] for row in rows)
    assert [row[:3] for row in answer.rows] == [("hr", "employees", wanted)]


def test_the_largest_transaction_is_found_with_its_place(tmp_path: Path) -> None:
    transactions = [[insert(EMPLOYEES, id=str(csn * 100 + n)) for n in range(csn % 5 + 1)] for csn in range(1, 40)]
    transactions[20] = [insert(EMPLOYEES, id=str(9000 + n)) for n in range(9)]
    asked = written(tmp_path, transactions)
    answer = counts.largest_transactions(asked, 1)
    row = dict(zip(answer.columns, answer.rows[0], strict=True))
    assert (row["csn"], row["records"], row["tables"]) == (str(Csn(21)), 9, 1)
    first = finding.find_transaction(asked, csn=row["csn"])
    place = first.columns.index
    assert (row["seqno"], row["rba"]) == (first.rows[0][place("seqno")], first.rows[0][place("rba")])


def test_a_row_is_followed_under_all_its_keys(tmp_path: Path) -> None:
    def told(answer: QueryAnswer) -> list[tuple[Any, ...]]:
        return [(row[answer.columns.index("csn")][-2:], row[answer.columns.index("op")]) for row in answer.rows]

    asked = written(
        tmp_path,
        [
            [insert(EMPLOYEES, id="1", name="the first 1")],
            [delete(EMPLOYEES, id="1")],
            [insert(EMPLOYEES, id="1", name="a"), insert(EMPLOYEES, id="7", name="another")],
            [move(EMPLOYEES, {"id": "1"}, {"id": "2"})],
            [insert(EMPLOYEES, id="1", name="another 1")],
            [update(EMPLOYEES, id="2", name="b"), update(EMPLOYEES, id="7", name="c")],
            [move(EMPLOYEES, {"id": "2"}, {"id": "3"})],
            [delete(EMPLOYEES, id="3")],
            [insert(EMPLOYEES, id="3")],
        ],
    )
    life = [("03", "Insert"), ("04", "GGSKeyFieldComp"), ("06", "FieldComp"), ("07", "GGSKeyFieldComp")]
    assert told(find(asked, "2")) == [*life, ("08", "Delete")]
    assert told(find(asked, "1")) == [
        ("01", "Insert"),
        ("02", "Delete"),
        *life[:2],
        ("05", "Insert"),
        *life[2:],
        ("08", "Delete"),
    ]
    assert told(find(asked, "4")) == []


def test_random_rows_live_once(tmp_path: Path) -> None:
    """Keys are never used again there, so a key's life is all records that lead to it and from it."""
    transactions = random_transactions(5, 120)
    asked = written(tmp_path, transactions)
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
    mine = 0
    for row in rows:
        size = int.from_bytes(row.data[:2], "little") + 2 if row.io_type == IoType.KEY_FIELD_COMP else 0
        mine += decode_image(row.data[size:])[0][1] in chain
    assert key is not None
    assert len(find(asked, key.decode()).rows) == mine
