"""Tables of a lake in an object store, read by the libraries of their form alone."""

from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.dataset as ds
from lakes import Lake
from rest_catalog import CLIENT, SECRET

from ggshell.connectors.lake.commits import CommitLog
from ggshell.connectors.lake.store import LakeStore
from ggshell.connectors.lake.target import TableForm


def stored_table(lake: Lake, name: str) -> pa.Table:
    """A table (``log``: the log)."""
    target = lake.target
    if lake.form is TableForm.DELTA:
        from deltalake import DeltaTable

        return pa.table(DeltaTable(f"{target.location}/{'log' if name == 'log' else 'current/' + name}").scan())
    if lake.form is TableForm.ICEBERG:
        from pyiceberg.catalog import load_catalog

        kind, _, address = target.catalog.partition("+")
        address = address.replace("postgresql://", "postgresql+psycopg://")
        properties = {"credential": f"{CLIENT}:{SECRET}", "oauth2-server-uri": f"{address}/v1/oauth/tokens"}
        properties = {**(properties if kind == "rest" else {}), "s3.endpoint": os.environ["AWS_ENDPOINT_URL"]}
        catalog = load_catalog("lake", type=kind, uri=address, **properties)
        return catalog.load_table(("_ggshell", "log") if name == "log" else tuple(name.split("."))).scan().to_arrow()
    folder = "log"
    if name != "log":
        done = CommitLog(target, "LAKE").latest()
        assert done is not None
        folder = f"current/{name}/v={done.tables[name]:012d}"
    place = LakeStore(target.location).child(folder)
    return ds.dataset(place.path, filesystem=place.system, format="parquet", partitioning="hive").to_table()
