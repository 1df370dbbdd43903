"""The offline check: obey files and parameter files are read together, and nothing is run, asked or written."""
