"""Audit lines of the service in ggserr.log: refused changes and statements leave one too, but no flood of them."""

from __future__ import annotations

import pytest
from service_client import RunningService, initial_load

pytestmark = pytest.mark.slow


def audit_lines(service: RunningService) -> list[str]:
    """The lines of ggserr.log about changes, without their time."""
    lines = (service.home / "ggserr.log").read_text().splitlines()
    return [line.split("service.prm:  ")[1] for line in lines if " GGS-00905 " in line]


def test_refused_changes_are_recorded_once_a_minute_for_each_user_and_resource(service: RunningService) -> None:
    """Regression: a change that a role does not permit left no line."""
    otto, uma = service.client("otto"), service.client("uma")
    before = len(audit_lines(service))
    for _ in range(3):
        assert otto.delete("/extracts/REFUSED1").status == 403
    assert uma.put("/extracts/REFUSED1/x", {}).status == 404  # no such resource
    assert uma.patch("/extracts/REFUSED1", {}).status == 403
    assert otto.put("/config/files/service.prm", {"lines": []}).status == 403
    assert service.client("jane").put("/config/files/service.prm", {"lines": ["PORT 1"]}).status == 403
    assert uma.get("/logs/events").status == 403
    assert service.client("").delete("/extracts/REFUSED1").status == 401
    texts = audit_lines(service)[before:]
    assert [text.split(" has ")[0] for text in texts] == [
        "DELETE /v2/extracts/REFUSED1 by otto@127.0.0.1: 403 GGS-00902 user otto",
        "PATCH /v2/extracts/REFUSED1 by uma@127.0.0.1: 403 GGS-00902 user uma",
        "PUT /v2/config/files/service.prm by otto@127.0.0.1: 403 GGS-00902 user otto",
        "PUT /v2/config/files/service.prm by jane@127.0.0.1: 403 GGS-00902 user jane",
    ]


def test_refused_statements_are_recorded_without_their_passwords(service: RunningService) -> None:
    before = len(audit_lines(service))
    uma = service.client("uma")
    for statement in (
        "DELETE EXTRACT *",
        "DELETE EXTRACT *",
        "ADD USER eve, ROLE SECURITY, PASSWORD secret-55",
        "SHELL id",
    ):
        assert uma.post("/ggshell/statements", {"statement": statement}).status in (400, 403)
    assert uma.post("/ggshell/statements", {"statement": "INFO ALL"}).status == 200
    texts = audit_lines(service)[before:]
    assert [text.partition(" by ")[0] for text in texts] == [
        "statement DELETE EXTRACT *",
        "statement ADD USER eve, ROLE SECURITY, PASSWORD *******",
        "statement SHELL id",
    ]
    assert all("by uma@127.0.0.1: 40" in text for text in texts)


def test_a_log_that_cannot_be_written_does_not_change_the_answers(service: RunningService) -> None:
    """Regression: with a home that is read-only, a wrong password was answered with 503."""
    jane = service.client("jane")
    assert jane.post("/extracts/KEPT1", initial_load("KEPT1")).status == 201
    log = service.home / "ggserr.log"
    kept = log.rename(service.home / "kept.log")
    log.mkdir()
    try:
        assert jane.patch("/extracts/KEPT1", {"description": "x"}).status == 200
        assert jane.patch("/extracts/NONE", {"description": "x"}).status == 404
        assert service.client("uma").delete("/extracts/KEPT1").status == 403
        assert service.client("uma", "wrong-password").get("/extracts").status == 401
    finally:
        log.rmdir()
        kept.rename(log)
    assert jane.get("/extracts/KEPT1").response["description"] == "x"
