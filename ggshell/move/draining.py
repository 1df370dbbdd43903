"""Waits until everything that has committed in one database is in the other: a marker follows it through the trail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from ggshell.clock import Clock
from ggshell.connectors.move_side import Direction, MoveSide
from ggshell.durations import clock_text
from ggshell.errors import ProcessError
from ggshell.home.checkpoint import load
from ggshell.home.home import Home
from ggshell.home.process_file import ProcessState, state_of
from ggshell.monitoring.group_lag import group_lag
from ggshell.move.scripts import Pair
from ggshell.move.state import MoveFile, MoveState

_LOOK_SECONDS: Final = 0.005
_TOLD_SECONDS: Final = 2.0
_RUNNING: Final = (ProcessState.STARTING, ProcessState.RUNNING)


class Drain:
    """Sends markers and waits for them. ``wait``: pauses, and returns true to give up; ``progress``: shows a line."""

    def __init__(
        self, home: Home, clock: Clock, wait: Callable[[float], bool], progress: Callable[[str], None]
    ) -> None:
        self._home = home
        self._clock = clock
        self._wait = wait
        self._progress = progress

    def marked(self, file: MoveFile, state: MoveState) -> MoveState:
        """Take the next number of a marker, which no earlier marker has had."""
        state = replace(state, marker=state.marker + 1)
        file.put(state)
        return state

    def until_arrived(
        self, sides: tuple[MoveSide, MoveSide], direction: Direction, number: int, pair: Pair, limit: float
    ) -> float:
        """Commit a marker and wait until it arrives; return the seconds. Raises ProcessError after ``limit`` seconds.

        Replicat applies transactions in the order of their commits. Everything that committed before has then arrived too.
        """
        began = self._clock.steady()
        report_at = began + _TOLD_SECONDS
        sides[0].write_marker(direction, number)
        while sides[1].marker(direction) < number:
            now = self._clock.steady()
            if now >= report_at:
                self._require_running(pair)
                self._progress(f"Waiting for changes from {pair.source} to {pair.target}: {self._lags(pair)}.")
                report_at = now + _TOLD_SECONDS
            if now - began > limit or self._wait(_LOOK_SECONDS):
                self._require_running(pair)
                raise ProcessError(
                    f"not all changes arrived in {pair.target} within {now - began:.1f} seconds",
                    code="GGS-01258",
                    hint=f"INFO {pair.extract}, INFO {pair.replicat} and LAG show where they wait",
                )
        return self._clock.steady() - began

    def _lags(self, pair: Pair) -> str:
        texts = []
        for name, kind in pair.groups:
            state = state_of(self._home.process(name, kind))[0]
            found = group_lag(self._home, load(self._home.checkpoint(name, kind)), state, self._clock.now())
            texts.append(f"lag of {name} {'unknown' if found.value is None else clock_text(found.value)}")
        return ", ".join(texts)

    def _require_running(self, pair: Pair) -> None:
        for name, kind in pair.groups:
            found = state_of(self._home.process(name, kind))[0]
            if found not in _RUNNING:
                raise ProcessError(
                    f"{kind} {name} is {found}",
                    code="GGS-01259",
                    hint=f"VIEW REPORT {name} shows why; then run ggshell move follow, which starts it",
                )
