"""Which tests are quick: sets the marks ``pg``, ``spark`` and ``slow`` by rule, and checks that other tests start no process.

``--quick`` runs the tests without these marks.  A quick test that starts a process fails in a quick run.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import pytest
from hypothesis import settings

FIXTURES = {
    "pg": {"server_folder", "demo", "replication", "demo_home"},
    "spark": {"java", "lake"},
    "slow": {"start"},
}
"""The fixtures that start PostgreSQL, Java and other processes: a test that uses one, even indirectly, gets the mark."""

QUICK = " and ".join(f"not {mark}" for mark in FIXTURES)
"""What ``--quick`` selects, as an expression for ``-m``."""

settings.register_profile("quick", max_examples=30)
"""Fewer examples for property tests that do not say how many they need; the whole suite uses the default of 100."""

STARTS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn"}
"""The audit events of Python that start a process."""

_started: list[str] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--quick", action="store_true", help="only the tests that start no process: no server, no Java, no shell"
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--quick"):
        settings.load_profile("quick")
        config.option.markexpr = f"({config.option.markexpr}) and {QUICK}" if config.option.markexpr else QUICK
    sys.addaudithook(_record_start)


def _record_start(event: str, arguments: tuple[object, ...]) -> None:
    """Record the start of a process.  Other threads can belong to an earlier test or to the Spark session."""
    if event in STARTS and threading.current_thread() is threading.main_thread():
        _started.append(f"{event} {arguments[1] if len(arguments) > 1 else ''}".strip())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Set the marks; tests and modules that need one for another reason set it themselves."""
    for item in items:
        for mark, fixtures in FIXTURES.items():
            if fixtures & set(getattr(item, "fixturenames", ())):
                item.add_marker(mark)


def is_quick(item: pytest.Item) -> bool:
    """Whether ``--quick`` runs a test."""
    return not any(item.get_closest_marker(mark) for mark in FIXTURES)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    _started.clear()


@pytest.fixture(autouse=True)
def starts_no_process_if_quick(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a quick test that has started a process."""
    yield
    if _started and request.config.getoption("--quick"):
        pytest.fail(f"a quick test starts a process, mark it slow (tests/marks.py): {_started[0][:200]}", pytrace=False)
