"""``heartbeat``: processor time of Manager, Extract, path and Replicat while a heartbeat travels every second, less that of the
same processes while none does, as a share of one core."""

from __future__ import annotations

import json
import os
from pathlib import Path

from benches.figures import Figure, less_is_better
from benches.ground import Failed, Ground, ground, wait_until

LIMIT = 1.0
"""Percent of one core."""
_TICKS = os.sysconf("SC_CLK_TCK")
_ARRIVED = "SELECT count(*) FROM ggadmin.gg_heartbeat_history"


def run(rounds: int, quick: bool) -> list[Figure]:
    beats = 5 if quick else 20
    with ground() as place:
        (place.home / "GLOBALS").write_text("GGSCHEMA ggadmin\n")
        place.extract("ext", "./dirdat/ea")
        place.checkpoint_table()
        place.replicat("rep", "./dirdat/da")
        place.obey(
            "ADD DISTPATH dp1 SOURCE ./dirdat/ea TARGET ./dirdat/da",
            *("DBLOGIN USERIDALIAS north", "ADD HEARTBEATTABLE, FREQUENCY 1"),
            *("DBLOGIN USERIDALIAS south", "ADD HEARTBEATTABLE, TARGETONLY"),
            "START ER *",
            "START DISTPATH dp1",
        )
        shares = [_share(place, beats) for _ in range(rounds)]
    return [less_is_better("heartbeat", "every second", "% core", shares, [LIMIT], "the limit", 1.0)]


def _share(place: Ground, beats: int) -> float:
    """Percent of a core over so many seconds with a heartbeat in each, less that of the same time without."""
    place.obey("DBLOGIN USERIDALIAS north", "ALTER HEARTBEATTABLE, FREQUENCY 1")
    with_beats = _spent(place, beats, moving=True)
    place.obey("DBLOGIN USERIDALIAS north", "ALTER HEARTBEATTABLE, FREQUENCY 0")
    return max(0.001, (with_beats - _spent(place, beats, moving=False)) / beats * 100)


def _spent(place: Ground, seconds: int, *, moving: bool) -> float:
    """Processor seconds of all processes during a time, which so many heartbeats make where they move."""
    before = int(place.one("south", _ARRIVED))
    if moving:
        wait_until("a heartbeat arrives", lambda: int(place.one("south", _ARRIVED)) > before)
        before = int(place.one("south", _ARRIVED))
    began = _processor_seconds(place)
    if moving:
        wait_until("the heartbeats arrive", lambda: int(place.one("south", _ARRIVED)) >= before + seconds)
    else:
        place.one("south", f"SELECT pg_sleep({seconds})::text")
    return _processor_seconds(place) - began


def _processor_seconds(place: Ground) -> float:
    files = [each for each in (place.home / "dirpcs").iterdir() if each.suffix.startswith(".pc")]
    if len(files) < 4:
        raise Failed(f"only {[each.name for each in files]} run")
    return sum(_ticks(int(json.loads(each.read_text())["pid"])) for each in files) / _TICKS


def _ticks(process: int) -> int:
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        raise Failed("this system has no /proc to read processor times from, or a process has ended") from None
    return int(fields[11]) + int(fields[12])
