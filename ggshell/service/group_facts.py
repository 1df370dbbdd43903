"""Groups as the API shows them: status, lag, positions, checkpoints and parameter lines, from the home's files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from ggshell.cli.groups import Kinds, View, group_lag, one, shown_state, view
from ggshell.errors import GgsError
from ggshell.home.checkpoint import GroupKind, ReplicatKind, SourceType
from ggshell.home.documents import Documents
from ggshell.home.process_file import ProcessState
from ggshell.monitoring.group_lag import since
from ggshell.parameters.discard_file import discard_files
from ggshell.parameters.process_profiles import GROUP_SETTINGS
from ggshell.parameters.redacted_file import redacted_lines
from ggshell.service.answers import Answer, Object, Said, collection, status_item, utc_text
from ggshell.service.call import Call
from ggshell.service.group_responses import (
    CheckpointPlace,
    CurrentCheckpoint,
    InputPlaces,
    OutputPlaces,
    ReadPlace,
    ReplicatMode,
    WrittenTrail,
)
from ggshell.service.trail_names import trail_fields
from ggshell.types import LogPosition, TrailPosition, format_lsn

_ALIAS: Final = re.compile(
    r"^\s*USERIDALIAS\s+([^\s,;]+)(?:\s*,?\s*DOMAIN\s+([^\s,;]+))?", re.IGNORECASE | re.MULTILINE
)
SEQUENCE_DIGITS: Final = 9


def entries(call: Call, kinds: Kinds) -> list[tuple[str, str]]:
    """Return the name and the status of every group of some kinds; the error of one that cannot be read is a message."""
    found = []
    for entry in call.home.groups():
        if entry.type not in kinds:
            continue
        try:
            status = status_text(view(call.home, entry))
        except GgsError as error:
            status = str(shown_state(call.home, entry)[0]).lower()
            call.said.append(Said(error.code, f"{entry.type} {entry.group}: {error.located}", "WARNING", error.hint))
        found.append((entry.group, status))
    return found


def listed(call: Call, base: str, kinds: Kinds) -> Answer:
    """Answer with the groups of some kinds and their status. ``base``: the path of the collection."""
    address = call.url(base)
    return Answer(collection(status_item(address, name, status) for name, status in entries(call, kinds)))


def find_group(call: Call, kinds: Kinds, name: str) -> View:
    """Return a group. Raises NotFoundError."""
    return one(call.session, kinds, name)


def status_text(found: View) -> str:
    """Return a group's status in the words of the API."""
    if found.state is ProcessState.STOPPED and found.process is not None and found.process.killed:
        return "killed"
    return found.state.value.lower()


def parameter_text(call: Call, group: str) -> str | None:
    """Return a group's parameter file without passwords, None if there is none.

    Raises HttpError 403 for a link out of the home.
    """
    path = call.home.parameters(group)
    call.require_shown(path)
    return redacted_lines(path.read_text(encoding="utf-8", errors="replace")) if path.exists() else None


def credentials_of(text: str | None) -> Object | None:
    """Return the alias of the first USERIDALIAS of a parameter file."""
    found = _ALIAS.search(text or "")
    if found is None:
        return None
    return {"domain": (found[2] or "OracleGoldenGate").strip("\"'"), "alias": found[1].strip("\"'")}


def status_fields(call: Call, found: View) -> dict[str, Any]:
    """Return the fields of GroupStatus."""
    now, checkpoint = call.state.clock.now(), found.checkpoint
    lag = group_lag(call.home, found, now).value
    return {
        "status": status_text(found),
        "last_started": utc_text(checkpoint.started),
        "lag": max(0, (lag or 0) // 1_000_000),
        "since_lag_reported": since(checkpoint, now, found.ahead) // 1_000_000,
        "position": position(found),
        "process_id": found.process.pid if found.runs and found.process is not None else None,
        "last_error": str(found.reason) if found.reason is not None else found.waits or None,
    }


def position(found: View) -> ReadPlace:
    """Return how far a group has read: a trail's file and RBA, or a position of the log."""
    read = found.checkpoint.read
    if isinstance(read.current, TrailPosition) or read.source is SourceType.TRAIL:
        return ReadPlace(**trail_fields(read.trail), sequence=read.current[0], offset=read.current[1])
    csn = found.checkpoint.latest_csn or None
    return ReadPlace(name=found.group, sequence=read.current[0], offset=read.current[1], csn=csn)


def written_trails(found: View) -> list[WrittenTrail]:
    """Return the trails that a group writes."""
    return [
        WrittenTrail(
            **trail_fields(each.trail),
            size_mb=each.megabytes,
            sequence=each.current.seqno,
            offset=each.current.rba,
            sequence_length=SEQUENCE_DIGITS,
        )
        for each in found.checkpoint.write
    ]


def checkpoint_fields(found: View) -> dict[str, Any]:
    """Return the fields of Checkpoints."""
    read = found.checkpoint.read
    source = trail_fields(read.trail) if read.source is SourceType.TRAIL else {"name": found.group}
    inputs = InputPlaces(
        starting=_place(read.startup, read.startup_time, source),
        recovery=_place(read.recovery, read.recovery_time, source),
        current=_place(read.current, read.current_time, source, found.checkpoint.latest_csn),
    )
    outputs = [
        OutputPlaces(current=_place(each.current, each.current_time, trail_fields(each.trail)))
        for each in found.checkpoint.write
    ]
    return {"current": CurrentCheckpoint(input=[inputs], output=outputs or None), "history": []}


def _place(place: LogPosition | TrailPosition, time: int, source: Object, csn: str = "") -> CheckpointPlace:
    lsn = format_lsn((place[0] << 32) + place[1]) if isinstance(place, LogPosition) and place[0] + place[1] else None
    return CheckpointPlace(
        **source, sequence=place[0], offset=place[1], timestamp=utc_text(time), csn=csn or None, lsn=lsn
    )


def begin_field(found: View) -> Any:
    """Return where a group began: ``now``, a time, or a position."""
    begin = found.checkpoint.begin
    if begin.upper() == "NOW":
        return "now"
    if found.checkpoint.begin_csn and begin:
        return {"at": {"csn": found.checkpoint.begin_csn}}
    place = found.checkpoint.read.startup
    return begin or {"sequence": place[0], "offset": place[1]}


def settings_of(call: Call, found: View) -> Object:
    """Return what clients set for a group and no statement does."""
    return Documents(call.home, GROUP_SETTINGS).find(found.name) or {}


def replicat_mode(found: View) -> ReplicatMode:
    """Return the ``mode`` of a Replicat."""
    kind = found.checkpoint.options.replicat_kind
    if kind is ReplicatKind.COORDINATED:
        return ReplicatMode(type="coordinated", parallel=False)
    return ReplicatMode(type="nonintegrated", parallel=kind is ReplicatKind.PARALLEL)


def report_files(call: Call, group: str) -> dict[str, Path]:
    """Return the report and discard files of a group that exist by their names, the current report first."""
    from ggshell.groups.report import OLDEST

    paths = [call.home.report(group), *(call.home.report(group, age) for age in range(OLDEST + 1))]
    existing = [path for path in paths if path.exists()] + discard_files(call.home, group)
    return {path.name: path for path in existing}


def kind_word(kind: GroupKind) -> str:
    return "Distribution path" if kind.is_path else kind.capitalize()
