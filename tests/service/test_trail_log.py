"""The lines about connections of trails: a line that is lost and made again is one line."""

from __future__ import annotations

import asyncio

import pytest

from ggshell.home.events import Severity
from ggshell.service import trail_log
from ggshell.service.trail_log import TrailLog


def test_the_end_of_a_lost_connection_is_written_only_if_it_is_not_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    written = asyncio.Event()

    def tell(severity: Severity, code: str, text: str) -> None:
        lines.append(f"{code} {text}")
        written.set()

    async def connections() -> None:
        log = TrailLog(tell)
        log.begun("a", "1", "a arrives")
        log.ended("a", "2", "a ended", lost=True)
        log.begun("a", "1", "a arrives")
        log.ended("a", "2", "a ended", lost=False)
        log.begun("b", "1", "b arrives")
        log.ended("b", "2", "b ended", lost=True)
        monkeypatch.setattr(trail_log, "AGAIN_SECONDS", 0.0)
        written.clear()
        log.ended("c", "2", "c ended", lost=True)
        await written.wait()
        log.close()

    asyncio.run(connections())
    again = "1 a arrives again, after the connection was lost."
    assert lines == ["1 a arrives.", again, "2 a ended.", "1 b arrives.", "2 c ended.", "2 b ended."]
