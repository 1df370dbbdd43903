"""DuckDB: the engine of the lag archive."""
