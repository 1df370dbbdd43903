"""COMPARE: show how two records differ."""

from __future__ import annotations

from collections.abc import Iterator

from ggshell.errors import TrailError, UsageError
from ggshell.logdump.answers import Answer, Differences
from ggshell.logdump.registry import action
from ggshell.logdump.state import LogdumpSession
from ggshell.trail.inspection import InspectedFile, InspectedRecord
from ggshell.trail.record import Record

_PARTS = frozenset({"tail", "data", "tokens", "user_tokens", "checksum", "place"})
_HEADER_FIELDS = (*(name for name in Record.__dataclass_fields__ if name not in _PARTS), "table_index", "name")


@action("COMPARE")
@action("DIFF")
def compare(session: LogdumpSession, *, first_rba: str, second_rba: str) -> Iterator[Answer]:
    """Show how two records differ."""
    one, two = (_good(session.file, text) for text in (first_rba, second_rba))
    left, right = _values(one), _values(two)
    found = [(name, left.get(name, ""), right.get(name, "")) for name in dict.fromkeys((*left, *right))]
    yield Differences(one.rba, two.rba, tuple(each for each in found if each[1] != each[2]))


def _good(file: InspectedFile, text: str) -> InspectedRecord:
    """Return the record at an RBA. Raises UsageError if there is none that can be decoded."""
    if not text.isdigit():
        raise UsageError(f"{text} is not a valid RBA", hint="COMPARE 1284, 1467")
    seen = file.at(int(text))
    if seen is None or seen.record is None:
        expected = f": expected {seen.fault}" if seen is not None and seen.fault else ""
        raise UsageError(f"no record begins at RBA {text} of {file.path}{expected}", hint="SCANFORHEADER finds one")
    return seen


def _values(seen: InspectedRecord) -> dict[str, str]:
    record = seen.record
    if record is None:
        return {}
    found = {name: str(getattr(record, name)) for name in _HEADER_FIELDS}
    try:
        found |= {f"DDL {name}": value for name, value in record.ddl().items()}
        images = () if record.ddl() else (("before", record.before_columns()), ("column", record.columns()))
        for name, columns in images:
            found |= {f"{name} {index}": "NULL" if value is None else value.hex(" ", 2) for index, value in columns}
    except TrailError:  # a data area that is not a row image is compared as bytes
        found["data"] = record.data.hex(" ", 2)
    found |= {f"token {name}": value.decode(errors="replace") for name, value in record.tokens.items()}
    if record.user_tokens:
        found["user tokens"] = record.user_tokens.hex(" ", 2)
    return found
