"""The offline check: reads obey files and parameter files together; it runs, queries and writes nothing."""
