"""Why a body is refused, in the words of this project: msgspec's messages are translated."""

from __future__ import annotations

import re
from typing import Final

_TYPES: Final = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_PLACE: Final = r"(?: - at `\$\.?(?P<place>[^`]*)`)?"
_UNKNOWN: Final = re.compile(rf"Object contains unknown field `(?P<name>.*?)`{_PLACE}", re.DOTALL)
_MISSING: Final = re.compile(rf"Object missing required field `(?P<name>.*?)`{_PLACE}", re.DOTALL)
_TYPE: Final = re.compile(rf"Expected `(?P<wanted>[^`]*)`, got `(?P<given>[^`]*)`{_PLACE}")
_VALUE: Final = re.compile(rf"Invalid enum value (?P<given>.*?){_PLACE}", re.DOTALL)
_MALFORMED: Final = re.compile(r"JSON is malformed: (?P<why>.*) \(byte (?P<byte>\d+)\)")
_LONGEST: Final = 200


def reason_of(error: Exception) -> str:
    """Return why a body is refused: the field, and what it must be."""
    text = str(error)
    if isinstance(error, UnicodeDecodeError):
        return "it is not in UTF-8"
    if (found := _UNKNOWN.fullmatch(text)) is not None:
        return f"{found['name'][:_LONGEST]} is not a field of {_owner(found['place'])}"
    if (found := _MISSING.fullmatch(text)) is not None:
        return f"the field {found['name']} of {_owner(found['place'])} is missing"
    if (found := _TYPE.fullmatch(text)) is not None:
        return f"{_field(found['place'])} must be {_types(found['wanted'])}, not {_types(found['given'])}"
    if (found := _VALUE.fullmatch(text)) is not None:
        return f"{found['given'][:_LONGEST]} is not a valid value of {_field(found['place'])}"
    if (found := _MALFORMED.fullmatch(text)) is not None:
        return f"it is not JSON: {found['why']} at byte {found['byte']}"
    return "the JSON is not complete" if text == "Input data was truncated" else text


def _owner(place: str | None) -> str:
    return place or "the body"


def _field(place: str | None) -> str:
    return f"the field {place}" if place else "it"


def _types(names: str) -> str:
    """Return the names of JSON's types, of which null stands for an optional field."""
    found = [each for each in names.split(" | ") if each != "null"] or ["null"]
    return " or ".join(_TYPES.get(each, each) for each in found)
