"""A statement that reads a view several times with different conditions: Spark must not mix up the scans."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from both_engines import local_engine, spark_engine
from trail_samples import random_transactions, trail_in, write_trail

from ggshell.query.cluster import scans_once
from ggshell.query.pushdown import Condition, conditions_from, conditions_text
from ggshell.query.queries.trails import QueriedTrails, trails
from ggshell.query.session import WarmSession

STATEMENTS = [
    "select 'b' as k, count(*) as n from trail where io_type = 5 union all"
    " select 'a' as k, count(*) as n from trail where io_type = 3 order by k",
    "with c as (select * from trail) select count(*) as n from c where io_type = 5"
    " and rba > (select min(rba) from c where io_type = 3)",
    "select count(*) as n from trail a join trail b on a.rba = b.rba where a.io_type = 5 and b.op = 'Insert'",
]


@pytest.mark.parametrize("sql", STATEMENTS)
def test_each_scan_of_a_view_has_its_own_conditions(warm: WarmSession, tmp_path: Path, sql: str) -> None:
    name = trail_in(tmp_path)
    write_trail(name, random_transactions(21, 40))
    queried = trails([str(name)], tmp_path, local_engine())
    on_duckdb = queried.ask("twice", sql).rows
    assert QueriedTrails(queried.files, spark_engine(warm)).ask("twice", sql).rows == on_duckdb
    assert all(row[-1] > 0 for row in on_duckdb)


@pytest.mark.parametrize(
    ("sql", "once"),
    [
        ("select * from ea where op = 'ea'", True),
        ('select * from "EA" as t', True),
        ("select * from ea, ea as b", False),
        ("with c as (select * from ea) select * from c join c as d on true", False),
    ],
)
def test_conditions_are_pushed_down_only_if_a_view_is_certainly_read_once(sql: str, once: bool) -> None:
    assert scans_once(sql, "ea") is once


def test_conditions_are_restored_from_their_option() -> None:
    conditions = [
        Condition("op", "in", ("Insert", "Delete")),
        Condition("commit_ts", ">=", datetime(2026, 11, 20, 8, 0, 0, 123456, UTC)),
        Condition("csn", "=", "00000000/0000002A"),
    ]
    assert conditions_from(conditions_text(conditions)) == conditions
    assert conditions_from("") == []
