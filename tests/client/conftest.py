"""Shells that are connected to a running service, for the tests of one file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from remote_shell import RemoteShell
from service_client import RunningService


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A home and its running service, without TLS."""
    running = RunningService(tmp_path_factory.mktemp("home"))
    yield running
    running.close()


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A home and its running service, with TLS."""
    running = RunningService(tmp_path_factory.mktemp("home"), "METRICS OPEN\n")
    yield running
    running.close()


@pytest.fixture
def remote(service: RunningService, tmp_path_factory: pytest.TempPathFactory) -> RemoteShell:
    """A shell that connects to the service without TLS."""
    return RemoteShell(tmp_path_factory.mktemp("user"), service.url)


@pytest.fixture
def secure_remote(secure: RunningService, tmp_path_factory: pytest.TempPathFactory) -> RemoteShell:
    """A shell that connects to the service with TLS."""
    return RemoteShell(tmp_path_factory.mktemp("user"), secure.url)
