"""A Python process that Spark keeps does not look at its modules again after each task."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow
KEPT = "SPARK_REUSE_WORKER"
PROGRAM = """
import gc
import ggshell.query.source, ggshell.connectors.lake.spark_source
counts = []
for work in ("", "import wsgiref.util", ""):
    exec(work)
    gc.collect()
    counts.append(gc.get_freeze_count())
print(*counts)
"""


def frozen(environment: dict[str, str]) -> list[int]:
    """How many objects are permanent after collections: of the first modules, after another one, and without another."""
    program = [sys.executable, "-c", PROGRAM]
    return [int(count) for count in subprocess.check_output(program, env=environment, text=True).split()]


def test_the_modules_of_a_kept_process_are_exempt_from_collections() -> None:
    first, second, third = frozen({**os.environ, KEPT: "1"})
    assert 20_000 < first < second
    assert third == second


def test_no_other_process_is_changed() -> None:
    assert frozen({name: value for name, value in os.environ.items() if name != KEPT}) == [0, 0, 0]
