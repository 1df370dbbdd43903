"""Comparison of tables in databases of different kinds: forms of values and sums that every kind computes alike.

Each value becomes a text by its family, which both sides agree on. A row is the list of these texts with their lengths, and its
hash the first 60 bits of the MD5 of that. In the list, the MD5 of a value stands for one that may be long (``DIGESTED``). Keys
are ordered as texts by code point, integers as numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

from ggshell.pipeline.compare.drill import RANGE_ROWS
from ggshell.pipeline.compare.table_side import SideConnection, SideExpressions, SqlTableSide

HASH_DIGITS: Final = 15
"""The hexadecimal digits of a hash that are used. So it is a positive number of 64 bits."""
FLOAT_SCALE: Final = 30
FLOAT_LIMIT: Final = "9" * 35
"""Floating-point numbers are compared as decimal numbers with so many places, up to this size. NaN counts as the largest."""
EXACT_FLOATS: Final = 1 << 53
"""From here on, floating-point numbers are integers. Databases give them different texts, so their exact value is compared."""
FLOAT_PART: Final = 1 << 60
"""Such a number is computed from its quotient by this one and the remainder, which are exact and fit into 64 bits."""


class Family(StrEnum):
    """What the text of a value is like."""

    INTEGER = "integer"
    DECIMAL = "decimal"
    FLOAT = "float"
    TRUTH = "truth"
    BITS = "bits"
    BYTES = "bytes"
    DATE = "date"
    TIME = "time"
    DURATION = "duration"
    MOMENT = "moment"
    DOCUMENT = "document"
    TEXT = "text"
    SOURCE_TEXT = "source text"
    """The text that a value of any type has at the source, as it is."""


DIGESTED: Final = frozenset({Family.BYTES, Family.DOCUMENT, Family.TEXT, Family.SOURCE_TEXT})
"""Families of values that may be long. A database may limit the length of a row's text, but hashes a value of any length."""
_NUMBERS: Final = (Family.TRUTH, Family.INTEGER, Family.DECIMAL, Family.FLOAT)
"""Each can be compared with the following ones."""


def common(mine: Family, theirs: Family) -> Family:
    """The family in which columns of two families are compared."""
    pair = {mine, theirs}
    if Family.SOURCE_TEXT in pair:
        return Family.SOURCE_TEXT
    if mine is theirs:
        return mine
    if pair <= {Family.TRUTH, Family.BITS, Family.INTEGER}:
        return Family.TRUTH if Family.TRUTH in pair else Family.INTEGER
    if pair == {Family.TEXT, Family.DOCUMENT}:
        return Family.DOCUMENT
    if pair <= set(_NUMBERS):
        return max(pair, key=_NUMBERS.index)
    if pair == {Family.TIME, Family.DURATION}:
        return Family.DURATION
    return Family.MOMENT if pair == {Family.DATE, Family.MOMENT} else Family.TEXT


class PortableColumn(NamedTuple):
    """A compared column: its name, the expression of its text, and its family.

    ``digest``: the expression of the MD5 of a value, if the family is one of ``DIGESTED``: of the bytes of a binary value, and
    of the text of another one in UTF-8.
    """

    name: str
    text: str
    family: Family
    digest: str = ""


class Dialect(SideConnection, Protocol):
    """How a database writes what a comparison asks. Expressions are SQL; percent signs in them are doubled."""

    def row(self, columns: Sequence[PortableColumn]) -> str:
        """The text of a row: each digest, or each text with its length before it, and a mark for NULL."""
        ...

    def hash(self, text: str) -> str:
        """The hash of a text as an integer; never NULL."""
        ...

    def total(self, number: str) -> str:
        """The sum of an integer as text; 0 without rows."""
        ...

    def ordered(self, column: PortableColumn) -> str:
        """The expression by which a key is ordered."""
        ...

    def mark(self, column: PortableColumn) -> str:
        """The parameter, a text, to compare with ``ordered``."""
        ...


_HASH: Final = PortableColumn("", "", Family.INTEGER)


class PortableSide(SqlTableSide):
    """A table that is compared with one of another kind. Without a key, rows are ordered by their hash."""

    def __init__(
        self,
        dialect: Dialect,
        table: str,
        columns: Sequence[PortableColumn],
        key: Sequence[str],
        range_rows: int = RANGE_ROWS,
    ) -> None:
        texts = [column.text for column in columns]
        by_name: Mapping[str, PortableColumn] = {column.name: column for column in columns}
        row = dialect.row(columns)
        row_hash = dialect.hash(row)
        keys = [by_name[name] for name in key] or [_HASH]
        expressions = SideExpressions(
            table=table,
            texts=texts,
            row=row,
            sums=f"COUNT(*), {dialect.total(row_hash)}",
            key=[dialect.ordered(column) for column in keys] if key else [row_hash],
            key_texts=[column.text for column in keys] if key else [row_hash],
            marks=", ".join(map(dialect.mark, keys)),
            bucketed=dialect.hash(dialect.row(keys)) if key else row_hash,
            keyed=bool(key),
        )
        super().__init__(dialect, expressions, range_rows)
