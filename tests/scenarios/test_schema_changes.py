"""A table changes its shape while rows flow: both sides are equal afterwards, whichever side changed first."""

from __future__ import annotations

import pytest
from scenarios.case import Case
from scenarios.running import Replication
from scenarios.schema_changes import cases

SAMPLE = 8
"""Changes of types in a default run; ``--rounds`` takes all."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    metafunc.parametrize("case", cases(None if metafunc.config.getoption("--rounds") else SAMPLE), ids=str)


@pytest.fixture(scope="module")
def all_cases(request: pytest.FixtureRequest) -> list[Case]:
    return cases(None if request.config.getoption("--rounds") else SAMPLE)


def test_schema_change(case: Case, all_cases: list[Case], replication: Replication) -> None:
    replication(all_cases, case).play(case)
