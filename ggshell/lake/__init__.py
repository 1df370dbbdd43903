"""Delivery of a trail to a lake of Parquet files, on Spark: a log of changes, and each table as it stands now."""
