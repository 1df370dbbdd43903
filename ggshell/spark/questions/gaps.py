"""TRAIL GAPS: whether anything is missing in a trail, or a proof that nothing is.

1. The files' numbers run without a gap.  2. No file is damaged.  3. Each file takes up where the one before ends: its size and
last CSN stand in the next one's header.  4. Each transaction that begins ends, and nothing stands outside of one.  5. CSNs
do not fall, and no transaction comes twice.  Beside these: where writers went on after an end, what is not durable yet, and
long pauses between commits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from itertools import groupby, pairwise
from typing import Any, NamedTuple

from ggshell.spark.questions.file_facts import FileFacts, facts_of, lost_files
from ggshell.spark.questions.trails import Trails

_BEGINS, _ENDS = (0, 3), (2, 3)
_CSN, _EARLIER_CSN = "lpad(csn, 20, '0')", "lpad(earlier_csn, 20, '0')"
"""CSNs as texts that are ordered as the numbers: both printed forms, PostgreSQL's and decimal ones."""


class State(StrEnum):
    """What a line says: all is well, something is missing or wrong, something to know."""

    GOOD = "ok"
    GAP = "GAP"
    NOTE = "note"


class Finding(NamedTuple):
    """A line of the answer; place and CSN where there is one."""

    check: str
    state: State
    detail: str
    trail: str = ""
    seqno: int | None = None
    rba: int | None = None
    csn: str | None = None


class _Row(NamedTuple):
    """A record that stands at a file's edge, or beside one that it does not follow; ``records``, ``transactions``: of the
    file."""

    trail: str
    seqno: int
    rba: int
    csn: str
    xid: str
    commit: int
    trans_ind: int
    earlier_csn: str | None
    earlier_xid: str | None
    earlier_commit: int | None
    earlier_ind: int | None
    is_last: bool
    records: int
    transactions: int
    fault: str | None


def gaps(trails: Trails, pause: float = 3600.0) -> list[Finding]:
    """Every check with what it found; pauses of ``pause`` seconds and more between commits are told."""
    facts = facts_of(trails.files)
    rows = _edges(trails, pause)
    lost = lost_files(trails.files)
    found: list[Finding] = []
    for trail, group in groupby(facts, key=lambda each: each.trail):
        files = list(group)
        mine = {
            seqno: list(of_file)
            for seqno, of_file in groupby((row for row in rows if row.trail == trail), key=lambda row: row.seqno)
        }
        faults = sorted({row.fault for row in rows if row.fault is not None and _is_of(row.fault, files)}, key=_places)
        found += _of_trail(trail, files, mine, faults, pause, lost.get(trail))
    return found


def _places(fault: str) -> list[tuple[int, str]]:
    """Faults in the order of their files and places: rows of damage have no other columns, so engines give them in any."""
    return [(len(number), number) for number in re.findall(r"\d+", fault)]


def _is_of(fault: str, files: Iterable[FileFacts]) -> bool:
    return any(f"{each.trail}{each.seqno:09d}" in fault or f"{each.trail}{each.seqno:06d}" in fault for each in files)


def _edges(trails: Trails, pause: float) -> list[_Row]:
    """The few records that matter; all others follow on the one before as they should."""
    micros = round(pause * 1_000_000)
    sql = f"""
        SELECT trail, seqno, rba, csn, xid, unix_micros(commit_ts) AS commit_at, trans_ind, earlier_csn, earlier_xid,
               unix_micros(earlier_ts) AS earlier_at, earlier_ind, later_rba IS NULL AS is_last, records, transactions, fault
          FROM (SELECT trail, seqno, rba, csn, xid, commit_ts, trans_ind, fault,
                       lag(csn) OVER by_place AS earlier_csn, lag(xid) OVER by_place AS earlier_xid,
                       lag(commit_ts) OVER by_place AS earlier_ts,
                       lag(trans_ind) OVER by_place AS earlier_ind, lead(rba) OVER by_place AS later_rba,
                       count(*) OVER by_file AS records,
                       sum(CASE WHEN trans_ind IN {_BEGINS} THEN 1 ELSE 0 END) OVER by_file AS transactions
                  FROM trail
                WINDOW by_place AS (PARTITION BY trail, seqno ORDER BY rba), by_file AS (PARTITION BY trail, seqno)) AS told
         WHERE fault IS NOT NULL OR earlier_ind IS NULL OR later_rba IS NULL
            OR (trans_ind IN {_BEGINS}) <> (earlier_ind IN {_ENDS})
            OR (trans_ind IN {_BEGINS} AND ({_CSN} < {_EARLIER_CSN} OR ({_CSN} = {_EARLIER_CSN} AND xid = earlier_xid)))
            OR (trans_ind NOT IN {_BEGINS} AND csn <> earlier_csn)
            OR unix_micros(commit_ts) - unix_micros(earlier_ts) >= {micros}
         ORDER BY trail NULLS FIRST, seqno, rba"""
    return [_Row(*row) for row in trails.ask("TRAIL GAPS", sql, tells_damage=True).rows]


def _of_trail(
    trail: str,
    files: list[FileFacts],
    rows: Mapping[int, list[_Row]],
    faults: list[str],
    pause: float,
    mark: int | None,
) -> Iterator[Finding]:
    numbers = [each.seqno for each in files]
    missing = [
        Finding("files", State.GAP, _missing(low + 1, high - 1), trail, low + 1)
        for low, high in pairwise(numbers)
        if high != low + 1
    ]
    if mark is not None:
        missing.append(Finding("files", State.GAP, _missing(numbers[-1] + 1, mark), trail, numbers[-1] + 1))
    whole = f"{len(files):,} files, sequence {numbers[0]} to {numbers[-1]}, {sum(each.size for each in files):,} bytes"
    yield from _told("files", missing, whole, trail)
    damage = [Finding("damage", State.GAP, fault, trail) for fault in faults]
    for file in files:
        if file.missing:
            text = f"{file.missing:,} bytes that were durable are missing: the file is cut off"
            damage.append(Finding("damage", State.GAP, text, trail, file.seqno, file.size - file.unread))
    yield from _told("damage", damage, "every record fits its checksum and its place", trail)
    yield from _told("continuity", list(_seams(files, rows)), "each file takes up where the one before ends", trail)
    transactions = sum(row.transactions for of_file in rows.values() for row in of_file[:1])
    records = sum(row.records for of_file in rows.values() for row in of_file[:1])
    text = f"{transactions:,} transactions with {records:,} records, each begins and ends"
    yield from _told("transactions", list(_broken(files, rows)), text, trail)
    yield from _told("csn", list(_disorder(files, rows)), "CSNs rise from transaction to transaction", trail)
    yield from _beside(trail, files, rows, pause)


def _missing(first: int, last: int) -> str:
    return f"file {first} is missing" if first == last else f"files {first} to {last} are missing"


def _told(check: str, found: list[Finding], good: str, trail: str) -> list[Finding]:
    return found or [Finding(check, State.GOOD, good, trail)]


def _seams(files: list[FileFacts], rows: Mapping[int, list[_Row]]) -> Iterator[Finding]:
    """Where a file's header does not fit the file before it."""
    last: str | None = None
    for number, file in enumerate(files):
        header = file.header
        if header is None:
            begun = not file.size and number == len(files) - 1
            state, text = (State.NOTE, "is just begun") if begun else (State.GAP, "the file header cannot be read")
            yield Finding("continuity", state, text, file.trail, file.seqno, 0)
        before = files[number - 1] if number else None
        if header is not None and before is not None and before.seqno == file.seqno - 1:
            if header.previous_size is not None and header.previous_size != before.size:
                text = f"file {before.seqno} has {before.size:,} bytes, its successor knows {header.previous_size:,}"
                yield Finding("continuity", State.GAP, text, file.trail, file.seqno, 0)
            known = str(header.previous_csn) if header.previous_csn is not None else None
            if last is not None and known is not None and known != last:
                text = f"the last transaction before is {last}, the header says {known}"
                yield Finding("continuity", State.GAP, text, file.trail, file.seqno, 0, known)
        last = _last_ended(rows.get(file.seqno, []), header.inside is not None if header else False, last)


def _last_ended(rows: list[_Row], inside: bool, last: str | None) -> str | None:
    """The CSN of the last transaction that ended up to a file's end; None where these few records do not tell."""
    if not rows:
        return last
    end = rows[-1]
    if end.trans_ind in _ENDS:
        return end.csn
    return last if inside and end.transactions == 0 else None


def _broken(files: list[FileFacts], rows: Mapping[int, list[_Row]]) -> Iterator[Finding]:
    """Transactions without begin or end."""
    open_: _Row | None = None
    for number, file in enumerate(files):
        follows = number > 0 and files[number - 1].seqno == file.seqno - 1
        for row in rows.get(file.seqno, []):
            place = (file.trail, row.seqno, row.rba, row.csn)
            begins = row.trans_ind in _BEGINS
            if row.earlier_ind is None:  # the file's first
                if begins and open_ is not None:
                    yield _unended(open_)
                elif not begins and follows and (open_ is None or open_.csn != row.csn):
                    yield Finding("transactions", State.GAP, f"transaction {row.xid} has no begin", *place)
                elif not begins and not follows:
                    text = f"transaction {row.xid} began in a file that is not here"
                    yield Finding("transactions", State.NOTE if number == 0 else State.GAP, text, *place)
            elif begins and row.earlier_ind not in _ENDS:
                text = f"transaction {row.earlier_csn} does not end before this one begins"
                yield Finding("transactions", State.GAP, text, *place)
            elif not begins and (row.earlier_ind in _ENDS or row.csn != row.earlier_csn):
                yield Finding("transactions", State.GAP, f"transaction {row.xid} has no begin", *place)
            if row.is_last:
                open_ = None if row.trans_ind in _ENDS else row
    if open_ is not None:
        text = f"transaction {open_.xid} has not ended yet: it is being written, or the rest of it is missing"
        yield Finding("transactions", State.NOTE, text, open_.trail, open_.seqno, open_.rba, open_.csn)


def _unended(row: _Row) -> Finding:
    return Finding(
        "transactions", State.GAP, f"transaction {row.xid} does not end", row.trail, row.seqno, row.rba, row.csn
    )


def _disorder(files: list[FileFacts], rows: Mapping[int, list[_Row]]) -> Iterator[Finding]:
    """Transactions whose CSN is below the one before, or that come twice.

    Different ones may have the same: a load's, one for each table, and those of sources that commit some at once.
    """
    last: tuple[str, str] | None = None
    for file in files:
        for row in rows.get(file.seqno, []):
            before = last if row.earlier_csn is None else (row.earlier_csn, row.earlier_xid or "")
            if row.trans_ind in _BEGINS and before is not None:
                here, there = row.csn.zfill(20), before[0].zfill(20)
                if here < there or (here == there and row.xid == before[1]):
                    text = f"CSN {row.csn} stands behind {before[0]}"
                    yield Finding("csn", State.GAP, text, file.trail, row.seqno, row.rba, row.csn)
            last = (row.csn, row.xid)


def _beside(trail: str, files: list[FileFacts], rows: Mapping[int, list[_Row]], pause: float) -> Iterator[Finding]:
    """What is no gap: restarts, bytes that are not durable, pauses."""
    for file in files:
        for rba in file.restarts:
            yield Finding("restarts", State.NOTE, "a writer went on here after an end", trail, file.seqno, rba)
        if file.unread and file.header is not None and not file.missing:
            text = f"{file.unread:,} bytes are not durable, or not whole, and not read"
            yield Finding("end", State.NOTE, text, trail, file.seqno, file.size - file.unread)
    if not any(file.restarts for file in files):
        yield Finding("restarts", State.GOOD, "no writer went on after an end", trail)
    yield from _told("pauses", list(_pauses(rows, pause)), f"no {pause:,.0f} seconds without a commit", trail)


def _pauses(rows: Mapping[int, list[_Row]], pause: float) -> Iterator[Finding]:
    last: int | None = None
    for seqno in sorted(rows):
        for row in rows[seqno]:
            before = row.earlier_commit if row.earlier_commit is not None else last
            seconds = (row.commit - before) / 1e6 if before is not None else 0.0
            if seconds >= pause:
                text = f"nothing was committed for {seconds:,.0f} seconds before"
                yield Finding("pauses", State.NOTE, text, row.trail, row.seqno, row.rba, row.csn)
            last = row.commit


def gap_values(finding: Finding) -> tuple[Any, ...]:
    """A finding as a row: check, state, trail, seqno, rba, csn, detail."""
    return (
        finding.check,
        str(finding.state),
        finding.trail,
        finding.seqno,
        finding.rba,
        finding.csn,
        finding.detail,
    )
