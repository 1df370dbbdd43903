"""Where a group begins to read: the ``begin`` of a body as options of ADD and ALTER."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from ggshell.cli.groups import View
from ggshell.errors import UsageError
from ggshell.quantities import read_timestamp
from ggshell.service.answers import Object, Said
from ggshell.service.call import Call
from ggshell.service.group_facts import begin_field
from ggshell.service.statement_words import word
from ggshell.trail.name import LAST_FILE
from ggshell.types import LAST_OFFSET

Begin = str | Object | None
LAST_PART: Final = (1 << 32) - 1
"""The largest first half of a position of a log."""


def begin_options(begin: Begin, *, log: bool = False) -> str:
    """Return the options of a start position: ``now``, a time, a file and an RBA, or for a ``log`` a CSN. Raises UsageError."""
    if begin is None:
        return ""
    if isinstance(begin, str):
        return f", BEGIN {begin_time(begin)}"
    at = begin.get("at", begin)
    if isinstance(at, dict) and "csn" in at and log:
        return f", LSN {word(str(at['csn']))}"
    if "sequence" in begin:
        sequence = _number(begin["sequence"], LAST_PART if log else LAST_FILE)
        return f", EXTSEQNO {sequence}, EXTRBA {_number(begin.get('offset', 0), LAST_OFFSET)}"
    forms = "now, a time, {at: {csn}}, or {sequence, offset}" if log else "now, a time, or {sequence, offset}"
    raise UsageError(f"begin must be {forms}")


def _number(value: Any, last: int) -> int:
    """Return a number of a position, at most ``last``. Raises UsageError."""
    if isinstance(value, bool) or not str(value).isdecimal() or len(str(value)) > 20:
        raise UsageError(
            f"{str(value)[:40]} is not a valid number in begin", hint='"begin": {"sequence": 0, "offset": 0}'
        )
    if int(value) > last:
        raise UsageError(f"{value} in begin is too large", hint=f"it is at most {last}")
    return int(value)


def begin_time(text: str) -> str:
    """Return a time as BEGIN takes it: NOW, or a local time. Raises UsageError.

    ISO 8601 with ``Z`` or an offset is converted to local time; without one it is local time already.
    """
    if text.strip().lower() == "now":
        return "NOW"
    try:
        return _local(text.strip())
    except (ValueError, OverflowError):
        raise UsageError(
            f"{text[:80]!a} is not a valid time in begin", hint="use now, 2026-11-23T15:13:00Z or 2026-11-23 15:13:00"
        ) from None


def _local(text: str) -> str:
    """Return a time as local time, or as UTC if the local time occurs twice. Raises ValueError, OverflowError."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return str(read_timestamp(text))
    if moment.tzinfo is None:
        return _plain(moment)
    local = moment.astimezone().replace(tzinfo=None)
    if local.replace(fold=0).astimezone() != moment:
        return f"{_plain(moment.astimezone(UTC))}Z"
    return _plain(local)


def _plain(moment: datetime) -> str:
    return moment.replace(tzinfo=None).isoformat(" ")


def moved_options(call: Call, found: View, begin: Begin, *, log: bool = False) -> str:
    """Return the options that move a group, none for a ``begin`` that it has already.

    Clients send ``now`` with every update, which must not skip transactions; the answer then says that nothing moved.
    """
    if isinstance(begin, str) and begin_time(begin) == _time_of(found):
        call.said.append(
            Said("GGS-00932", f"the position is unchanged: ALTER {found.type} {found.group}, BEGIN NOW moves it")
        )
        return ""
    return "" if begin == begin_field(found) else begin_options(begin, log=log)


def _time_of(found: View) -> str:
    shown = begin_field(found)
    try:
        return begin_time(shown) if isinstance(shown, str) else ""
    except UsageError:
        return str(shown)
