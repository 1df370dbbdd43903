"""Rows of changes as an Arrow table of texts, which DuckDB reads where it lies."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ggshell.databases.duckdb.casts import arrays_as_json
from ggshell.errors import ApplyError
from ggshell.record.fields import Value


def arrow_rows(rows: Sequence[Sequence[Value]], arrays: Sequence[int]) -> pa.Table:
    """One string column for each value of a row, ``c0``, ``c1`` …; ``arrays``: those whose texts are array literals.

    Raises ApplyError for a text that is not UTF-8.
    """
    columns: list[Sequence[Value]] = list(zip(*rows, strict=True))
    for place in arrays:
        columns[place] = arrays_as_json(columns[place])
    try:
        texts = [pa.array(column, pa.binary()).cast(pa.string()) for column in columns]
    except pa.ArrowInvalid as error:
        raise ApplyError(f"a value is not UTF-8: {error}") from error
    return pa.table(texts, names=[f"c{place}" for place in range(len(texts))])
