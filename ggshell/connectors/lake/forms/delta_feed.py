"""The change data feed of a Delta table.

Readers take the changes of a commit from its ``cdc`` files. If it has none, they derive them from the data files that it adds
and removes, which is wrong for files with deletion vectors. So each commit that changes rows of a table with a feed lists them
in ``cdc`` files, and the files of any other commit do not count as changes (``dataChange``). ``DeltaState.commit`` requires
this.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ggshell.connectors.lake.columns import with_filled
from ggshell.connectors.lake.forms import KEY
from ggshell.connectors.lake.forms.delta_files import CHANGE
from ggshell.connectors.lake.forms.delta_state import Action
from ggshell.connectors.lake.partitions import Part, Values, derived, partitioned
from ggshell.parameters.lake_tables import PartitionField


def replacements(
    gone: pa.Table, fresh: Collection[Part], fields: Sequence[PartitionField]
) -> Iterator[tuple[Values, pa.Table]]:
    """Rows that go and new ones, by partition, each with its kind of change. A key that has both is updated."""
    old = gone[KEY].combine_chunks()
    new = pa.concat_arrays([pa.array([], pa.string()), *(part.rows[KEY].combine_chunks() for part in fresh)])
    extra = [field.name for field in derived(fields) if field.name in gone.column_names]
    for part in partitioned(gone.drop_columns(extra), fields):
        yield part.values, _divided(part.rows, new, "update_preimage", "delete")
    for part in fresh:
        yield part.values, _divided(part.rows, old, "update_postimage", "insert")


def fillings(parts: Iterable[pa.Table], filled: Mapping[str, pa.Scalar]) -> Iterator[pa.Table]:
    """Rows before and after columns of them are filled."""
    for rows in parts:
        yield _marked(rows, pa.repeat("update_preimage", rows.num_rows))
        yield _marked(with_filled(rows, filled), pa.repeat("update_postimage", rows.num_rows))


def with_feed(files: Iterable[Action], feed: Sequence[Action]) -> list[Action]:
    """The actions of a commit to a table with a feed: without changes of rows, its files do not count as changes."""
    if feed:
        return [*files, *feed]
    return [{kind: {**said, "dataChange": False} for kind, said in action.items()} for action in files]


def _divided(rows: pa.Table, others: pa.Array, updated: str, alone: str) -> pa.Table:
    known = pc.is_in(rows[KEY].combine_chunks(), others)
    return _marked(rows, pc.if_else(known, updated, alone))


def _marked(rows: pa.Table, kinds: pa.Array) -> pa.Table:
    return rows.append_column(CHANGE, kinds)
