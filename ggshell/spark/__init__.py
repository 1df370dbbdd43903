"""Trails and lag on Spark: the data source ``ggtrail``, one set of questions for DuckDB and Spark, delivery to a lake.

Usable without the shell, with any Spark session (classic or Connect), from PySpark 4.3 on:

    import ggshell.spark
    ggshell.spark.register(spark)

Spark's workers must run the Python that has this package: where it is not the path's ``python3``, ``PYSPARK_PYTHON`` says so
before the session begins (else reading fails with ModuleNotFoundError).

Five recipes, with ``spark`` such a session (RECIPES below holds them as they are tested):

1. what changed, by table and operation; 2. a table's own columns with types; 3. only some files and records; 4. a stream
that restarts exactly; 5. rows back into a trail.

Options of reading: ``path`` (a trail, a file, a folder, a glob, several with commas), ``table`` (its own columns instead of
the trail's), ``with`` (columns of the trail before those), ``columns`` (only these of the trail: less is decoded), ``mode``
(FAILFAST, the default; DROPMALFORMED; PERMISSIVE with a column ``fault``), ``splitBytes`` (64MB), ``pushdown`` (false;
true: the reader leaves out files and records by the query's conditions; only for a frame that its query reads once, since
Spark 4.3 gives the last scan's conditions to all scans of a frame), ``home`` (a home whose wallet opens encrypted trails, as
the readers see it; ``wallet``: the wallet's folder, if it is not the home's ``dirwlt``).  Of streams also
``startingSeqno``, ``startingRba``, ``maxBytesPerTrigger``.  Of writing: ``path``, ``megabytes`` (500), ``definitions`` (a
trail that knows the tables; else all columns are text), ``rowsPerTransaction`` (1000; for frames without CSNs), ``table``
and ``key`` (rows of a table's own columns).
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
    """Make ``ggtrail`` known to a session, and let it push conditions down to the reader."""
    from ggshell.spark.source import TrailSource

    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    spark.dataSource.register(TrailSource)
