"""TRAIL GAPS: checks whether anything is missing in a trail.

1. The sequence numbers of the files have no gap. 2. No file is damaged. 3. Each file continues the one before it, whose size
and last CSN are in its header. 4. Every transaction that begins also ends, and no record is outside a transaction. 5. CSNs
do not decrease, and no transaction occurs twice. 6. The wallet opens each encrypted file. 7. Every group that reads or
writes the trail has a position that exists in it. Also reported: where writers resumed, what is not durable yet, and long
pauses between commits.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from itertools import groupby, pairwise
from typing import Any, Final, NamedTuple

from ggshell.errors import GgsError, TrailError
from ggshell.plurals import counted
from ggshell.query.queries.file_facts import FileFacts, facts_of, lost_files
from ggshell.query.queries.trails import QueriedTrails
from ggshell.trail.sealing import Keys, cipher_of

LISTED_PAUSES: Final = 5
"""The number of pauses, the longest ones, that are listed individually."""
_BEGINS, _ENDS = (0, 3), (2, 3)
_UNREAD: Final = ("damage", "keys")
"""The checks that detect what cannot be read."""
_OF_RECORDS: Final = ("damage", "continuity", "transactions", "csn", "positions", "restarts", "pauses")
"""The checks that are valid only if the whole trail was read."""
_CSN, _EARLIER_CSN = "lpad(csn, 20, '0')", "lpad(earlier_csn, 20, '0')"
"""CSNs as texts that sort like the numbers, in both printed forms: PostgreSQL's and decimal."""


class TrailState(StrEnum):
    """The state of a finding: no problem, something missing or wrong, or information."""

    GOOD = "ok"
    GAP = "GAP"
    NOTE = "note"


class TrailFinding(NamedTuple):
    """A line of the result, with position and CSN if there is one."""

    check: str
    state: TrailState
    detail: str
    trail: str = ""
    seqno: int | None = None
    rba: int | None = None
    csn: str | None = None


class Stand(NamedTuple):
    """A group that reads or writes a trail, and why it cannot continue from its position (None if it can)."""

    trail: str
    group: str
    error: TrailError | None


class _Row(NamedTuple):
    """A record at the edge of a file, or one that does not follow the record before it.

    ``records``, ``transactions``: the totals of the file.
    """

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


def gaps(trails: QueriedTrails, pause: float = 3600.0, stands: Iterable[Stand] = ()) -> list[TrailFinding]:
    """Run every check. Pauses of at least ``pause`` seconds between commits are reported.

    ``stands``: the groups that read or write these trails.
    """
    facts = facts_of(trails.files)
    rows = _edges(trails, pause)
    lost = lost_files(trails.files)
    standing: defaultdict[str, list[Stand]] = defaultdict(list)
    for stand in stands:
        standing[stand.trail].append(stand)
    found: list[TrailFinding] = []
    for trail, group in groupby(facts, key=lambda each: each.trail):
        files = list(group)
        mine = {
            seqno: list(of_file)
            for seqno, of_file in groupby((row for row in rows if row.trail == trail), key=lambda row: row.seqno)
        }
        faults = sorted({row.fault for row in rows if row.fault is not None and _is_of(row.fault, files)}, key=_places)
        about = [
            *_of_trail(trail, files, mine, faults, lost.get(trail)),
            *_opened(trail, files, trails.keys),
            *_continuable(trail, standing[trail]),
            *_remarks(trail, files, mine, pause),
        ]
        found += _as_far_as_read(about)
    return found


def _as_far_as_read(about: list[TrailFinding]) -> list[TrailFinding]:
    """Downgrade good results that need all records if a part of the trail could not be read."""
    if not any(each.check in _UNREAD and each.state is TrailState.GAP for each in about):
        return about
    return [
        each._replace(
            state=TrailState.NOTE,
            detail=f"checked up to the position that can be read: {each.detail}; the rest is not checked",
        )
        if each.check in _OF_RECORDS and each.state is TrailState.GOOD
        else each
        for each in about
    ]


def _places(fault: str) -> list[tuple[int, str]]:
    """Sort key for faults, by file and position: damage rows have no other columns to sort by."""
    return [(len(number), number) for number in re.findall(r"\d+", fault)]


def _is_of(fault: str, files: Iterable[FileFacts]) -> bool:
    return any(f"{each.trail}{each.seqno:09d}" in fault or f"{each.trail}{each.seqno:06d}" in fault for each in files)


def _edges(trails: QueriedTrails, pause: float) -> list[_Row]:
    """The few records that matter; every other record follows the one before it correctly."""
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
    mark: int | None,
) -> Iterator[TrailFinding]:
    numbers = [each.seqno for each in files]
    missing = [
        TrailFinding("files", TrailState.GAP, _missing(low + 1, high - 1), trail, low + 1)
        for low, high in pairwise(numbers)
        if high != low + 1
    ]
    if mark is not None:
        missing.append(TrailFinding("files", TrailState.GAP, _missing(numbers[-1] + 1, mark), trail, numbers[-1] + 1))
    size = counted(sum(each.size for each in files), "byte")
    whole = f"{counted(len(files), 'file')}, sequence {numbers[0]} to {numbers[-1]}, {size}"
    yield from _or_good("files", missing, whole, trail)
    damage = [TrailFinding("damage", TrailState.GAP, fault, trail) for fault in faults]
    for file in files:
        if file.missing:
            text = f"{file.missing:,} bytes that were durable are missing: the file is cut off"
            damage.append(TrailFinding("damage", TrailState.GAP, text, trail, file.seqno, file.size - file.unread))
    yield from _or_good("damage", damage, "every record matches its checksum and its position", trail)
    yield from _or_good(
        "continuity", list(_seams(files, rows)), "each file continues where the previous one ends", trail
    )
    transactions = sum(row.transactions for of_file in rows.values() for row in of_file[:1])
    records = sum(row.records for of_file in rows.values() for row in of_file[:1])
    text = f"{counted(transactions, 'transaction')} with {counted(records, 'record')}; each one begins and ends"
    yield from _or_good("transactions", list(_broken(files, rows)), text, trail)
    yield from _or_good("csn", list(_disorder(files, rows)), "CSNs increase from transaction to transaction", trail)


def _opened(trail: str, files: list[FileFacts], keys: Keys | None) -> list[TrailFinding]:
    """Check that the wallet opens each encrypted file. Empty if no file is encrypted."""
    sealed = [(file, file.header.seal) for file in files if file.header is not None and file.header.seal is not None]
    if not sealed:
        return []
    closed: list[TrailFinding] = []
    for file, seal in sealed:
        key = f"key {seal.protection.key_name}, version {seal.protection.key_version}"
        try:
            if keys is None:
                text = f"file {file.seqno} is encrypted with {key}, and no wallet is available"
                closed.append(TrailFinding("keys", TrailState.GAP, text, trail, file.seqno, 0))
            else:
                cipher_of(seal, keys, f"{trail}{file.seqno:09d}")
        except GgsError as error:
            text = f"file {file.seqno} cannot be opened with this home's wallet: {error.message}"
            closed.append(TrailFinding("keys", TrailState.GAP, text, trail, file.seqno, 0))
    return _or_good("keys", closed, f"{len(sealed):,} encrypted files open with this home's wallet", trail)


def _continuable(trail: str, stands: list[Stand]) -> list[TrailFinding]:
    """Check that each group can continue from its position. Empty without groups."""
    if not stands:
        return []
    stuck = [
        TrailFinding("positions", TrailState.GAP, f"{stand.group} cannot continue: {stand.error.message}", trail)
        for stand in stands
        if stand.error is not None
    ]
    names = ", ".join(stand.group for stand in stands)
    return _or_good("positions", stuck, f"{names}: each can continue from its position", trail)


def _missing(first: int, last: int) -> str:
    return f"file {first} is missing" if first == last else f"files {first} to {last} are missing"


def _or_good(check: str, found: list[TrailFinding], good: str, trail: str) -> list[TrailFinding]:
    return found or [TrailFinding(check, TrailState.GOOD, good, trail)]


def _seams(files: list[FileFacts], rows: Mapping[int, list[_Row]]) -> Iterator[TrailFinding]:
    """Where the header of a file does not match the file before it."""
    last: str | None = None
    for number, file in enumerate(files):
        header = file.header
        if header is None:
            begun = file.begun and number == len(files) - 1
            state, text = (
                (TrailState.NOTE, "the file has only just been created")
                if begun
                else (TrailState.GAP, "the file header cannot be read")
            )
            yield TrailFinding("continuity", state, text, file.trail, file.seqno, 0)
        before = files[number - 1] if number else None
        if header is not None and before is not None and before.seqno == file.seqno - 1:
            if header.previous_size is not None and header.previous_size != before.size:
                text = f"file {before.seqno} has {before.size:,} bytes, but the next one's header says {header.previous_size:,}"
                yield TrailFinding("continuity", TrailState.GAP, text, file.trail, file.seqno, 0)
            known = str(header.previous_csn) if header.previous_csn is not None else None
            if last is not None and known is not None and known != last:
                text = f"the last transaction before it is {last}, but the header says {known}"
                yield TrailFinding("continuity", TrailState.GAP, text, file.trail, file.seqno, 0, known)
        last = _last_ended(rows.get(file.seqno, []), header.inside is not None if header else False, last)


def _last_ended(rows: list[_Row], inside: bool, last: str | None) -> str | None:
    """The CSN of the last transaction that ended by the end of a file. None if these few records do not contain it."""
    if not rows:
        return last
    end = rows[-1]
    if end.trans_ind in _ENDS:
        return end.csn
    return last if inside and end.transactions == 0 else None


def _broken(files: list[FileFacts], rows: Mapping[int, list[_Row]]) -> Iterator[TrailFinding]:
    """Transactions without a begin or an end."""
    open_: _Row | None = None
    for number, file in enumerate(files):
        follows = number > 0 and files[number - 1].seqno == file.seqno - 1
        for row in rows.get(file.seqno, []):
            if row.earlier_ind is None:
                found = _first_record_fault(row, open_, follows=follows, first_file=number == 0)
            else:
                found = _later_record_fault(row)
            if found is not None:
                yield found
            if row.is_last:
                open_ = None if row.trans_ind in _ENDS else row
    if open_ is not None:
        text = f"transaction {open_.xid} has not ended yet: it is being written, or the rest of it is missing"
        yield _fault(open_, text, TrailState.NOTE)


def _first_record_fault(row: _Row, open_: _Row | None, *, follows: bool, first_file: bool) -> TrailFinding | None:
    """Return what is wrong with the transaction of a file's first record.

    ``open_``: the last record of the file before it, if its transaction had not ended. ``follows``: the file before it is
    present.
    """
    if row.trans_ind in _BEGINS:
        return _fault(open_, f"transaction {open_.xid} does not end") if open_ is not None else None
    if not follows:
        state = TrailState.NOTE if first_file else TrailState.GAP
        return _fault(row, f"transaction {row.xid} began in a file that is missing", state)
    if open_ is None or open_.csn != row.csn:
        return _fault(row, f"transaction {row.xid} has no beginning")
    return None


def _later_record_fault(row: _Row) -> TrailFinding | None:
    """Return what is wrong with the transaction of a record that follows another one in its file."""
    ended = row.earlier_ind in _ENDS
    if row.trans_ind in _BEGINS:
        text = f"transaction {row.earlier_xid} does not end before this one begins"
        return None if ended else _fault(row, text)
    if ended or row.csn != row.earlier_csn:
        return _fault(row, f"transaction {row.xid} has no beginning")
    return None


def _fault(row: _Row, text: str, state: TrailState = TrailState.GAP) -> TrailFinding:
    return TrailFinding("transactions", state, text, row.trail, row.seqno, row.rba, row.csn)


def _disorder(files: list[FileFacts], rows: Mapping[int, list[_Row]]) -> Iterator[TrailFinding]:
    """Transactions whose CSN is lower than the one before, or that occur twice.

    Different transactions can have the same CSN: those of an initial load, one per table, and those of sources that commit
    several at once.
    """
    last: tuple[str, str] | None = None
    for file in files:
        for row in rows.get(file.seqno, []):
            before = last if row.earlier_csn is None else (row.earlier_csn, row.earlier_xid or "")
            if row.trans_ind in _BEGINS and before is not None:
                here, there = row.csn.zfill(20), before[0].zfill(20)
                if here < there or (here == there and row.xid == before[1]):
                    text = f"CSN {row.csn} comes after {before[0]}"
                    yield TrailFinding("csn", TrailState.GAP, text, file.trail, row.seqno, row.rba, row.csn)
            last = (row.csn, row.xid)


def _remarks(
    trail: str, files: list[FileFacts], rows: Mapping[int, list[_Row]], pause: float
) -> Iterator[TrailFinding]:
    """Findings that are not gaps: restarts, bytes that are not durable, pauses."""
    for file in files:
        for rba in file.restarts:
            yield TrailFinding(
                "restarts", TrailState.NOTE, "a writer continued here after a restart", trail, file.seqno, rba
            )
        if file.unread and file.header is not None and not file.missing:
            text = f"{file.unread:,} bytes are not durable, or not whole, and not read"
            yield TrailFinding("end", TrailState.NOTE, text, trail, file.seqno, file.size - file.unread)
    if not any(file.restarts for file in files):
        yield TrailFinding("restarts", TrailState.GOOD, "no writer continued after a restart", trail)
    yield from _or_good(
        "pauses", _pauses(rows, pause), f"no pause of {counted(round(pause), 'second')} or more between commits", trail
    )


def _pauses(rows: Mapping[int, list[_Row]], pause: float) -> list[TrailFinding]:
    """The longest pauses, in the trail's order, and one line for all others together."""
    every = list(_each_pause(rows, pause))
    shown = sorted(sorted(range(len(every)), key=lambda number: -every[number][0])[:LISTED_PAUSES])
    found = [every[number][1] for number in shown]
    if len(every) > len(shown):
        rest = sum(seconds for seconds, _ in every) - sum(every[number][0] for number in shown)
        text = f"{counted(len(every) - len(shown), 'shorter pause')} besides these, {counted(round(rest), 'second')} in total"
        found.append(TrailFinding("pauses", TrailState.NOTE, text, found[0].trail))
    return found


def _each_pause(rows: Mapping[int, list[_Row]], pause: float) -> Iterator[tuple[float, TrailFinding]]:
    last: int | None = None
    for seqno in sorted(rows):
        for row in rows[seqno]:
            before = row.earlier_commit if row.earlier_commit is not None else last
            seconds = (row.commit - before) / 1e6 if before is not None else 0.0
            if seconds >= pause:
                text = f"nothing was committed in the {counted(round(seconds), 'second')} before this"
                yield seconds, TrailFinding("pauses", TrailState.NOTE, text, row.trail, row.seqno, row.rba, row.csn)
            last = row.commit


def gap_values(finding: TrailFinding) -> tuple[Any, ...]:
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
