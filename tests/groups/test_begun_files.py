"""Readers that start in the moment in which a trail file is created: they wait for its header."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import until
from ways import Way

from ggshell.trail.name import TrailName

PUMP = "EXTRACT pump1\nRMTTRAIL ./dirdat/pa\nTABLE a.*;\n"


@pytest.fixture
def way(tmp_path: Path, north: str, south: str) -> Iterator[Way]:
    way = Way(tmp_path / "home", north, south)
    yield way
    way.close()


def test_a_pump_and_a_replicat_wait_for_the_header_of_a_file(way: Way) -> None:
    """They ended with OGG-01028 at RBA 0 of a file that Extract had just created."""
    way.add()
    way.start("ext1", "rep1")
    way.in_north("INSERT INTO a.items VALUES (1, 'before', 1)")
    way.arrives(1)
    way.run("STOP ext1", "STOP rep1")
    name = TrailName.parse("./dirdat/ea", way.home.root)
    following = name.sequences()[-1] + 1
    name.file(following).write_bytes(name.file(0).read_bytes()[:100])
    way.write("pump1", PUMP)
    way.run(
        f"ADD EXTRACT pump1, EXTTRAILSOURCE ./dirdat/ea, EXTSEQNO {following}, EXTRBA 0",
        "ADD RMTTRAIL ./dirdat/pa, EXTRACT pump1",
        "DBLOGIN USERIDALIAS south",
        f"ALTER REPLICAT rep1, EXTSEQNO {following}, EXTRBA 0",
    )
    way.start("pump1", "rep1")
    assert "00:00:00" in way.run("LAG EXTRACT pump1", "LAG REPLICAT rep1", "INFO ALL")
    way.start("ext1")
    way.run("SEND EXTRACT ext1, ROLLOVER")
    way.in_north("INSERT INTO a.items VALUES (2, 'after', 2)")
    way.arrives(2)
    way.same()
    until("the pump carries the row on", lambda: b"after" in content(way, "pa"))


def content(way: Way, name: str) -> bytes:
    return b"".join(path.read_bytes() for path in way.home.root.glob(f"dirdat/{name}0*"))
