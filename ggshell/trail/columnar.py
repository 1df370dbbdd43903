"""Read a trail file as columns, for queries over many records; ``TrailReader`` is for delivering them.

A file, or a range of it between two sync points, is returned as Arrow record batches of the requested columns. Unwanted
data is filtered out before values are decoded: whole files by their headers, transactions by CSN and time, rows by table
and operation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ggshell.errors import NotFoundError, TrailError
from ggshell.record.change import Areas, ChangeBatch
from ggshell.record.definition import TableDefinition
from ggshell.record.operation import IoType, TransInd
from ggshell.record.transaction import TransactionPiece
from ggshell.trail import iotypes
from ggshell.trail.arrow import SCHEMA, ArrowRows
from ggshell.trail.boundaries import transaction_after
from ggshell.trail.context import Context
from ggshell.trail.decode import damaged
from ggshell.trail.fileheader import LONGEST, FileHeader, decode_header
from ggshell.trail.inspection import InspectedFile
from ggshell.trail.name import TrailName
from ggshell.trail.opened import open_file
from ggshell.trail.reader import TrailReader
from ggshell.trail.sealing import OVERHEAD, Keys, cipher_of
from ggshell.types import Csn, TrailPosition

CHUNK = 2 << 20
FAULT = "fault"
"""The name of the column that reports damage, with ``OnDamage.TELL``."""


class OnDamage(Enum):
    """How damage is handled: raise an error, skip it, or return a row of NULLs with what was expected there."""

    RAISE = "FAILFAST"
    DROP = "DROPMALFORMED"
    TELL = "PERMISSIVE"


@dataclass(frozen=True, slots=True)
class RowFilter:
    """A row filter: transactions by a range of CSNs or times (bounds included), tables by patterns, operations by name."""

    first_csn: Csn | None = None
    last_csn: Csn | None = None
    first_time: int | None = None
    last_time: int | None = None
    tables: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()

    def piece(self, piece: TransactionPiece) -> bool:
        """Whether a transaction's rows are wanted."""
        csn, time = piece.header.csn.value, piece.header.commit_time
        return (
            (self.first_csn is None or csn >= self.first_csn.value)
            and (self.last_csn is None or csn <= self.last_csn.value)
            and (self.first_time is None or time >= self.first_time)
            and (self.last_time is None or time <= self.last_time)
        )

    def table(self, table: TableDefinition) -> bool:
        name = f"{table.name.owner}.{table.name.name}".upper()
        return not self.tables or any(fnmatchcase(name, pattern.upper()) for pattern in self.tables)

    @property
    def all_transactions(self) -> bool:
        return (self.first_csn, self.last_csn, self.first_time, self.last_time) == (None,) * 4


EVERYTHING = RowFilter()
_VALUES = frozenset({"columns", "before", "tokens"})


def _require_keys(path: Path, keys: Keys | None) -> None:
    """Check that an encrypted file can be decrypted; a missing or wrong key is an error in every mode, never damage.

    Raises TrailError without keys or with a different key, NotFoundError if the key is missing. A damaged header is
    reported later, when the file is read."""
    _trail(path)
    seal = _header(path).seal
    if seal is None:
        return
    if keys is None:
        text = f"trail file {path} is encrypted with {seal.protection.key}"
        raise TrailError(text, where=f"{path}, RBA 0", hint="read it on the system that has the wallet")
    cipher_of(seal, keys, path)


def read_columnar(
    path: Path,
    columns: Sequence[str] | None = None,
    predicate: RowFilter = EVERYTHING,
    *,
    first: int = 0,
    last: int | None = None,
    on_damage: OnDamage = OnDamage.RAISE,
    keys: Keys | None = None,
    known: Context | None = None,
) -> Iterator[pa.RecordBatch]:
    """Return the rows of a trail file whose records begin at ``first`` or later and before ``last``, up to the durable end.

    The columns are those of ``arrow.SCHEMA``, all by default; ``OnDamage.TELL`` adds the column ``fault``. Raises
    TrailError for damage with ``OnDamage.RAISE``, and for encrypted values without ``keys``; NotFoundError if the file does
    not exist; ValueError for an unknown column. ``known``: the context before ``first``, which saves a scan.
    """
    names = list(SCHEMA.names if columns is None else columns)
    unknown = [name for name in names if name not in SCHEMA.names]
    if unknown:
        raise ValueError(f"a trail has no column {', '.join(unknown)}")
    if not _VALUES.isdisjoint(names):
        _require_keys(path, keys)
    else:
        keys = None  # lengths, operations, times and transactions are not encrypted
    sealed = keys is None and _header(path).seal is not None
    for found in _parts(path, predicate, first, last, on_damage, keys, known):
        if isinstance(found, TrailError):
            yield _fault_batch(found, names)
            continue
        batch = ArrowRows(found, str(path.parent / path.name[:2]), path, OVERHEAD if sealed else 0).record_batch(names)
        yield batch.append_column(FAULT, pa.nulls(len(found), pa.string())) if on_damage is OnDamage.TELL else batch


def read_batches(
    path: Path,
    predicate: RowFilter = EVERYTHING,
    *,
    first: int = 0,
    last: int | None = None,
    keys: Keys | None = None,
    known: Context | None = None,
) -> Iterator[ChangeBatch]:
    """Return the rows of a range as batches of changes, decrypted; the range is that of ``read_columnar``.

    Raises TrailError for damage and for encrypted values without ``keys``, NotFoundError if the file does not exist.
    """
    _require_keys(path, keys)
    for found in _parts(path, predicate, first, last, OnDamage.RAISE, keys, known):
        if isinstance(found, ChangeBatch):
            yield found


def read_table(
    path: Path,
    table: str,
    predicate: RowFilter = EVERYTHING,
    *,
    columns: Sequence[str] = (),
    first: int = 0,
    last: int | None = None,
    on_damage: OnDamage = OnDamage.RAISE,
    keys: Keys | None = None,
    known: Context | None = None,
) -> Iterator[tuple[TableDefinition, pa.RecordBatch]]:
    """Return one table's rows: the trail's ``columns``, then the table's own as text; one batch per table definition.

    DDL statements are not rows of the table.
    """
    wanted = replace(predicate, tables=(table,))
    _require_keys(path, keys)
    for found in _parts(path, wanted, first, last, on_damage, keys, known):
        if isinstance(found, TrailError):
            continue
        for number, definition in enumerate(found.tables):
            part = _only(found, (found.table == number) & (found.io_type != IoType.DDL))
            if part is None:
                continue
            rows = ArrowRows(part, str(path.parent / path.name[:2]), path)
            own = rows.table_batch(definition)
            extra = rows.record_batch(list(columns))
            yield definition, pa.record_batch([*extra.columns, *own.columns], names=[*columns, *own.schema.names])


def _begins(record: object) -> bool:
    return getattr(record, "table_index", None) is not None and getattr(record, "trans_ind", None) in (
        TransInd.BEGIN,
        TransInd.SOLE,
    )


def _fault_batch(error: TrailError, names: list[str]) -> pa.RecordBatch:
    schema = pa.schema([*(SCHEMA.field(name) for name in names), pa.field(FAULT, pa.string())])
    arrays = [pa.nulls(1, SCHEMA.field(name).type) for name in names]
    return pa.record_batch([*arrays, pa.array([str(error)])], schema=schema)


def _parts(
    path: Path,
    wanted: RowFilter,
    first: int,
    last: int | None,
    on_damage: OnDamage,
    keys: Keys | None,
    known: Context | None,
) -> Iterator[ChangeBatch | TrailError]:
    """Return the wanted rows of a range, and an error for each damaged place in it."""
    name, seqno = _trail(path)
    if _is_pruned(path, name, seqno, wanted):
        return
    place = first
    while True:
        reader = TrailReader(name, TrailPosition(seqno, place), known, keys)
        try:
            yield from _read(reader, seqno, wanted, last)
        except TrailError as error:
            if on_damage is OnDamage.RAISE:
                raise
            here = max(reader.position.rba, place)
            following: int | None = here
            known = _context(path, here) if known is None else None
            if known is None:
                if on_damage is OnDamage.TELL:
                    yield error
                if not _is_open(name, seqno):
                    return
                following, known = _behind_damage(path, here)
        else:
            return
        finally:
            reader.close()
        if following is None or (last is not None and following >= last):
            return
        place = following


def _read(reader: TrailReader, seqno: int, wanted: RowFilter, last: int | None) -> Iterator[ChangeBatch]:
    while True:
        end = reader.end()
        here = reader.position
        if end is None or here >= end or here.seqno != seqno or (last is not None and here.rba >= last):
            return
        path = reader.name.file(seqno)
        size = path.stat().st_size
        if here.rba >= size and end.seqno > seqno:
            expected = _header(reader.name.file(seqno + 1)).previous_size
            if expected not in (None, size):
                raise damaged(path, size, f"{expected} bytes in this file, as the header of the next file says")
            return
        batch = reader.read(CHUNK if last is None else max(1, min(CHUNK, last - here.rba)), last)
        if batch is None or batch.seqno != seqno:
            return
        chosen = _chosen(batch, wanted, last)
        if chosen is not None:
            yield chosen


def _chosen(batch: ChangeBatch, wanted: RowFilter, last: int | None) -> ChangeBatch | None:
    keep = np.ones(len(batch), dtype=np.bool_)
    if last is not None:
        keep &= batch.rba < last
    if not wanted.all_transactions:
        keep &= np.repeat([wanted.piece(piece) for piece in batch.pieces], [piece.count for piece in batch.pieces])
    if wanted.tables:
        keep &= np.array([wanted.table(table) for table in batch.tables], dtype=np.bool_)[batch.table]
    if wanted.operations:
        numbers = [iotypes.io_type_number(text) for text in wanted.operations]
        keep &= np.isin(batch.io_type, numbers)
    return batch if keep.all() else _only(batch, keep)


def _only(batch: ChangeBatch, keep: NDArray[np.bool_]) -> ChangeBatch | None:
    """Return some rows of a batch and the pieces that still have rows; None if no row is left."""
    rows = np.flatnonzero(keep)
    if not len(rows):
        return None
    owner = np.repeat(np.arange(len(batch.pieces)), [piece.count for piece in batch.pieces])[rows]
    used, firsts, counts = np.unique(owner, return_index=True, return_counts=True)
    pieces = []
    for number, first, count in zip(used.tolist(), firsts.tolist(), counts.tolist(), strict=True):
        piece = batch.pieces[number]
        begins = piece.begins and int(rows[first]) == piece.first
        ends = piece.ends and int(rows[first + count - 1]) == piece.first + piece.count - 1
        pieces.append(TransactionPiece(piece.header, first, count, begins, ends))
    names = ("table", "io_type", "position", "start", "length", "rba")
    user = batch.user_tokens
    return replace(
        batch,
        pieces=tuple(pieces),
        befores=None if batch.befores is None else batch.befores[rows],
        user_tokens=None if user is None else Areas(user.start[rows], user.length[rows]),
        **{name: getattr(batch, name)[rows] for name in names},
    )


def _trail(path: Path) -> tuple[TrailName, int]:
    digits = path.name[2:]
    if len(digits) not in (6, 9) or not digits.isdigit():
        raise NotFoundError(
            f"{path} is not a trail file",
            hint="specify a file whose name is two characters and a 9-digit sequence number",
        )
    if not path.exists():
        raise NotFoundError(f"trail file {path} does not exist")
    return TrailName(path.parent, path.name[:2]), int(digits)


def _is_pruned(path: Path, name: TrailName, seqno: int, wanted: RowFilter) -> bool:
    """Whether the headers of this file and the next one show that the file has no wanted rows."""
    if wanted.all_transactions:
        return False
    here = _header(path)
    if here.first_csn is not None and wanted.last_csn is not None and here.first_csn.value > wanted.last_csn.value:
        return True
    if here.first_time is not None and wanted.last_time is not None and here.first_time > wanted.last_time:
        return True
    following = name.file(seqno + 1)
    if not following.exists():
        return False
    behind = _header(following)
    if behind.previous_csn is not None and wanted.first_csn is not None:
        return behind.previous_csn.value < wanted.first_csn.value and behind.inside is None
    if behind.first_time is not None and wanted.first_time is not None:
        return behind.first_time < wanted.first_time
    return False


def _header(path: Path) -> FileHeader:
    """Return a file's header; an empty one if it is damaged or missing, which is reported when the file is read."""
    try:
        with path.open("rb") as file:
            return decode_header(file.read(LONGEST))
    except (ValueError, FileNotFoundError):
        return FileHeader()


def _context(path: Path, place: int) -> Context | None:
    """Return the context before a transaction's start, from the undamaged records there.

    Damage before the start belongs to an earlier range and is reported there. None if no undamaged record at the place
    begins a transaction."""
    file = InspectedFile(path)
    try:
        seen = file.at(place) if place > file.first else None
        if seen is None or not seen.size or seen.fault or not _begins(seen.record):
            return None
        return Context(file.definitions(place), None)
    finally:
        file.close()


def _is_open(name: TrailName, seqno: int) -> bool:
    """Whether the file can be opened; if its header is not valid, the damage cannot be skipped."""
    try:
        open_file(name, seqno).close()
    except (TrailError, FileNotFoundError):
        return False
    return True


def _behind_damage(path: Path, place: int) -> tuple[int | None, Context | None]:
    """Return the start of the first undamaged transaction after the record at a place, and the context before it."""
    file = InspectedFile(path)
    try:
        found = transaction_after(file, place + 1)
        return (None, None) if found is None else (found, Context(file.definitions(found), None))
    finally:
        file.close()
