"""How large a part of a table is that one task of LOAD copies."""

from __future__ import annotations

import pytest

from ggshell.pipeline.load.databases import SourceTable
from ggshell.pipeline.load.engine import LEAST_PART_BYTES, MOST_PART_BYTES, part_size
from ggshell.types import TableName


@pytest.mark.parametrize(
    ("megabytes", "jobs", "part"),
    [([300], 2, 150), ([300], 8, 64), ([10_000], 4, 512), ([20] * 50, 4, 250), ([], 4, 64)],
)
def test_a_part_is_the_share_of_a_job_within_limits(megabytes: list[int], jobs: int, part: int) -> None:
    tables = [SourceTable(TableName("s", f"t{n}"), (), size << 20, 1, 1, True) for n, size in enumerate(megabytes)]
    assert LEAST_PART_BYTES <= part_size(tables, jobs) <= MOST_PART_BYTES
    assert part_size(tables, jobs) == part << 20
