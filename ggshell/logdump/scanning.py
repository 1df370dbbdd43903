"""The SCANFOR commands and SCANSCN: find the next record of some kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase

from ggshell.errors import NotFoundError, UsageError
from ggshell.logdump.answers import Answer, Lines
from ggshell.logdump.cursor import is_row, metadata_index
from ggshell.logdump.filters import parsed_csn
from ggshell.logdump.registry import action
from ggshell.logdump.state import LogdumpSession
from ggshell.record.operation import IoType, TransInd
from ggshell.trail import iotypes
from ggshell.trail.inspection import InspectedRecord
from ggshell.trail.record import Record
from ggshell.types import Csn


def _find(session: LogdumpSession, what: str, wanted: Callable[[Record], bool], tables: str = "") -> Answer:
    """Return the next wanted record that passes the filters. Raises NotFoundError with the place where the scan began."""

    def fits(seen: InspectedRecord) -> bool:
        record = seen.record
        if record is None or not wanted(record) or not session.passes(seen):
            return False
        return not tables or fnmatchcase(session.walk.table_name(seen).upper(), tables.upper())

    begun = session.walk.place
    for answer in session.following(1, fits):
        return answer
    raise NotFoundError(f"no {what} from RBA {begun} on", hint="POS FIRST, or NEXTTRAIL")


@action("SCANFORHEADER")
@action("SFH")
def scan_for_header(session: LogdumpSession, *, prev: bool = False) -> Iterator[Answer]:
    """Find the next (or previous) whole, undamaged record, skipping any damage."""
    walk = session.walk
    if walk.place == 0 and not prev and walk.file.first:
        walk.place = walk.file.first
    found = walk.file.good_before(walk.place) if prev else walk.file.good_behind(walk.place)
    if found is None:
        raise NotFoundError(
            f"no undamaged record {'before' if prev else 'from'} RBA {walk.place}{'' if prev else ' on'}"
        )
    walk.place = found.rba if prev else found.rba + found.size
    yield session.shown(found)


@action("SCANFORTIME")
@action("SFTS")
def scan_for_time(session: LogdumpSession, *, time_string: str, table_template: str = "") -> Iterator[Answer]:
    """Find the next record of a time or later."""
    moment = session.display.moment(time_string)
    yield _find(
        session,
        f"record of {session.display.time(moment)} or later",
        lambda record: is_row(record) and record.io_time is not None and record.io_time >= moment,
        table_template,
    )


@action("SCANFORTYPE")
@action("SFT")
def scan_for_type(session: LogdumpSession, *, record_type: str, table_template: str = "") -> Iterator[Answer]:
    """Find the next record of an operation type."""
    try:
        number = iotypes.io_type_number(record_type)
    except ValueError as error:
        raise UsageError(str(error), hint="SHOW RECTYPE lists them") from None
    yield _find(session, record_type, lambda record: record.io_type == number, table_template)


@action("SCANFORRBA")
@action("SFR")
def scan_for_rba(session: LogdumpSession, *, signed: int, table_template: str = "") -> Iterator[Answer]:
    """Find the next record with an AuditRBA; -1 matches any."""
    what = "record" if signed < 0 else f"record with AuditRBA {signed}"
    yield _find(session, what, lambda record: signed < 0 or record.audit_rba == signed, table_template)


@action("SCANFORMETADATA")
@action("SFMD")
def scan_for_metadata(
    session: LogdumpSession,
    *,
    ddr: bool = False,
    tdr: bool = False,
    next: bool = False,  # noqa: A002 - the manual's word
    n: int | None = None,
    table_template: str = "",
) -> Iterator[Answer]:
    """Find the next Metadata record: of a database (DDR), of a table (TDR), or any; optionally with a given index."""

    def wanted(record: Record) -> bool:
        if record.io_type != IoType.METADATA:
            return False
        table = metadata_index(record)
        index = table or record.audit_rba & 0xFFFF
        return (not (ddr or tdr) or (table > 0) is tdr) and (n is None or index == n)

    yield _find(session, "such metadata record", wanted, table_template)


@action("SCANSCN")
def scan_csn(session: LogdumpSession, *, csn: str) -> Iterator[Answer]:
    """Find the first record of the next transaction with a CSN or a later one."""
    least = parsed_csn(csn).value

    def wanted(record: Record) -> bool:
        try:
            return Csn.parse(record.tokens.get("L", b"").decode()).value >= least
        except ValueError:
            return False

    yield _find(session, f"transaction of CSN {csn} or later", wanted)


@action("SCANFORENDTRANS", True)
@action("SFET", True)
@action("SCANFORNEXTTRANS", False)
@action("SFNT", False)
def scan_for_end(session: LogdumpSession, says_where: bool) -> Iterator[Answer]:
    """Find the end of the current transaction, and show the first record of the next one."""
    walk = session.walk
    for seen in walk.records():
        if not seen.size:
            yield session.shown(seen)
            return
        if walk.is_boundary(seen):
            if says_where:
                yield Lines((f"End of Transaction found at RBA {seen.rba}",))
            yield _find(
                session,
                "further transaction",
                lambda record: is_row(record) and record.trans_ind in (TransInd.BEGIN, TransInd.SOLE),
            )
            return
    raise NotFoundError("no end of a transaction up to the file's end")
