"""What reading a trail returns: the trail's columns, or a table's own columns, in Arrow types that Spark has too.

``TrailRead`` is what the options of ``ggtrail`` describe; ``TrailView`` is a trail as the input of a query on either engine.
Spark has no unsigned integers, so positions are signed here. Times are instants (UTC).
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa

from ggshell.cipher import Key
from ggshell.errors import DiskError, UsageError
from ggshell.files import read_json
from ggshell.home.home import Home
from ggshell.home.wallet import Wallet
from ggshell.object_stores import is_elsewhere
from ggshell.query import paths, splits, values
from ggshell.query.pushdown import Condition, wanted_by
from ggshell.query.splits import TrailSplit
from ggshell.store_paths import path_of
from ggshell.trail.arrow import SCHEMA as TRAIL_SCHEMA
from ggshell.trail.columnar import EVERYTHING, FAULT, OnDamage, RowFilter, read_columnar, read_table

_SIGNED: Final = {pa.uint8(): pa.int32(), pa.uint64(): pa.int64()}
_SPARK_NAMES: Final = {
    pa.string(): "string",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float64(): "double",
    pa.timestamp("us", "UTC"): "timestamp",
}
SCHEMA: Final = pa.schema(
    [*(pa.field(field.name, _SIGNED.get(field.type, field.type)) for field in TRAIL_SCHEMA), (FAULT, pa.string())]
)
"""Every column that a trail can return; ``fault`` only if damage is reported as rows."""
COLUMNS: Final = tuple(TRAIL_SCHEMA.names)


def chosen(names: Sequence[str]) -> pa.Schema:
    """The schema of some columns. Raises UsageError for an unknown column."""
    unknown = [name for name in names if name not in SCHEMA.names]
    if unknown:
        raise UsageError(f"a trail has no column {', '.join(unknown)}", hint=f"its columns are {', '.join(COLUMNS)}")
    return pa.schema([SCHEMA.field(name) for name in names])


def spark_ddl(schema: pa.Schema) -> str:
    """The same schema in Spark's notation."""
    return ", ".join(f"`{field.name}` {_spark_type(field.type)}" for field in schema)


def _spark_type(kind: pa.DataType) -> str:
    return "map<string,string>" if pa.types.is_map(kind) else _SPARK_NAMES[kind]


def fitted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Convert a batch to exactly these columns and types. Only columns whose type changes are copied."""
    return pa.record_batch(
        [_as(batch.column(batch.schema.get_field_index(field.name)), field.type) for field in schema], schema=schema
    )


def _as(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if column.type == kind or pa.types.is_map(kind):
        return column
    return column.cast(kind)


SPLIT_BYTES = 64 << 20
_AT_ONCE: Final = 16
"""Files of an object store that are planned at once."""


@dataclass(frozen=True, slots=True)
class TrailRead:
    """A read: the columns of the trail (``trail``), and optionally a table and its own columns (name, type text).

    ``keys`` decrypt encrypted trails.
    """

    trail: tuple[str, ...]
    table: str = ""
    own: tuple[tuple[str, str], ...] = ()
    on_damage: OnDamage = OnDamage.RAISE
    keys: HomeKeys | None = None

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([*chosen(self.trail), *(pa.field(name, values.arrow_type(kind)) for name, kind in self.own)])

    @property
    def ddl(self) -> str:
        """The schema in Spark's notation."""
        own = [f"`{name.replace('`', '``')}` {values.spark_type(values.arrow_type(kind))}" for name, kind in self.own]
        return ", ".join([*([spark_ddl(chosen(self.trail))] if self.trail else []), *own])

    def only(self, names: Sequence[str]) -> TrailRead:
        """The same read with fewer columns, in the order of ``names``.

        Raises UsageError unless columns of the trail come before the table's own.
        """
        own = dict(self.own)
        trail = tuple(name for name in names if name not in own or name in self.trail)
        chosen = tuple((name, own[name]) for name in names if name in own and name not in self.trail)
        if [*trail, *(name for name, _ in chosen)] != list(names):
            raise UsageError(
                "columns of the trail must come before the table's own", hint="select them in the order of option with="
            )
        return TrailRead(trail, self.table, chosen, self.on_damage, self.keys)

    def batches(self, split: TrailSplit, wanted: RowFilter = EVERYTHING) -> Iterator[pa.RecordBatch]:
        """The rows of a split. Raises TrailError for damage if ``on_damage`` requires it."""
        path = path_of(split.file)
        if self.table:
            yield from self._table_batches(path, split, wanted)
            return
        names = [name for name in self.trail if name != FAULT]
        schema = chosen(self.trail)
        for batch in read_columnar(
            path,
            names,
            wanted,
            first=split.first,
            last=split.last,
            on_damage=self.on_damage,
            keys=self.keys,
            known=split.known(path),
        ):
            yield fitted(batch, schema)

    def _table_batches(self, path: Path, split: TrailSplit, wanted: RowFilter) -> Iterator[pa.RecordBatch]:
        schema = self.schema
        strict = self.on_damage is OnDamage.RAISE
        for _, batch in read_table(
            path,
            self.table.replace("[", "?"),
            wanted,
            columns=self.trail,
            first=split.first,
            last=split.last,
            on_damage=self.on_damage,
            keys=self.keys,
            known=split.known(path),
        ):
            arrays = list(fitted(batch.select(self.trail), chosen(self.trail)).columns)
            there = batch.schema.names[len(self.trail) :]
            for number, (name, kind) in enumerate(self.own, len(self.trail)):
                if name in there:
                    texts = batch.column(len(self.trail) + there.index(name))
                    arrays.append(values.typed(texts, values.arrow_type(kind), name, strict=strict))
                else:
                    arrays.append(pa.nulls(batch.num_rows, schema.field(number).type))
            yield pa.record_batch(arrays, schema=schema)


_SPLITS: Final = "splits"


@dataclass(frozen=True, slots=True)
class SplitRead:
    """A read that returns the splits, one row each, instead of their rows: for tasks that read the trail themselves."""

    schema: pa.Schema = pa.schema([("split", pa.binary())])  # noqa: RUF009 - immutable
    ddl: str = "split binary"
    table: str = ""
    on_damage: OnDamage = OnDamage.RAISE

    def only(self, names: Sequence[str]) -> SplitRead:
        return self

    def batches(self, split: TrailSplit, wanted: RowFilter = EVERYTHING) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch([pa.array([pickle.dumps(split)], pa.binary())], schema=self.schema)


def read_of(options: Mapping[str, str]) -> TrailRead | SplitRead:
    """The read that the options describe; option ``contents`` can be ``splits``. Raises UsageError, NotFoundError."""
    return SplitRead() if options.get("contents") == _SPLITS else trail_read_of(options)


def files_of(options: Mapping[str, str], base: Path | None = None) -> list[str]:
    """The files named by option ``path`` or ``files``. Raises UsageError.

    ``path``: one trail, file, folder or glob, or several separated by commas; ``files``: a JSON list, for paths that contain
    commas.
    """
    if "files" in options:
        return [str(file) for file in read_json(options["files"])]
    text = options.get("path", "")
    if not text:
        raise UsageError("ggtrail requires a path", hint='spark.read.format("ggtrail").load("dirdat/ea")')
    return list(dict.fromkeys(file for part in text.split(",") for file in paths.trail_files(part.strip(), base)))


def trail_read_of(options: Mapping[str, str]) -> TrailRead:
    """The read that the options describe. Raises UsageError, and NotFoundError for a table that the trail does not have."""
    keys = keys_from(options.get("home", ""), options.get("wallet", ""))
    mode = _mode(options.get("mode", OnDamage.RAISE.value))
    table = options.get("table", "")
    if table:
        definitions = splits.find_definitions(map(path_of, files_of(options)), table)
        name = definitions[-1].name
        trail = _names(options.get("with", ""))
        chosen(trail)
        return TrailRead(trail, f"{name.owner}.{name.name}", tuple(splits.merged_columns(definitions)), mode, keys)
    names = _names(options.get("columns", "")) or COLUMNS
    chosen(names)
    if mode is OnDamage.TELL and FAULT not in names:
        names = (*names, FAULT)
    return TrailRead(names, on_damage=mode, keys=keys)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _mode(text: str) -> OnDamage:
    try:
        return OnDamage(text.upper())
    except ValueError:
        raise UsageError(f"unknown mode {text}", hint=f"one of {', '.join(each.value for each in OnDamage)}") from None


def plan(
    files: Sequence[str], size: int = SPLIT_BYTES, *, up_to_cut: bool = False, on_damage: OnDamage = OnDamage.RAISE
) -> list[TrailSplit]:
    """The splits of files, in order. If damage is skipped, it is skipped to the next transaction, so none is divided then.

    ``up_to_cut``: read a truncated file up to its last whole transaction, for callers that report the loss; otherwise
    reading it is an error.
    """

    def split(file: str) -> list[TrailSplit]:
        path = path_of(file)
        last = splits.cut_place(path) if up_to_cut else None
        return splits.splits_of(file, path, size, last=last, inside=on_damage is OnDamage.RAISE)

    if any(map(is_elsewhere, files)):  # each file takes some round trips
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return [each for found in pool.map(split, files) for each in found]
    return [each for file in files for each in split(file)]


@dataclass(frozen=True, slots=True)
class TrailView:
    """Trails under a name.

    ``conditions``: what is needed of them at most; ``split``: read only this part of a file; ``keys``: open encrypted files.
    """

    name: str
    files: tuple[str, ...]
    columns: tuple[str, ...] = COLUMNS
    conditions: tuple[Condition, ...] = ()
    on_damage: OnDamage = OnDamage.RAISE
    split: TrailSplit | None = None
    keys: HomeKeys | None = None

    @property
    def size(self) -> int:
        return paths.total_bytes(self.files)

    def read(self, failed: Callable[[Exception], None] = lambda _: None) -> pa.RecordBatchReader:
        """The rows, file by file. Raises TrailError for damage.

        ``failed`` receives the original error, because the consumer of the batches can wrap it.
        """
        read = TrailRead(self.columns, on_damage=self.on_damage, keys=self.keys)
        return pa.RecordBatchReader.from_batches(read.schema, self._batches(read, failed))

    def _batches(self, read: TrailRead, failed: Callable[[Exception], None]) -> Iterator[pa.RecordBatch]:
        wanted = wanted_by(self.conditions)
        try:
            for split in [self.split] if self.split else plan(self.files, 1 << 62, up_to_cut=True):
                yield from read.batches(split, wanted)
        except OSError as error:
            failed(DiskError(f"{error.filename or self.files[0]} cannot be read: {error.strerror or error}"))
            raise
        except Exception as error:
            failed(error)
            raise


@dataclass(frozen=True, slots=True)
class HomeKeys:
    """Keys for reading (``trail.sealing.Keys``): a home, and its wallet's folder if not ``dirwlt`` (WALLETLOCATION)."""

    home: str
    wallet: str = ""

    @classmethod
    def of(cls, home: Home, wallet: Wallet) -> HomeKeys:
        """Keys with absolute paths, for processes in other working directories."""
        return cls(str(home.root.absolute()), str(wallet.folder.absolute()))

    def __call__(self, name: str, version: int) -> tuple[Key, ...]:
        """The keys of a name and version. Raises NotFoundError, StoreError."""
        return Wallet(Home(Path(self.home)), self.wallet).keys(name, version)


def keys_from(home: str, wallet: str) -> HomeKeys | None:
    """The keys that options name; None without a home."""
    return HomeKeys(home, wallet) if home else None
