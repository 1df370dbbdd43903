"""schemathesis makes requests from the OpenAPI document: no answer is an internal error or violates the document."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from service_client import PASSWORD, RunningService

pytestmark = pytest.mark.slow
CHECKS = "not_a_server_error,response_schema_conformance,status_code_conformance,content_type_conformance"


def test_generated_requests_are_answered_as_the_document_says(
    service: RunningService, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    service.run("ADD EXTRACT ext1, SOURCEISTABLE")
    rounds = int(request.config.getoption("--rounds")) or 1
    words = [
        *(str(Path(sys.executable).with_name("schemathesis")), "run", f"{service.url}/openapi.json"),
        *("-u", f"{service.url}/services/v2", "-a", f"admin:{PASSWORD}", "--checks", CHECKS),
        *("-n", str(rounds), "--phases", "fuzzing,stateful", "-w", "1", "--generation-deterministic"),
        *("--suppress-health-check", "all"),
    ]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=1200)
    assert done.returncode == 0, done.stdout[-8000:]
    assert "passed" in done.stdout
