"""A running service for the tests of one file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from service_client import RunningService, ServiceClient


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A home and its running service."""
    running = RunningService(tmp_path_factory.mktemp("home"))
    yield running
    running.close()


@pytest.fixture
def client(service: RunningService) -> ServiceClient:
    """A client with the role SECURITY."""
    return service.client()
