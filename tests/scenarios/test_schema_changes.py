"""The schema of a table changes during replication: both sides are equal afterwards, whichever side changes first."""

from __future__ import annotations

import pytest
from scenarios.case import Case
from scenarios.running import Replication
from scenarios.schema_changes import cases

SAMPLE = 8
"""Number of type changes in a default run; ``--rounds`` runs all."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    metafunc.parametrize("case", cases(None if metafunc.config.getoption("--rounds") else SAMPLE), ids=str)


@pytest.fixture(scope="module")
def all_cases(request: pytest.FixtureRequest) -> list[Case]:
    return cases(None if request.config.getoption("--rounds") else SAMPLE)


def test_schema_change(case: Case, all_cases: list[Case], replication: Replication) -> None:
    replication(all_cases, case).play(case)
