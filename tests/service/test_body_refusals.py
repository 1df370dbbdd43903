"""A body that does not fit is refused in plain words, with the field and its place."""

from __future__ import annotations

import msgspec
import pytest

from ggshell.errors import HttpError
from ggshell.service import routes
from ggshell.service.app import decode_body
from ggshell.service.body_refusals import reason_of


class Inner(msgspec.Struct):
    """A required part."""

    name: str


class Outer(msgspec.Struct):
    """A body with a required part."""

    inner: Inner


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'{"nope": 1}', "nope is not a field of the body"),
        (b'{"credentials": {"nope": 1}}', "nope is not a field of credentials"),
        (b'{"credentials": {"alias": 1}}', "the field credentials.alias must be a text, not a whole number"),
        (b'{"config": [1]}', "the field config[0] must be a text, not a whole number"),
        (b'{"critical": "yes"}', "the field critical must be true or false, not a text"),
        (b"[1]", "it must be an object, not a list"),
        (b'{"config": ', "the JSON is not complete"),
        (b"nope", "it is not JSON: invalid character at byte 4"),
        (b'{"description": "\xff"}', "it is not in UTF-8"),
    ],
)
def test_a_refused_body_is_explained_without_the_librarys_words(body: bytes, reason: str) -> None:
    route, _ = routes.find("POST", "/extracts/EXT1")
    with pytest.raises(HttpError) as caught:
        decode_body(route, body)
    assert caught.value.status == 400
    assert caught.value.message == f"the body is not valid: {reason}"


def test_missing_and_wrong_values_name_their_field() -> None:
    for body, reason in (
        (b"{}", "the field inner of the body is missing"),
        (b'{"inner": {}}', "the field name of inner is missing"),
        (b'{"inner": null}', "the field inner must be an object, not null"),
    ):
        with pytest.raises(msgspec.ValidationError) as caught:
            msgspec.json.decode(body, type=Outer)
        assert reason_of(caught.value) == reason
