"""LAKETABLE: the layout of the tables of a lake, and what they keep besides the source's columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from ggshell.errors import ParameterError, StatementError
from ggshell.parameters.lines import Parameter, located
from ggshell.record.name_patterns import matches
from ggshell.types import TableName

TARGET_BYTES = 128 << 20
_FIELD = re.compile(r"(?:(?P<transform>\w+)\s*\(\s*)?(?P<column>\"[^\"]+\"|[^\s(),]+)(?:\s*,\s*(?P<number>\d+))?\s*\)?")
_HINT = "write, for example, PARTITIONBY (region, DAY (created)), METADATA (CSN, OP)"


class Transform(StrEnum):
    """How the value of a partition follows from a column. The value is the name in Iceberg's paths."""

    IDENTITY = "identity"
    YEAR = "year"
    MONTH = "month"
    DAY = "day"
    HOUR = "hour"
    BUCKET = "bucket"
    TRUNCATE = "trunc"


_NUMBERED = (Transform.BUCKET, Transform.TRUNCATE)
_TIMES = (Transform.YEAR, Transform.MONTH, Transform.DAY, Transform.HOUR)
_WORDS = {each: each.name for each in Transform}
_TRANSFORMS = {word: each for each, word in _WORDS.items()}


class PartitionField(NamedTuple):
    """A field of a partition. ``number``: the buckets of BUCKET, the width of TRUNCATE."""

    column: str
    transform: Transform = Transform.IDENTITY
    number: int = 0

    @property
    def name(self) -> str:
        """The name of the field: that of its column, or of column and transform."""
        return self.column if self.transform is Transform.IDENTITY else f"{self.column}_{self.transform}"

    @property
    def text(self) -> str:
        """The field as LAKETABLE names it."""
        inner = f"{self.column}, {self.number}" if self.number else self.column
        return self.column if self.transform is Transform.IDENTITY else f"{_WORDS[self.transform]} ({inner})"


class Metadata(StrEnum):
    """A column about the last change of a row; the value is the name of the column."""

    CSN = "_csn"
    COMMITTIME = "_commit_time"
    OP = "_op"
    XID = "_xid"


class Deletes(StrEnum):
    """What becomes of rows that are deleted at the source."""

    REMOVED = "removed"
    MARKED = "marked"
    """SOFTDELETES: the row stays, with ``_deleted``."""
    CLOSED = "closed"
    """HISTORY: the table has every version of a row (SCD type 2)."""


class Compression(StrEnum):
    """The compression of data files; the value is Parquet's name."""

    ZSTD = "zstd"
    SNAPPY = "snappy"
    GZIP = "gzip"
    LZ4 = "lz4"
    NONE = "none"


class TableLayout(NamedTuple):
    """The layout of a current table.

    ``cluster``: the columns by which the rows of a file are sorted; ``deleted_share``: the share of deleted rows up to which
    a file is only marked, not rewritten; ``feed``: Delta's change data feed.
    """

    partition: tuple[PartitionField, ...] = ()
    cluster: tuple[str, ...] = ()
    target_bytes: int = TARGET_BYTES
    compression: Compression = Compression.ZSTD
    metadata: tuple[Metadata, ...] = ()
    deletes: Deletes = Deletes.REMOVED
    feed: bool = False
    deleted_share: float = 0.2


DEFAULT_LAYOUT = TableLayout()


class LakeLayouts(NamedTuple):
    """The layouts of all tables: those of the first LAKETABLE line that selects a table. A task of Spark receives it too."""

    rules: tuple[tuple[str, TableLayout], ...] = ()

    def of(self, table: TableName) -> TableLayout:
        return next((layout for pattern, layout in self.rules if matches(pattern, table)), DEFAULT_LAYOUT)


DEFAULT_LAYOUTS = LakeLayouts()


def lake_layouts(found: Iterable[Parameter]) -> LakeLayouts:
    """The LAKETABLE lines of a file. Raises ParameterError."""
    return LakeLayouts(tuple((item.args["table"], table_layout(item)) for item in found if item.name == "LAKETABLE"))


def table_layout(item: Parameter) -> TableLayout:
    """One LAKETABLE line. Raises ParameterError at the column of a value that is not valid."""
    args, default = item.args, TableLayout()
    deletes = Deletes.REMOVED
    if "softdeletes" in args or "history" in args:
        deletes = Deletes.MARKED if "softdeletes" in args else Deletes.CLOSED
    return TableLayout(
        _partition(item),
        tuple(name.strip('"') for name in args.get("clusterby", ())),
        args.get("targetsize", default.target_bytes),
        Compression[str(args["compression"]).upper()] if "compression" in args else default.compression,
        _metadata(item),
        deletes,
        "changefeed" in args,
        float(args["deletedshare"]) / 100 if "deletedshare" in args else default.deleted_share,
    )


def _partition(item: Parameter) -> tuple[PartitionField, ...]:
    found: list[PartitionField] = []
    for text in _parts(str(item.args.get("partitionby", "()"))):
        match = _FIELD.fullmatch(text)
        word = (match["transform"] or "IDENTITY").upper() if match else ""
        transform = _TRANSFORMS.get(word)
        number = int(match["number"] or 0) if match else 0
        if match is None or transform is None or bool(number) != (transform in _NUMBERED):
            raise _wrong(item, "partitionby", f"{text} is not a valid field of a partition")
        field = PartitionField(match["column"].strip('"'), transform, number)
        if any(each.column == field.column and _is_same_kind(each.transform, transform) for each in found):
            raise _wrong(item, "partitionby", f"{text}: a column can be partitioned in one such way only")
        found.append(field)
    return tuple(found)


def _is_same_kind(one: Transform, other: Transform) -> bool:
    return one is other or (one in _TIMES and other in _TIMES)


def _metadata(item: Parameter) -> tuple[Metadata, ...]:
    words = [text.upper() for text in _parts(str(item.args.get("metadata", "()")))]
    unknown = [word for word in words if word not in Metadata.__members__]
    if unknown:
        names = ", ".join(each.name for each in Metadata)
        raise _wrong(item, "metadata", f"{unknown[0]} is not a metadata column; there are {names}")
    return tuple(each for each in Metadata if each.name in words)


def _parts(body: str) -> Sequence[str]:
    """The texts between the commas of a body that are not within further parentheses."""
    inner = body.strip().removeprefix("(").removesuffix(")")
    found = re.split(r",(?![^()]*\))", inner)
    return [text.strip() for text in found if text.strip()]


def _wrong(item: Parameter, argument: str, text: str) -> ParameterError:
    return located(StatementError(text, column=item.column(argument), hint=_HINT, page="laketable"), item.raw)
