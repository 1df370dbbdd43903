"""The switch: neither database accepts writes for a few moments, then clients write in the other one.

Both directions replicate all the time, so switching back is the same switch in the other direction.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Final, NamedTuple

from ggshell.clock import Clock
from ggshell.connectors.move_side import Direction, MoveSide
from ggshell.errors import ProcessError, StateError
from ggshell.move.databases import Sides, connected
from ggshell.move.scripts import pair_of
from ggshell.move.state import MoveFile, MoveState, Step, Switch
from ggshell.move.steps import Means, catch_up, require_all_schemas, require_capture, require_same_objects, verify
from ggshell.pipeline.compare.tables import ComparedTable, Databases, compare_tables, table_pairs
from ggshell.types import display_part

DRAIN_SECONDS: Final = 10.0


class Switched(NamedTuple):
    """A completed switch. ``seconds``: the write downtime; ``ended``: sessions of clients that were ended."""

    seconds: float
    ended: int
    sequences: int


def switch(means: Means, clock: Clock, direction: Direction, *, limit: float = DRAIN_SECONDS) -> Switched | None:
    """Let clients write in the other database, with everything in it. Raises ProcessError, DatabaseError, StateError.

    If not everything arrives within ``limit`` seconds, the database that was open is opened again, and nothing has changed.
    The same is done if a switch in the opposite direction was interrupted; the result is then None. After a switch whose
    comparison was interrupted, the databases are compared as they are now; the result is None too.
    """
    file = MoveFile(means.home.root)
    state = file.get()
    if state.last is not None and state.live is direction.opposite and not (state.closing or state.last.compared):
        means.say(
            f"Clients already write in {pair_of(state.request, direction).target}; the comparison was interrupted."
        )
        verify(means)
        return None
    with connected(means.home, state.request) as sides:
        if state.closing is direction.opposite:
            _undo(means, file, state, sides, direction.opposite)
            return None
        _require_possible(state, direction)
        state = catch_up(means, file, state, sides, limit)
        require_capture(state.request, sides)
        require_all_schemas(state.request, sides)
        require_same_objects(means, state.request, sides)
        state = replace(state, closing=direction)
        file.put(state)
        here, there = sides.of(direction)
        with ExitStack() as held:
            began = clock.steady()
            try:
                ended, state = _drained(means, file, state, sides, direction, limit)
                require_all_schemas(state.request, sides)  # also one that was created after the first look
                values = here.sequences(state.request.schemas)
                there.set_sequences(values)
                databases = held.enter_context(here.held()), held.enter_context(there.held())
            except BaseException:
                _undo(means, file, file.get(), sides, direction)
                raise
            there.open_to_clients()
            seconds = clock.steady() - began
            ended += there.end_earlier_sessions()
            done = Switch(direction, clock.now(), seconds)
            state = replace(state, closing=None, live=direction.opposite, switches=(*state.switches, done))
            file.put(state)
            _say_open(means, state, direction, seconds)
            _compare(means, databases, state, direction, here.with_tables(state.request.schemas))
            file.put(state.with_last_compared())
    return Switched(seconds, ended, len(values))


def _undo(means: Means, file: MoveFile, state: MoveState, sides: Sides, direction: Direction) -> None:
    """Open the database again that a switch in a direction has closed."""
    sides.of(direction)[0].open_to_clients()
    file.put(replace(state, closing=None))
    means.say(f"The switch was undone: clients write in {pair_of(state.request, direction).source}.")


def _require_possible(state: MoveState, direction: Direction) -> None:
    """Raise StateError if a switch in this direction is not possible now."""
    if Step.FOLLOW not in state.done:
        raise StateError(
            "changes are not being applied to the target yet", code="GGS-01260", hint="run ggshell move follow first"
        )
    if state.live is not direction:
        raise StateError(
            f"clients already write in {pair_of(state.request, direction).target}",
            code="GGS-01261",
            hint=f"ggshell move {'back' if direction is Direction.FORWARD else 'switch'} switches in the other direction",
        )


def _drained(
    means: Means, file: MoveFile, state: MoveState, sides: Sides, direction: Direction, limit: float
) -> tuple[int, MoveState]:
    """Close one database and wait until everything is in the other; return how many sessions were ended."""
    here: MoveSide = sides.of(direction)[0]
    pair = pair_of(state.request, direction)
    here.close_to_clients()
    ended = here.end_earlier_sessions()
    while True:
        state = means.drain.marked(file, state)
        means.drain.until_arrived(sides.of(direction), direction, state.marker, pair, limit)
        late = here.end_earlier_sessions()  # sessions that were connecting when the database was closed
        if not late:
            return ended, state
        ended += late


def _say_open(means: Means, state: MoveState, direction: Direction, seconds: float) -> None:
    pair = pair_of(state.request, direction)
    means.say(f"{pair.target} is open to clients, {pair.source} is read-only. Write downtime: {seconds:.3f} seconds.")


def _compare(
    means: Means, databases: Databases, state: MoveState, direction: Direction, schemas: Sequence[str]
) -> None:
    """Compare both databases as they were at the moment of the switch. Raises ProcessError if they differ."""
    pair = pair_of(state.request, direction)
    means.say("Comparing all rows as they were at the moment of the switch.")
    pairs = table_pairs(databases, [f"{display_part(schema)}.*" for schema in schemas], "") if schemas else []
    found = list(compare_tables(databases, pairs, 0.0, lambda _: False))
    wrong = [each for each in found if each.problem or each.differences or not each.whole]
    if wrong:
        back = "back" if direction is Direction.FORWARD else "switch"
        raise ProcessError(
            f"{pair.source} and {pair.target} were not equal: {'; '.join(map(_difference, wrong))}",
            code="GGS-01262",
            hint=f"decide which rows are right; ggshell move {back} returns to {pair.source}",
        )
    rows = sum(each.source_rows for each in found)
    means.say(f"All {rows:,} rows of {len(found)} tables were equal.")


def _difference(table: ComparedTable) -> str:
    return f"{table.target}: {table.problem or f'{len(table.differences)} rows differ'}"
