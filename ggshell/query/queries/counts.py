"""TRAIL COUNT and TRAIL TOP: volumes by table, operation and time."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from ggshell.durations import PERIODS
from ggshell.query.queries.trails import EVERYTHING, QueriedTrails, TrailSpan
from ggshell.query.views import QueryAnswer

_TIME: Final = pa.timestamp("us", "UTC")
_COUNTS: Final = [
    *((name, pa.int64()) for name in ("records", "bytes", "begins")),
    *((name, _TIME) for name in ("first_commit", "last_commit")),
]
_BEGINS: Final = "trans_ind IN (0, 3)"


def period(seconds: int) -> str:
    """SQL for the begin of the period that contains a commit."""
    micros = seconds * 1_000_000
    return f"timestamp_micros(unix_micros(commit_ts) - unix_micros(commit_ts) % {micros})"


def count(trails: QueriedTrails, by: str = "", span: TrailSpan = EVERYTHING) -> QueryAnswer:
    """Records, bytes and begun transactions, by table and operation, or by a single criterion.

    ``by``: empty, TABLE, OP, or one of ``PERIODS``.
    """
    names = {"": "owner, table, op", "TABLE": "owner, table", "OP": "op"}
    if by in PERIODS:
        chosen, grouped, columns = f"{period(PERIODS[by])} AS {by.lower()}", by.lower(), [(by.lower(), _TIME)]
    else:
        chosen = grouped = names[by]
        columns = [(name, pa.string()) for name in grouped.split(", ")]
    part = f"""
        SELECT {grouped}, count(*) AS records, sum(length) AS bytes, sum(begins) AS begins,
               min(commit_ts) AS first_commit, max(commit_ts) AS last_commit
          FROM (SELECT {chosen}, length, commit_ts, CASE WHEN {_BEGINS} THEN 1 ELSE 0 END AS begins
                  FROM trail{span.where}) AS counted
         GROUP BY {grouped}"""
    sql = f"""
        SELECT {grouped}, sum(records) AS records, sum(bytes) AS bytes, sum(begins) AS begins,
               min(first_commit) AS first_commit, max(last_commit) AS last_commit
          FROM parts GROUP BY {grouped} ORDER BY {grouped}"""
    return trails.ask_in_parts("TRAIL COUNT", part, pa.schema([*columns, *_COUNTS]), sql, span.conditions)


def largest_transactions(trails: QueriedTrails, number: int, span: TrailSpan = EVERYTHING) -> QueryAnswer:
    """The transactions with the most records, and where each begins."""
    sql = f"""
        SELECT csn, xid, min(commit_ts) AS commit_ts, trail, min(CASE WHEN {_BEGINS} THEN seqno END) AS seqno,
               min(CASE WHEN {_BEGINS} THEN rba END) AS rba, count(*) AS records, sum(length) AS bytes,
               count(DISTINCT concat(owner, '.', table)) AS tables
          FROM trail{span.where} GROUP BY trail, csn, xid ORDER BY records DESC, bytes DESC, trail, csn, xid LIMIT {number}"""
    return trails.ask("TRAIL TOP TRANSACTIONS", sql, span.conditions)


def busiest_tables(trails: QueriedTrails, number: int, span: TrailSpan = EVERYTHING) -> QueryAnswer:
    """The tables with the most records, by kind of operation."""
    kinds = {
        "inserts": "= 5",
        "deletes": "= 3",
        "truncates": "= 100",
        "ddl": "= 160",
        "updates": "NOT IN (3, 5, 100, 160)",
    }
    counts = ", ".join(f"sum(CASE WHEN io_type {those} THEN 1 ELSE 0 END) AS {kind}" for kind, those in kinds.items())
    sql = f"""
        SELECT owner, table, count(*) AS records, sum(length) AS bytes, {counts},
               count(DISTINCT concat(trail, ' ', csn)) AS transactions
          FROM trail{span.where} GROUP BY owner, table ORDER BY records DESC, owner, table LIMIT {number}"""
    return trails.ask("TRAIL TOP TABLES", sql, span.conditions)


def busiest_minutes(trails: QueriedTrails, number: int, span: TrailSpan = EVERYTHING) -> QueryAnswer:
    """The minutes with the most committed records."""
    sql = f"""
        SELECT minute, count(*) AS records, sum(length) AS bytes, count(DISTINCT concat(trail, ' ', csn)) AS transactions,
               count(DISTINCT concat(owner, '.', table)) AS tables
          FROM (SELECT {period(60)} AS minute, length, trail, csn, owner, table FROM trail{span.where}) AS told
         GROUP BY minute ORDER BY records DESC, minute LIMIT {number}"""
    return trails.ask("TRAIL TOP MINUTES", sql, span.conditions)
