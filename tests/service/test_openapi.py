"""The OpenAPI document describes fields, parameters and successes, not only their types."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ggshell.service.group_changes import STATUSES
from ggshell.service.openapi import document

SCHEMAS: dict[str, Any] = document()["components"]["schemas"]


def values(schema: str, field: str) -> list[str]:
    """The values that the document names for a field."""
    found = SCHEMAS[schema]["properties"][field]
    return next(list(each["enum"]) for each in (found, *found.get("anyOf", ())) if "enum" in each)


@pytest.mark.parametrize(
    ("schema", "field", "expected"),
    [
        ("ExtractBody", "status", list(STATUSES)),
        ("ReplicatBody", "status", list(STATUSES)),
        ("PathBody", "status", list(STATUSES)),
        ("Mode", "type", ["nonintegrated", "integrated", "coordinated"]),
        ("Command", "reportType", ["lag", "checkpointTables", "schemas", "tables"]),
    ],
)
def test_a_field_with_few_values_names_them(schema: str, field: str, expected: list[str]) -> None:
    assert values(schema, field) == expected


@pytest.mark.parametrize(
    ("schema", "field"),
    [
        ("ExtractBody", "begin"),
        ("ExtractBody", "source"),
        ("ExtractBody", "registration"),
        ("ReplicatBody", "begin"),
        ("TaskBody", "schedule"),
        ("TaskBody", "command"),
        ("GroupCommand", "command"),
    ],
)
def test_a_field_with_several_forms_is_described(schema: str, field: str) -> None:
    assert SCHEMAS[schema]["properties"][field]["description"]


@pytest.mark.parametrize("path", ["/messages", "/logs/events", "/monitoring/messages", "/monitoring/statusChanges"])
def test_messages_can_be_selected_by_number(path: str) -> None:
    parameters = document()["paths"][path]["get"]["parameters"]
    assert {each["name"] for each in parameters} == {"fromID", "toID", "offset", "limit"}
    assert all(each["description"] for each in parameters)


def test_a_success_is_described_in_words_of_its_own() -> None:
    for path, operations in document()["paths"].items():
        for method, operation in operations.items():
            for status, answer in operation["responses"].items():
                assert status[0] != "2" or answer["description"] != operation["summary"], f"{method} {path}"


def test_operations_refer_to_the_same_refusals() -> None:
    """Regression: each operation repeated eleven answers, three quarters of the document."""
    shared = document()["components"]["responses"]
    for operations in document()["paths"].values():
        for operation in operations.values():
            refusals = [answer for status, answer in operation["responses"].items() if status[0] != "2"]
            assert {each["$ref"].removeprefix("#/components/responses/") for each in refusals} == set(shared)
    assert len(msgspec.json.encode(document())) < 500_000
