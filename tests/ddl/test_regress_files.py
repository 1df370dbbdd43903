"""Files of SQL statements, such as PostgreSQL's own regression tests, arrive: objects and rows are equal afterwards.

``--regress DIR`` runs files of a folder (src/test/regress/sql of PostgreSQL's source) and prints the counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from ddl_pipeline import DdlPipeline
from regress_files import REPLICAT, run_file

SAMPLES = Path(__file__).parent / "statements"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    folder = Path(metafunc.config.getoption("--regress") or SAMPLES)
    files = sorted(file for file in folder.glob("*.sql") if file.name != "test_setup.sql")
    metafunc.parametrize("file", files, ids=[file.stem for file in files])


@pytest.fixture(params=["north", "older"])
def pipeline(tmp_path: Path, south: str, request: pytest.FixtureRequest) -> Iterator[DdlPipeline]:
    made = DdlPipeline(tmp_path / "home", request.getfixturevalue(request.param), south)
    made.write("rep1", REPLICAT)
    made.add_and_start(schemas=["s", "public"])
    yield made
    made.close()


def test_the_statements_of_a_file_arrive(
    pipeline: DdlPipeline, file: Path, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = run_file(pipeline, file)
    if request.config.getoption("--regress"):
        with capsys.disabled():
            request.config.pluginmanager.get_plugin("terminalreporter").write_line(f"\n{outcome}")
    assert not outcome.differences, "\n".join([*outcome.differences[:200], *outcome.refused])
