"""Spark's daemon for Python workers, with the modules of a query loaded before it forks.

Its workers share the memory of the modules and do not load them again. ``spark.python.daemon.module`` names it.
"""

from __future__ import annotations

import gc

import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import ggshell.query.source  # noqa: F401

if __name__ == "__main__":
    gc.freeze()  # A collection in a worker would write to the memory that it shares.
    manager()
