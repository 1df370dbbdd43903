"""JSON values are read according to annotated types, and every other value is refused with its place."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

import pytest

from ggshell.home.typed_fields import plain, read_fields, read_value


class Color(StrEnum):
    """An enum of strings."""

    RED = "red"


class Inner(NamedTuple):
    """A value in a value."""

    number: int
    text: str = "none"


class Outer(NamedTuple):
    """A value of every type."""

    flag: bool
    share: float = 0.0
    color: Color = Color.RED
    inner: Inner | None = None
    many: tuple[Inner, ...] = ()
    pair: tuple[str, int] = ("", 0)
    named: Mapping[str, int] = {}
    any: Any = None


FULL = Outer(True, 0.5, Color.RED, Inner(1, "a"), (Inner(2), Inner(3, "c")), ("x", 1), {"n": 4}, {"deep": [1, None]})


def test_what_is_written_is_read_unchanged() -> None:
    assert read_fields(Outer, json.loads(json.dumps(plain(FULL))), "value") == FULL


def test_fields_that_are_missing_have_their_defaults_and_unknown_names_are_ignored() -> None:
    assert read_fields(Outer, {"flag": False, "share": 2, "inner": None, "later": 1}, "value") == Outer(False, 2)


def test_the_fields_of_a_list_are_read_in_their_order() -> None:
    assert read_fields(Inner, [7], "value") == Inner(7)
    assert read_fields(Inner, [7, "seven"], "value") == Inner(7, "seven")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, "value.flag is missing"),
        ({"flag": 1}, "value.flag: 1 is not a valid Boolean"),
        ({"flag": None}, "value.flag: None is not a valid Boolean"),
        ({"flag": True, "share": True}, "value.share: True is not a valid number"),
        ({"flag": True, "share": "0.5"}, "value.share: '0.5' is not a valid number"),
        ({"flag": True, "color": "blue"}, "value.color: 'blue' is not a valid Color"),
        ({"flag": True, "color": []}, "value.color: [] is not a valid Color"),
        ({"flag": True, "inner": {"number": True}}, "value.inner.number: True is not a valid integer"),
        ({"flag": True, "inner": {"number": 1.0}}, "value.inner.number: 1.0 is not a valid integer"),
        ({"flag": True, "inner": {"number": 1, "text": 2}}, "value.inner.text: 2 is not a valid string"),
        ({"flag": True, "inner": [1, "a", "b"]}, "value.inner: [1, 'a', 'b'] is not a valid object"),
        ({"flag": True, "inner": "text"}, "value.inner: 'text' is not a valid object"),
        ({"flag": True, "many": {}}, "value.many: {} is not a valid list"),
        ({"flag": True, "many": [[1], [None]]}, "value.many[1].number: None is not a valid integer"),
        ({"flag": True, "pair": ["x"]}, "value.pair has 1 values instead of 2"),
        ({"flag": True, "named": [1]}, "value.named: [1] is not a valid object"),
        ({"flag": True, "named": {"n": "4"}}, "value.named.n: '4' is not a valid integer"),
        ("flag", "value: 'flag' is not a valid object"),
    ],
)
def test_a_value_of_another_type_is_refused_with_its_place(value: Any, message: str) -> None:
    with pytest.raises(ValueError) as refused:
        read_value(Outer, value, "value")
    assert str(refused.value) == message


def test_a_long_value_is_shortened_in_the_error() -> None:
    with pytest.raises(ValueError) as refused:
        read_value(int, "x" * 1000, "value")
    assert len(str(refused.value)) < 100
