"""Reading redo in tests: every committed row, as plain values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from ggshell.connectors.oracle_redo.definitions import Definitions
from ggshell.connectors.oracle_redo.folder import open_rows
from ggshell.connectors.oracle_redo.log import RedoLog
from ggshell.pipeline.capture.cache import TransactionCache
from ggshell.pipeline.capture.stream import Capture
from ggshell.record.definition import TableDefinition
from ggshell.record.image import decode_image, split_key_update
from ggshell.record.operation import IoType
from ggshell.record.transaction import Completed
from ggshell.types import Csn, CsnForm, LogPosition, TableName

BEGINNING = LogPosition(0, 0, 0)
Image = dict[str, bytes | None]


class Read(NamedTuple):
    """One captured row."""

    csn: int
    xid: str
    table: str
    io_type: int
    before: Image
    after: Image


@contextmanager
def capturing(
    folder: Path,
    *,
    start: LogPosition = BEGINNING,
    after: int = 0,
    xids: frozenset[str] | None = None,
    abends: bool = False,
    limit: int = 64 << 20,
    wanted: Callable[[TableName], bool] = lambda _: True,
    given: Mapping[TableName, TableDefinition] | None = None,
    keys: tuple[str, ...] = ("id",),
    messages: list[tuple[str, str]] | None = None,
) -> Iterator[tuple[Capture, RedoLog]]:
    """A Capture on a folder, and its log; ``after`` and ``xids`` are what the trail already has."""
    received = messages if messages is not None else []
    log = RedoLog(
        open_rows(f"redo://{folder}", start),
        start,
        wanted,
        Definitions(given or {}, lambda _: keys),
        lambda code, text: received.append((code, text)),
        abends=abends,
    )
    capture = Capture(log, TransactionCache(limit, folder / "spill"), Completed(Csn(after, CsnForm.NUMBER), xids))
    try:
        yield capture, log
    finally:
        capture.close()


def collect(capture: Capture) -> list[Read]:
    """All rows available now; checks that each transaction begins once and ends once."""
    rows: list[Read] = []
    inside: str | None = None
    while True:
        batch = capture.read()
        if batch is None:
            if capture.drained:
                assert inside is None
                return rows
            continue
        for piece in batch.pieces:
            assert piece.begins is (inside is None)
            inside = None if piece.ends else piece.header.xid
            for number in range(piece.first, piece.first + piece.count):
                first = int(batch.start[number])
                data = bytes(batch.buffer[first : first + int(batch.length[number])])
                definition = batch.tables[int(batch.table[number])]
                io_type = int(batch.io_type[number])
                before, after = split_key_update(data) if io_type == IoType.KEY_FIELD_COMP else (b"", data)
                rows.append(
                    Read(
                        piece.header.csn.value,
                        piece.header.xid,
                        str(definition.name),
                        io_type,
                        _named(definition, bytes(before)),
                        _named(definition, bytes(after)),
                    )
                )


def _named(definition: TableDefinition, image: bytes) -> Image:
    return {definition.columns[index].name: value for index, value in decode_image(image)}


def read_all(folder: Path, **options: object) -> list[Read]:
    """Everything in a folder, from its beginning."""
    with capturing(folder, **options) as (capture, _):  # type: ignore[arg-type]
        return collect(capture)
