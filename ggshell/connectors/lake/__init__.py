"""Delivery of a trail to a lake (Parquet, Delta or Iceberg) on Spark: a log of changes, and each table's current state."""
