"""Trails and lag on Spark: the data source ``ggtrail``, one set of queries for DuckDB and Spark, delivery to a lake.

Usable without the shell, with any Spark session (classic or Connect), from PySpark 4.3 on:

    import ggshell.query
    ggshell.query.register(spark)

Spark's workers must run the Python that has this package. If that is not ``python3`` on the PATH, set ``PYSPARK_PYTHON``
before the session starts (otherwise reading fails with ModuleNotFoundError).

Five recipes for such a session ``spark`` (RECIPES below contains them as they are tested):

1. what changed, by table and operation; 2. a table's own columns with types; 3. only some files and records; 4. a stream
that restarts exactly; 5. rows back into a trail.

Read options: ``path`` (a trail, a file, a folder, a glob, or several separated by commas), ``table`` (its own columns
instead of the trail's), ``with`` (columns of the trail before those), ``columns`` (only these columns of the trail, so that
less is decoded), ``mode`` (FAILFAST, the default; DROPMALFORMED; PERMISSIVE with a column ``fault``), ``splitBytes`` (64MB),
``pushdown`` (false; true: the reader skips files and records by the query's conditions. Use it only for a frame that its
query scans once, because Spark 4.3 applies the conditions of the last scan to all scans of a frame), ``home`` (a home whose
wallet opens encrypted trails, as a path on the readers' machines), ``wallet`` (the wallet's folder, if it is not ``dirwlt``
of the home). For streams also ``startingSeqno``, ``startingRba``, ``maxBytesPerTrigger``, ``latency`` (0; seconds: a batch
begins as late as its rows can still be stored so long after they were written). Write options: ``path``,
``megabytes`` (500), ``definitions`` (a trail that defines the tables; without it all columns are text),
``rowsPerTransaction`` (1000; for frames without CSNs), ``table`` and ``key`` (for rows with a table's own columns).
"""

from __future__ import annotations

from typing import Any

RECIPES = {
    "what changed": """
changes = spark.read.format("ggtrail").option("columns", "owner,table,op").load(trail)
answer = changes.groupBy("owner", "table", "op").count()
""",
    "a table's own columns": """
answer = spark.read.format("ggtrail").option("table", table).option("with", "op,csn").load(trail)
""",
    "some files and records": """
from pyspark.sql.functions import col
changes = spark.read.format("ggtrail").option("pushdown", "true").load(trail)
answer = changes.where((col("commit_ts") >= since) & (col("op") == "Insert")).select("csn", "columns")
""",
    "a stream": """
stream = spark.readStream.format("ggtrail").option("maxBytesPerTrigger", "64MB").load(trail)
query = (stream.writeStream.format("parquet").option("path", lake).option("checkpointLocation", lake + "/_checkpoint")
         .trigger(availableNow=True).start())
""",
    "into a trail": """
changes = spark.read.format("ggtrail").load(trail).where("op = 'Insert'")
changes.coalesce(1).write.format("ggtrail").mode("append").save(other)
""",
}


def register(spark: Any) -> None:
    """Register ``ggtrail`` with a session, and enable pushing down conditions to the reader."""
    from ggshell.query.source import TrailSource

    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    spark.dataSource.register(TrailSource)
