"""Which tests are quick: sets the marks of slow tests by rule, and checks that other tests start no process.

The marks are ``pg``, ``mariadb``, ``spark`` and ``slow``.

``--quick`` runs the tests without these marks. A quick test that starts a process fails in a quick run. All temporary
folders, also those of the servers, are in memory where the system has room (``short_folders``).
"""

from __future__ import annotations

import shutil
import sys
import threading
from collections.abc import Iterator

import pytest
from amounts import QUICK_PROFILE
from hypothesis import settings
from short_folders import MEMORY, ROOM_OF_ALL, ROOM_OF_QUICK, use_memory

FIXTURES = {
    "pg": {"server_folder", "demo", "replication", "demo_home"},
    "mariadb": {"mariadb_server", "mariadb_binaries"},
    "spark": {"java", "lake"},
    "slow": {"start", "homes", "reading", "store_server"},
}
"""The fixtures that start servers, Java and other processes: a test that uses one, even indirectly, gets the mark."""

QUICK = " and ".join(f"not {mark}" for mark in FIXTURES)
"""What ``--quick`` selects, as an expression for ``-m``."""

STARTS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn"}
"""The audit events of Python that start a process."""

_started: list[str] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--quick", action="store_true", help="only the tests that start no process: no server, no Java, no shell"
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--quick"):
        settings.load_profile(QUICK_PROFILE)
        config.option.markexpr = f"({config.option.markexpr}) and {QUICK}" if config.option.markexpr else QUICK
    use_memory(ROOM_OF_QUICK if config.getoption("--quick") else ROOM_OF_ALL)
    sys.addaudithook(_record_start)


@pytest.fixture(scope="session", autouse=True)
def keeps_no_memory_if_all_pass(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Remove the temporary folders in memory; after a failure they are kept."""
    yield
    folder = tmp_path_factory.getbasetemp()
    if not request.session.testsfailed and folder.is_relative_to(MEMORY):
        shutil.rmtree(folder, ignore_errors=True)


def _record_start(event: str, arguments: tuple[object, ...]) -> None:
    """Record the start of a process. Other threads can belong to an earlier test or to the Spark session."""
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
