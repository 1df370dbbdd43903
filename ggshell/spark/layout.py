"""What a read of ``ggtrail`` gives by its options: the trail's columns, or a table's own with Spark's types."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from ggshell.errors import UsageError
from ggshell.spark import facts, paths, splits, values
from ggshell.spark.splits import Split
from ggshell.spark.trail_keys import HomeKeys, keys_from
from ggshell.trail.columnar import EVERYTHING, FAULT, OnDamage, Wanted, read_columnar, read_table

SPLIT_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Layout:
    """A read: the columns of the trail (``trail``), and of a table its name and its own columns (name, type text).

    ``keys`` open encrypted values; no other column needs them.
    """

    trail: tuple[str, ...]
    table: str = ""
    own: tuple[tuple[str, str], ...] = ()
    on_damage: OnDamage = OnDamage.RAISE
    keys: HomeKeys | None = None

    @property
    def schema(self) -> pa.Schema:
        return pa.schema(
            [*facts.chosen(self.trail), *(pa.field(name, values.arrow_type(kind)) for name, kind in self.own)]
        )

    @property
    def ddl(self) -> str:
        """The schema as Spark writes it."""
        own = [f"`{name.replace('`', '``')}` {values.spark_type(values.arrow_type(kind))}" for name, kind in self.own]
        return ", ".join([*([facts.spark_ddl(facts.chosen(self.trail))] if self.trail else []), *own])

    def only(self, names: Sequence[str]) -> Layout:
        """The same with fewer columns, in the order of ``names``, which may not mix trail and table."""
        own = dict(self.own)
        trail = tuple(name for name in names if name not in own or name in self.trail)
        chosen = tuple((name, own[name]) for name in names if name in own and name not in self.trail)
        if [*trail, *(name for name, _ in chosen)] != list(names):
            raise UsageError("columns of the trail stand before the table's own", hint="as option with= has them")
        return Layout(trail, self.table, chosen, self.on_damage, self.keys)

    def batches(self, split: Split, wanted: Wanted = EVERYTHING) -> Iterator[pa.RecordBatch]:
        """The rows of a split.  Raises TrailError for damage where that is an error."""
        path = paths.local_copy(split.file)
        if self.table:
            yield from self._table_batches(path, split, wanted)
            return
        names = [name for name in self.trail if name != FAULT]
        schema = facts.chosen(self.trail)
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
            yield facts.fitted(batch, schema)

    def _table_batches(self, path: Path, split: Split, wanted: Wanted) -> Iterator[pa.RecordBatch]:
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
            arrays = list(facts.fitted(batch.select(self.trail), facts.chosen(self.trail)).columns)
            there = batch.schema.names[len(self.trail) :]
            for number, (name, kind) in enumerate(self.own, len(self.trail)):
                if name in there:
                    texts = batch.column(len(self.trail) + there.index(name))
                    arrays.append(values.typed(texts, values.arrow_type(kind), name, strict=strict))
                else:
                    arrays.append(pa.nulls(batch.num_rows, schema.field(number).type))
            yield pa.record_batch(arrays, schema=schema)


def files_of(options: Mapping[str, str], base: Path | None = None) -> list[str]:
    """The files that option ``path`` means: one trail, file, folder or glob, or several with commas; or those that option
    ``files`` names, a list in JSON, for paths with commas of their own.  Raises UsageError."""
    if "files" in options:
        return [str(file) for file in json.loads(options["files"])]
    text = options.get("path", "")
    if not text:
        raise UsageError("ggtrail reads a path", hint='spark.read.format("ggtrail").load("dirdat/ea")')
    return list(dict.fromkeys(file for part in text.split(",") for file in paths.trail_files(part.strip(), base)))


def layout_of(options: Mapping[str, str]) -> Layout:
    """The read that options ask for.  Raises UsageError, and NotFoundError for a table that the trail does not have."""
    keys = keys_from(options.get("home", ""), options.get("wallet", ""))
    mode = _mode(options.get("mode", OnDamage.RAISE.value))
    table = options.get("table", "")
    if table:
        definitions = splits.find_definitions(map(paths.local_copy, files_of(options)), table)
        name = definitions[-1].name
        trail = _names(options.get("with", ""))
        facts.chosen(trail)
        return Layout(trail, f"{name.owner}.{name.name}", tuple(splits.merged_columns(definitions)), mode, keys)
    names = _names(options.get("columns", "")) or facts.COLUMNS
    facts.chosen(names)
    if mode is OnDamage.TELL and FAULT not in names:
        names = (*names, FAULT)
    return Layout(names, on_damage=mode, keys=keys)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _mode(text: str) -> OnDamage:
    try:
        return OnDamage(text.upper())
    except ValueError:
        raise UsageError(f"unknown mode {text}", hint=f"one of {', '.join(each.value for each in OnDamage)}") from None


def plan(files: Sequence[str], size: int = SPLIT_BYTES, *, up_to_cut: bool = False) -> list[Split]:
    """The splits of files, in order.  ``up_to_cut``: of a file that was cut off what is whole, for whoever tells of it; else
    reading it is an error."""
    found: list[Split] = []
    for file in files:
        path = paths.local_copy(file)
        found += splits.splits_of(file, path, size, last=splits.cut_place(path) if up_to_cut else None)
    return found
