"""Families of column types, used to reject a source column that can never fit a target column.

Only certain mismatches are rejected here; whether a single value fits is decided by the target.
"""

from __future__ import annotations

_FAMILIES = {
    "number": "smallint mediumint int integer bigint numeric decimal real double float money number",
    "truth": "boolean",
    "moment": "date timestamp",
    "clock": "time",
    "duration": "interval",
    "bytes": "bytea blob",
    "uuid": "uuid",
    "document": "json jsonb",
    "bits": "bit",
    "network": "inet cidr macaddr macaddr8",
    "geometry": "point line lseg box path polygon circle",
    "range": "int4range int8range numrange tsrange tstzrange daterange",
}
_ALSO = {("clock", "duration")}
"""Pairs of (source family, target family) that differ, but where the target accepts the source's text form."""

_FAMILY = {name: family for family, names in _FAMILIES.items() for name in names.split()}


def family(type_name: str) -> str | None:
    """Return the family of a catalog type such as ``numeric(10,2)``; None if it is unknown or accepts any text."""
    lowered = type_name.lower()
    if lowered.endswith("[]"):
        return "array"
    first = lowered.replace("(", " ").split()[0] if lowered else ""
    return _FAMILY.get(first)


def fits(source: str, target: str) -> bool:
    """Whether values of the source type may fit a column of the target type."""
    mine, theirs = family(source), family(target)
    return mine is None or theirs is None or mine == theirs or (mine, theirs) in _ALSO
