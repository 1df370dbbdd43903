"""Partial updates of JSON values: any change of a document, and damage."""

from __future__ import annotations

import json

import pytest

from ggshell.connectors.mysql.binlog.json_binary import Document, document_as_text, json_text
from ggshell.connectors.mysql.binlog.json_diffs import changed_document, path_of
from ggshell.errors import CaptureError


def _text(text: str) -> bytes:
    return bytes([len(text.encode())]) + text.encode()


def _change(operation: int, path: str, value: str = "") -> bytes:
    """A change; ``value``: a text in the binary form of MySQL."""
    content = b"\x0c" + _text(value)
    return bytes([operation]) + _text(path) + (b"" if operation == 2 else bytes([len(content)]) + content)


def _document() -> Document:
    return {"a": "1", "bb": ["true", {"c": "null"}], 'd "e".f': '"x"'}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (_change(0, "$", "z"), "z"),
        (_change(0, "$.a", "z"), {"a": "z", "bb": [True, {"c": None}], 'd "e".f': "x"}),
        (_change(1, "$.bb[0]", "z"), {"a": 1, "bb": ["z", True, {"c": None}], 'd "e".f': "x"}),
        (_change(1, "$.bb[2]", "z"), {"a": 1, "bb": [True, {"c": None}, "z"], 'd "e".f': "x"}),
        (_change(0, "$.bb[last-1]", "z") + _change(2, "$.bb[last].c"), {"a": 1, "bb": ["z", {}], 'd "e".f': "x"}),
        (_change(2, "$.bb[1].c") + _change(2, "$.bb[0]"), {"a": 1, "bb": [{}], 'd "e".f': "x"}),
        (_change(0, r'$."d \"e\".f"', "ü"), {"a": 1, "bb": [True, {"c": None}], 'd "e".f': "ü"}),
        (b"", {"a": 1, "bb": [True, {"c": None}], 'd "e".f': "x"}),
    ],
)
def test_changes_are_made_at_their_paths(changes: bytes, expected: object) -> None:
    found = json_text(document_as_text(changed_document(_document(), changes)))
    assert json.loads(found) == expected


def test_a_new_member_is_where_mysql_keeps_it() -> None:
    found = changed_document(_document(), _change(1, "$.ab", "z") + _change(1, "$.c", "z"))
    assert isinstance(found, dict)
    assert list(found) == ["a", "c", "ab", "bb", 'd "e".f']


@pytest.mark.parametrize(
    "changes",
    [
        _change(0, "$.none", "z"),
        _change(1, "$.a", "z"), _change(2, "$.none"), _change(2, "$.bb[7]"), _change(2, "$.bb[last-7]"),
        _change(0, "$.a.b", "z"),
        _change(2, "$"), _change(0, "a", "z"), _change(0, "$.a b", "z"), _change(7, "$"),
    ],
)  # fmt: skip
def test_changes_that_do_not_fit_are_refused(changes: bytes) -> None:
    with pytest.raises(CaptureError, match="JSON"):
        changed_document(_document(), changes)


def test_a_path_has_the_names_and_the_indexes_from_the_root_on() -> None:
    assert path_of(r'$.a[12]."b \u00e9 ]".c_1$') == ("a", 12, "b é ]", "c_1$")
    assert path_of("$") == ()
