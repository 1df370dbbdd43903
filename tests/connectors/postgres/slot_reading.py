"""Reading a slot in tests: what a Capture returns from a real server, as plain rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from batches import read_rows

from ggshell.clock import SystemClock
from ggshell.connectors.postgres import session, slot, trandata
from ggshell.connectors.postgres.ddl_watch import DdlWatch
from ggshell.connectors.postgres.log import CapturedRows, LogWatches, PostgresLog, SlotStart
from ggshell.connectors.postgres.truncate_watch import TruncateWatch
from ggshell.pipeline.capture.cache import TransactionCache
from ggshell.pipeline.capture.stream import Capture
from ggshell.record.image import decode_image
from ggshell.record.transaction import Completed
from ggshell.types import Csn, TableName


@contextmanager
def capturing(
    dsn: str,
    start: int,
    folder: Path,
    *,
    after: int = 0,
    limit: int = 64 << 20,
    wanted: Callable[[TableName], bool] = bool,
    ddl: DdlWatch | None = None,
    truncates: TruncateWatch | None = None,
) -> Iterator[Capture]:
    if ddl is not None:
        with session.connect(dsn) as connection:
            ddl.begin(connection)
    watches = LogWatches(ddl=ddl, truncates=truncates)
    source = PostgresLog.open(dsn, SlotStart("ggs_ext1", start), CapturedRows(wanted), SystemClock(), watches)
    capture = Capture(source, TransactionCache(limit, folder), Completed(Csn(after)))
    try:
        yield capture
    finally:
        capture.close()


def prepare(dsn: str, *tables: str) -> int:
    with session.connect(dsn) as connection:
        for table in tables:
            trandata.add(connection, TableName.parse(table))
        return slot.register(connection, "ext1")


def collect(capture: Capture, until: int) -> list[tuple[object, ...]]:
    """All rows up to the log position ``until``."""
    rows: list[tuple[object, ...]] = []
    for _ in range(2000):
        batch = capture.read(0.2)
        if batch is not None:
            rows += read_rows(batch)
        elif capture.state.safe >= until:
            return rows
    raise AssertionError(f"the log came to {capture.state} only, not to {until}")


def end_of(dsn: str) -> int:
    with session.connect(dsn) as connection:
        return session.current_position(connection)[0]


def values(row: tuple[object, ...]) -> list[tuple[int, bytes | None]]:
    assert isinstance(row[3], bytes)
    return decode_image(row[3])
