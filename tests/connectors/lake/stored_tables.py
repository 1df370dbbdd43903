"""Tables of a lake in an object store, read by the libraries of their form alone."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.dataset as ds
from lakes import Lake, read_table

from ggshell.connectors.lake.commits import CommitLog
from ggshell.connectors.lake.store import LakeStore
from ggshell.types import TableName


def stored_table(lake: Lake, name: str) -> pa.Table:
    """A table (``log``: the log)."""
    target = lake.target
    read = read_table(target, None if name == "log" else TableName.parse(name))
    if read is not None:
        return read
    folder = "log"
    if name != "log":
        done = CommitLog(target, "LAKE").latest()
        assert done is not None
        folder = f"current/{name}/v={done.tables[name]:012d}"
    place = LakeStore(target.location).child(folder)
    return ds.dataset(place.path, filesystem=place.system, format="parquet", partitioning="hive").to_table()
