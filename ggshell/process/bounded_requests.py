"""SEND EXTRACT … BR: what it asks of Bounded Recovery, and what it changes for the rest of the run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ggshell.capture.bounded.control import BoundedRecovery
from ggshell.capture.stream import Capture
from ggshell.errors import StateError, UsageError
from ggshell.params.transactions import HOUR, MINUTE, interval_seconds, nearest_multiple
from ggshell.process.bounded_recovery import ExtractRecovery
from ggshell.process.lifecycle import GroupContext
from ggshell.process.source import BoundedLog, SourceDatabase
from ggshell.store.events import Severity

LEAST, MOST = 20 * MINUTE, 96 * HOUR


class BoundedRequests:
    """Answers them.  ``capture`` gives the present one, ``save`` writes Extract's checkpoint."""

    def __init__(
        self,
        context: GroupContext,
        source: SourceDatabase,
        recovery: ExtractRecovery,
        capture: Callable[[], Capture | None],
        checkpoint_seconds: int,
    ) -> None:
        self._context = context
        self._source = source
        self._recovery = recovery
        self._capture = capture
        self._checkpoint_seconds = checkpoint_seconds
        context.verb("BR", self.answer)

    def answer(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Carry out one request; the facts of BRSTATUS are in every answer."""
        action = str(arguments.get("action", ""))
        bounded, capture, log = self._require()
        if action == "BRINTERVAL":
            bounded.set_interval(self._interval(arguments.get("interval", "")))
        elif action == "BRSTART":
            bounded.turn_on(log.time)
        elif action == "BRSTOP":
            bounded.turn_off()
        elif action == "BRFSOPTION":
            bounded.set_durable(durable=bool(arguments.get("durable")))
        elif action == "BRCHECKPOINT":
            if bounded.status != "ON":
                raise StateError(f"Bounded Recovery is {bounded.status.lower()}.", hint="BRSTART first")
            bounded.force(self._moment(arguments))
        elif action not in ("BRSTATUS", "BRSTATS"):
            raise UsageError(f"BR has no request {action}")
        if action not in ("BRSTATUS", "BRSTATS"):
            self._context.report.event(Severity.INFO, "OGG-01021", f"Command received from GGSCI: BR {action}.")
        return {
            **self._recovery.options(capture)["br"],
            "counts": self._recovery.counts(),
            "now": self._context.clock.now(),
        }

    def _require(self) -> tuple[BoundedRecovery, Capture, BoundedLog]:
        if self._source.unbounded:
            raise StateError(f"There is no Bounded Recovery for this source: {self._source.unbounded}.")
        bounded, capture, log = self._recovery.control, self._capture(), self._source.bounded
        if bounded is None or capture is None or log is None:
            raise StateError("the log is not open yet.", hint="ask again")
        return bounded, capture, log

    def _interval(self, text: object) -> int:
        try:
            seconds = interval_seconds(text)
        except ValueError as error:
            raise UsageError(str(error), hint="for example 20M or 4H") from error
        if not LEAST <= seconds <= MOST:
            raise UsageError(f"BRINTERVAL {text} is not within 20M to 96H.")
        return nearest_multiple(seconds, self._checkpoint_seconds)

    def _moment(self, arguments: dict[str, Any]) -> int:
        """When: now, in a span of time, or at a moment that the shell has read."""
        now = self._context.clock.now()
        if "in" in arguments:
            try:
                return now + interval_seconds(arguments["in"]) * 1_000_000
            except ValueError as error:
                raise UsageError(str(error), hint="for example IN 20M") from error
        return int(arguments.get("at") or now)
