"""A passive Extract (ADD EXTRACT … PASSIVE): writes its remote trail in its own home, where its alias in another home reads it.

The alias starts and stops the Extract. An Extract always has the same alias: the note of the reader next to the trail names it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ggshell.errors import ParameterError, StateError
from ggshell.groups.process_request import request
from ggshell.home import checkpoint as checkpoints
from ggshell.home.checkpoint import Checkpoint, GroupKind, WriteCheckpoint
from ggshell.home.home import Home
from ggshell.home.process_file import ALIVE, ProcessState, abend_reason, state_of
from ggshell.network.opening import ExtractAction
from ggshell.network.remote_group import RemoteGroup
from ggshell.network.trail_readers import readers_of
from ggshell.parameters.loading import load_extract
from ggshell.parameters.process_parameters import ExtractParameters
from ggshell.trail.name import TrailName

CANNOT_USE: Final = "GGS-00966"
ENDED: Final = "GGS-00967"
START_SECONDS: Final = 60.0


class PassiveTrail(NamedTuple):
    """What the alias of a passive Extract must know: the trail, the size of its files, and the data that is compressed."""

    trail: str
    megabytes: int
    compress: int | None


def carry_out(home: Home, extract: str, action: ExtractAction, alias: RemoteGroup) -> PassiveTrail:
    """Start or stop a passive Extract for its alias, or only check that it may; a start returns when its process runs.

    Raises StateError (GGS-00966) if the Extract cannot be used by this alias or Manager does not run, and the error of a
    process that ends immediately; ParameterError, StoreError, ProcessError.
    """
    group = extract.upper()
    found = _require_passive(home, group)
    target = _remote_trail(found)
    _require_alias(home, group, target, alias)
    state, entry = state_of(home.process(group, GroupKind.EXTRACT))
    if action is ExtractAction.STOP and state in ALIVE and entry is not None:
        request(entry.socket, "STOP")
    if action is not ExtractAction.START:
        return PassiveTrail(target.trail, target.megabytes, None)
    options = load_extract(home.parameters(group), group).passive
    if state not in ALIVE:
        manager, process = state_of(home.manager)
        if manager is not ProcessState.RUNNING or process is None:
            raise _cannot(
                "Manager is not running in the source home, so the Extract cannot be started", "START MANAGER there"
            )
        request(process.socket, "START", timeout=START_SECONDS, type=str(GroupKind.EXTRACT), group=group)
    return PassiveTrail(target.trail, target.megabytes, options.compress_threshold if options is not None else None)


def require_running(home: Home, group: str) -> None:
    """Raise StateError (GGS-00967) if a passive Extract does not run: its alias must not seem to work then."""
    state, entry = state_of(home.process(group.upper(), GroupKind.EXTRACT))
    if state in ALIVE:
        return
    reason = abend_reason(state, entry)
    ended = f"has abended: {reason}" if reason is not None else "was stopped or killed in its home"
    raise StateError(
        f"the passive EXTRACT {group} {ended}",
        code=ENDED,
        hint="correct the cause in the source home if there is one, then START EXTRACT of the alias again",
    )


def require_passive_parameters(parameters: ExtractParameters, place: str) -> None:
    """Raise ParameterError for parameters that an Extract which waits for a connection cannot have.

    RMTHOST is ignored if there is RMTHOSTOPTIONS."""
    if any(item.file is not None and item.file.task for item in parameters.trails):
        raise ParameterError("RMTTASK is not supported for passive mode", code="OGG-00055", where=place)
    if any(not item.remote or item.file is not None for item in parameters.trails):
        raise ParameterError(
            "Only remote trail/file is allowed in passive mode.", code="OGG-00057", where=place, hint="use RMTTRAIL"
        )
    if parameters.passive is None and any(item.host is not None for item in parameters.trails):
        raise ParameterError(
            "RMTHOST is not supported for passive mode",
            code="OGG-00055",
            where=place,
            hint="remove it: the alias Extract in the other home connects to this one",
        )


def _require_passive(home: Home, group: str) -> Checkpoint:
    path = home.checkpoint(group, GroupKind.EXTRACT)
    if not path.exists():
        raise _cannot(
            f"EXTRACT {group} does not exist in the source home", f"ADD EXTRACT {group.lower()}, … PASSIVE there"
        )
    found = checkpoints.load(path)
    if not found.options.passive:
        raise _cannot(
            f"EXTRACT {group} of the source home is not passive", "ADD EXTRACT …, PASSIVE there, or RECVPATH here"
        )
    return found


def _remote_trail(found: Checkpoint) -> WriteCheckpoint:
    if len(found.write) != 1:
        raise _cannot(
            f"EXTRACT {found.group} of the source home has {len(found.write)} trails: a passive Extract has one",
            f"ADD RMTTRAIL ./dirdat/xx, EXTRACT {found.group.lower()} there"
            if not found.write
            else "DELETE RMTTRAIL there",
        )
    return found.write[0]


def _require_alias(home: Home, group: str, target: WriteCheckpoint, alias: RemoteGroup) -> None:
    """Raise StateError if an Extract belongs to another alias: it sends to one target only."""
    others = [each for each in readers_of(TrailName.parse(target.trail, home.root)) if not each.is_same(alias)]
    if others:
        raise _cannot(
            f"EXTRACT {group} of the source home belongs to {others[0].text}",
            f"DELETE EXTRACT there; if that home no longer exists, run in the source home: DELETE RECVPATH {others[0].group}",
        )


def _cannot(text: str, hint: str) -> StateError:
    return StateError(text, code=CANNOT_USE, hint=hint)
