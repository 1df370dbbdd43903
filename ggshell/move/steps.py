"""The steps of a move before and after the switch: prepare, load, follow, verify, finish.

Each step runs an obey file of ordinary statements and stores that it is done. An interrupted step is simply run again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from shutil import rmtree
from typing import Final, NamedTuple

from ggshell.connectors.move_side import MARKERS, Direction
from ggshell.errors import ConflictError, ProcessError, StateError
from ggshell.home.home import Home
from ggshell.move.databases import Sides, connected
from ggshell.move.draining import Drain
from ggshell.move.request import MoveRequest
from ggshell.move.scripts import (
    Pair,
    Present,
    Scripts,
    extract_parameters,
    manager_parameters,
    pair_of,
    replicat_parameters,
)
from ggshell.move.state import MoveFile, MoveState, Step
from ggshell.trail.name import TrailName

FOLLOW_SECONDS: Final = 3600.0


class Means(NamedTuple):
    """What a step works with.

    ``obey``: runs statements and returns whether all succeeded; its first argument is the name of the step. ``say``: shows a
    line. ``drain``: waits for changes.
    """

    home: Home
    obey: Callable[[str, str], bool]
    say: Callable[[str], None]
    drain: Drain

    def run(self, step: str, script: str) -> None:
        """Run the statements of a step. Raises ProcessError if one fails."""
        if script and not self.obey(step, script):
            raise ProcessError(
                f"a statement of the step {step} failed",
                code="GGS-01252",
                hint=f"correct the cause, then run ggshell move {step} again: it continues where it stopped",
            )


def prepare(means: Means, request: MoveRequest) -> None:
    """Begin to capture the changes of the source, and close the target to clients."""
    file = MoveFile(means.home.root)
    found = file.find()
    if found is not None and found.request.identity != request.identity:
        raise StateError(
            f"a move from {found.request.source} to {found.request.target} with groups {found.request.groups}* has begun"
            " in this home",
            code="GGS-01253",
            hint="finish it with ggshell move finish, or use another home for this move",
        )
    if found is None:
        _require_new_trails(means.home, request)
    with connected(means.home, request) as sides:
        present = Present.read(request, sides)
        if found is None:
            _require_nothing_registered(present)
        request = _with_schemas(request, found, sides)
        schemas = request.schemas
        state = replace(found, request=request) if found else MoveState(request)
        file.put(state)
        for side in sides:
            side.prepare()
        means.say(f"Created table {MARKERS} in both databases.")
        if not sides.target.is_closed and Step.FOLLOW not in state.done:
            sides.target.close_to_clients()
            means.say(f"{request.target}: new transactions of clients are read-only until the switch.")
    for direction in Direction:
        pair = pair_of(request, direction)
        _write(means, pair.extract, extract_parameters(pair, schemas))
        _write(means, pair.replicat, replicat_parameters(pair, schemas))
    if not means.home.parameters("MGR").exists():
        _write(means, "MGR", manager_parameters(request))
    means.run("prepare", Scripts(means.home, request, present).prepare())
    file.put(state.with_step(Step.PREPARE))


def _with_schemas(request: MoveRequest, found: MoveState | None, sides: Sides) -> MoveRequest:
    """The request with its schemas: those of the user, those of the move that has begun, or all."""
    if request.schemas:
        return request
    if found is not None and found.request.schemas:
        return replace(request, schemas=found.request.schemas, others=found.request.others)
    schemas = tuple(sides.source.schemas())
    return replace(request, schemas=schemas, others=tuple(sorted({*sides.target.schemas()} - {*schemas})))


def load(means: Means) -> None:
    """Load the definitions and the rows."""
    file, state = _after(means, Step.PREPARE, "prepare")
    if Step.FOLLOW in state.done:
        raise StateError(
            "the rows are loaded, and changes have been applied to them since",
            code="GGS-01254",
            hint="continue with ggshell move verify; to load again, begin with ggshell move finish",
        )
    means.run("load", Scripts(means.home, state.request).load())
    file.put(state.with_step(Step.LOAD))


def follow(means: Means) -> None:
    """Apply the changes since the load until the target has nearly caught up, and keep applying them."""
    file, state = _after(means, Step.LOAD, "load")
    if Step.FOLLOW in state.done:
        means.run("follow", Scripts(means.home, state.request).restart())
    else:
        with connected(means.home, state.request) as sides:
            scripts = Scripts(means.home, state.request, Present.read(state.request, sides))
            csns = sides.target.loaded(state.request.schemas)
        first = min(csns.values(), default=None)
        pair = pair_of(state.request, Direction.FORWARD)
        later = {name: csn for name, csn in csns.items() if csn != first}
        _write(means, pair.replicat, replicat_parameters(pair, state.request.schemas, later))
        means.run("follow", scripts.follow(first))
        state = state.with_step(Step.FOLLOW)
        file.put(state)
    with connected(means.home, state.request) as sides:
        state = catch_up(means, file, state, sides)


def catch_up(means: Means, file: MoveFile, state: MoveState, sides: Sides, limit: float = FOLLOW_SECONDS) -> MoveState:
    """Wait until a marker arrives in both directions. Raises ProcessError if a group has ended, or after ``limit`` seconds."""
    for direction in Direction:
        state = means.drain.marked(file, state)
        pair = pair_of(state.request, direction)
        seconds = means.drain.until_arrived(sides.of(direction), direction, state.marker, pair, limit)
        means.say(f"{pair.source} to {pair.target}: a change arrives after {seconds:.3f} seconds.")
    return state


def verify(means: Means) -> None:
    """Compare the rows, while changes flow, and the number of objects. Raises ProcessError if they differ."""
    file, state = _after(means, Step.FOLLOW, "follow")
    with connected(means.home, state.request) as sides:
        state = catch_up(means, file, state, sides)
        require_capture(state.request, sides)
        require_all_schemas(state.request, sides)
        require_same_objects(means, state.request, sides)
        schemas = sides.source.with_tables(state.request.schemas)
    means.run("verify", Scripts(means.home, state.request).verify(schemas))
    if state.last is not None:
        file.put(state.with_last_compared())


def require_capture(request: MoveRequest, sides: Sides) -> None:
    """Raise StateError if DDL in one of the databases is not captured, so that the definitions may differ unnoticed."""
    for alias, side in zip((request.source, request.target), sides, strict=True):
        if request.schemas and not side.captures_ddl:
            raise StateError(
                f"event triggers of ggshell are disabled or missing in {alias}: DDL there is not replicated",
                code="GGS-01267",
                hint="enable them with ADD SCHEMATRANDATA, and run the statements executed meanwhile in the other database too",
            )


def require_all_schemas(request: MoveRequest, sides: Sides) -> None:
    """Raise StateError if all schemas are moved, and one is newer than the move: its rows are not captured."""
    if request.others is None:
        return
    for alias, side in zip((request.source, request.target), sides, strict=True):
        newer = sorted({*side.schemas()} - {*request.schemas} - {*request.others})
        if newer:
            raise StateError(
                f"schemas of {alias} did not exist when the move was prepared, and are not moved: {', '.join(newer)}",
                code="GGS-01268",
                hint="drop them, or begin again with them; ggshell move prepare --schemas … does not move them",
            )


def require_same_objects(means: Means, request: MoveRequest, sides: Sides) -> None:
    """Compare the numbers of objects. Raises ProcessError if they differ."""
    counts = [side.object_counts(request.schemas) for side in sides]
    kinds = sorted({*counts[0], *counts[1]})
    different = [
        f"{kind}: {counts[0].get(kind, 0)} in {request.source}, {counts[1].get(kind, 0)} in {request.target}"
        for kind in kinds
        if counts[0].get(kind, 0) != counts[1].get(kind, 0)
    ]
    if different:
        raise ProcessError(
            f"the databases do not have the same objects: {'; '.join(different)}",
            code="GGS-01255",
            hint="if DDL is being replicated now, repeat the step; otherwise create or drop the objects in the target",
        )
    means.say(f"Both databases have {sum(counts[0].values())} objects of {len(kinds)} kinds.")


def finish(means: Means) -> None:
    """Remove the groups of the move, and what they need in the databases; the state of the clients does not change."""
    stored = MoveFile(means.home.root)
    state = stored.get()
    if state.closing is not None:
        raise StateError(
            "a switch has begun and has not ended",
            code="GGS-01256",
            hint="complete it with ggshell move switch or back",
        )
    with connected(means.home, state.request) as sides:
        means.run("finish", Scripts(means.home, state.request, Present.read(state.request, sides)).finish())
        for side in sides:
            side.remove()
    for direction in Direction:
        pair = pair_of(state.request, direction)
        for name in (pair.extract, pair.replicat):
            means.home.parameters(name).unlink(missing_ok=True)
        for file in _trail_files(means.home, pair):
            if file.is_dir():
                rmtree(file)  # the sockets of readers
            else:
                file.unlink(missing_ok=True)
    manager = means.home.parameters("MGR")
    if manager.exists() and manager.read_text(encoding="utf-8") == manager_parameters(state.request):
        manager.unlink()
    stored.remove()


def _require_new_trails(home: Home, request: MoveRequest) -> None:
    """Raise ConflictError if trails of this move exist: a Replicat would apply what they contain to the databases."""
    found = [pair.trail for pair in (pair_of(request, each) for each in Direction) if _trail_files(home, pair)]
    if found:
        raise ConflictError(
            f"the home already contains the {'trail' if len(found) == 1 else 'trails'} {' and '.join(found)}",
            code="GGS-01265",
            hint="delete these files if no group needs them, or use another home for this move",
        )


def _require_nothing_registered(present: Present) -> None:
    """Raise ConflictError if another move, of any database of these servers, uses the names of this one's Extracts."""
    if present.registered:
        raise ConflictError(
            f"{' and '.join(sorted(present.registered))} of another move is registered in these servers",
            code="GGS-01266",
            hint="finish that move first, or, for another database of the server, name the groups of this one: --groups M2",
        )


def _trail_files(home: Home, pair: Pair) -> list[Path]:
    """Return the files of a trail of this move, with those that its processes keep next to them."""
    name = TrailName.parse(pair.trail, home.root)
    beside = (*name.folder.glob(f".{name.prefix}.*"), *name.folder.glob(f".{name.prefix}[0-9]*"))
    return [*(name.file(number) for number in name.sequences()), *beside]


def _after(means: Means, needed: Step, command: str) -> tuple[MoveFile, MoveState]:
    """Return the state. Raises StateError if a step that must come first is not done."""
    file = MoveFile(means.home.root)
    state = file.get()
    if needed not in state.done:
        raise StateError(
            f"the step {needed} is not complete", code="GGS-01257", hint=f"run ggshell move {command} first"
        )
    return file, state


def _write(means: Means, group: str, text: str) -> None:
    path = means.home.parameters(group)
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
        means.say(f"Wrote {path}:")
        means.say("".join(f"    {line}\n" for line in text.splitlines()).rstrip("\n"))
