"""``--quick``: tests that start servers, Java or other processes are marked by rule, and a quick test that starts one fails."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import marks
import pytest

ROOT = Path(__file__).parents[1]
TESTS = """
import subprocess, sys
import pytest

@pytest.fixture(scope="session")
def server_folder():
    subprocess.run([sys.executable, "-c", ""], check=True)

@pytest.fixture
def north(server_folder):
    return "a login"

def test_that_looks_quick_and_is_not():
    subprocess.run([sys.executable, "-c", ""], check=True)

def test_with_a_server(north):
    assert north

@pytest.mark.slow
def test_with_a_process():
    subprocess.run([sys.executable, "-c", ""], check=True)

def test_quick():
    assert True
"""


def run(folder: Path, *options: str) -> str:
    """Run the tests above with the rules of this suite; returns the output of pytest."""
    (folder / "test_sample.py").write_text(TESTS)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n    pg:\n    spark:\n    slow:\n")
    command = [sys.executable, "-m", "pytest", "-p", "marks", "-p", "no:cacheprovider", "-v", "-n", "0", *options]
    result = subprocess.run(
        [*command, str(folder)],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(Path(__file__).parent)},
        cwd=folder,
    )
    return result.stdout + result.stderr


@pytest.mark.slow
def test_a_quick_test_that_starts_a_process_fails_with_the_remedy(tmp_path: Path) -> None:
    printed = run(tmp_path, "--quick")
    assert "2 passed, 2 deselected, 1 error" in printed
    assert "ERROR at teardown of test_that_looks_quick_and_is_not" in printed
    assert "a quick test starts a process, mark it slow" in printed


@pytest.mark.slow
def test_quick_excludes_tests_with_a_mark_or_a_fixture_that_starts_a_process(tmp_path: Path) -> None:
    printed = run(tmp_path, "--quick", "-k", "not looks_quick")
    assert "test_quick PASSED" in printed
    assert "1 passed, 3 deselected" in printed


def test_no_quick_test_of_this_run_has_a_fixture_that_starts_a_process(request: pytest.FixtureRequest) -> None:
    starting = set().union(*marks.FIXTURES.values())
    wrong = [
        item.nodeid
        for item in request.session.items
        if marks.is_quick(item) and starting & set(getattr(item, "fixturenames", ()))
    ]
    assert wrong == []
