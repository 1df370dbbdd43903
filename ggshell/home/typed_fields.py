"""Typed values as JSON: named tuples are written as objects, and JSON values are read according to the annotated types.

The types are those of the values in checkpoint files: bool, int, float, str, enums of strings, named tuples, tuples, mappings
with string keys, and ``X | None``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import cache
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")
_SHOWN = 60
"""The number of characters that an error shows of a value that is not valid."""
_NAMES = {bool: "Boolean", int: "integer", float: "number", str: "string"}


def plain(value: Any) -> Any:
    """Convert named tuples to JSON objects, which a person can read and which allow new fields."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: plain(field) for name, field in value._asdict().items()}
    if isinstance(value, Mapping):
        return {name: plain(field) for name, field in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return value


def read_fields(kind: type[T], value: Any, name: str) -> T:
    """Read a named tuple from a JSON object, or from a list of its fields in their order.

    Fields that are not in the object have their defaults. Names that are not fields are ignored: another version wrote them.
    ``name``: the name of the value in errors. Raises ValueError for a value that does not have the annotated type.
    """
    named: Any = kind
    fields, hints = named._fields, field_types(named)
    if isinstance(value, list) and len(value) <= len(fields):
        value = dict(zip(fields, value, strict=False))
    if not isinstance(value, Mapping):
        raise _not_valid(value, name, "object")
    missing = [field for field in fields if field not in value and field not in named._field_defaults]
    if missing:
        raise ValueError(f"{name}.{missing[0]} is missing")
    return kind(**{each: read_value(hints[each], value[each], f"{name}.{each}") for each in fields if each in value})


def read_value(kind: Any, value: Any, name: str) -> Any:
    """Read a JSON value as an annotated type. Raises ValueError, with ``name``, for a value of another type."""
    if kind is Any:
        return value
    if get_origin(kind) is UnionType:  # X | None
        return None if value is None else read_value(get_args(kind)[0], value, name)
    read = _COMPOSED.get(get_origin(kind))
    if read is not None:
        return read(get_args(kind), value, name)
    if hasattr(kind, "_fields"):
        return read_fields(kind, value, name)
    if issubclass(kind, StrEnum):
        return _read_enum(kind, value, name)
    if type(value) is kind or (kind is float and type(value) is int):
        return value
    raise _not_valid(value, name, _NAMES[kind])


_types = cache(get_type_hints)


def field_types(kind: Any) -> Mapping[str, Any]:
    """Return the annotated types of a named tuple's fields."""
    return _types(kind)


def _read_tuple(parts: tuple[Any, ...], value: Any, name: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise _not_valid(value, name, "list")
    if parts[-1] is ...:
        parts = parts[:1] * len(value)
    if len(parts) != len(value):
        raise ValueError(f"{name} has {len(value)} values instead of {len(parts)}")
    return tuple(
        read_value(kind, item, f"{name}[{place}]") for place, (kind, item) in enumerate(zip(parts, value, strict=True))
    )


def _read_mapping(parts: tuple[Any, ...], value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _not_valid(value, name, "object")
    return {key: read_value(parts[1], item, f"{name}.{key}") for key, item in value.items()}


_COMPOSED: Mapping[Any, Callable[[tuple[Any, ...], Any, str], Any]] = {tuple: _read_tuple, Mapping: _read_mapping}


def _read_enum(kind: type[StrEnum], value: Any, name: str) -> StrEnum:
    try:
        return kind(value)
    except ValueError:
        raise _not_valid(value, name, kind.__name__) from None


def _not_valid(value: Any, name: str, what: str) -> ValueError:
    return ValueError(f"{name}: {value!r:.{_SHOWN}} is not a valid {what}")
