"""DuckDB: a target of Replicats, and the engine of the lag archive."""
