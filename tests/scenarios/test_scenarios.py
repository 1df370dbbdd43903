"""PostgreSQL's own tests of logical replication, as cases for every kind of Replicat."""

from __future__ import annotations

import pytest
from scenarios.case import Case, read_cases
from scenarios.running import Replication

CASES = read_cases()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_scenario(case: Case, replication: Replication) -> None:
    replication(CASES, case).play(case)
