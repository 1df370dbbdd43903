"""Families of column types: which source column can never fit a target column.

Only what is certain is refused here; whether a single value fits is for the target to say.
"""

from __future__ import annotations

_FAMILIES = {
    "number": "smallint integer bigint numeric decimal real double float money number",
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
_FAMILY = {name: family for family, names in _FAMILIES.items() for name in names.split()}


def family(type_name: str) -> str | None:
    """The family of a type as a catalog writes it (``numeric(10,2)``); None when it is not known or takes any text."""
    lowered = type_name.lower()
    if lowered.endswith("[]"):
        return "array"
    first = lowered.replace("(", " ").split()[0] if lowered else ""
    return _FAMILY.get(first)


def fits(source: str, target: str) -> bool:
    """Whether values of one type may fit a column of the other."""
    mine, theirs = family(source), family(target)
    return mine is None or theirs is None or mine == theirs
