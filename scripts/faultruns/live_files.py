"""Trail files that are damaged while processes have them open: of Extract, of a pump, of a path, under whoever reads them."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from faultruns.home_files import HomeFile, Moment
from ggshell.home.process_file import read_process_file

if TYPE_CHECKING:
    from faultruns.files import FileGround


class Ends(NamedTuple):
    """Who writes a trail and who reads it, by their process files."""

    writer: str
    reader: str


TRAILS = {
    "ea": Ends("EXT1.pce", "PMP1.pce"),
    "pa": Ends("PMP1.pce", "DP1.pcd"),
    "da": Ends("DP1.pcd", "REP1.pcr"),
}


def prepare(ground: FileGround, file: HomeFile, backup: Path) -> None:
    """Everything runs; the trail's reader stands where the row says, and the writer has ended unless it is to go on."""
    ends = TRAILS[file.trail]
    last = ground.work()
    ground.until("what came before arrives", lambda: ground.arrived(last))
    if file.moment is Moment.UNREAD:
        _signal(ground, ends.reader, signal.SIGSTOP)
    ground.grow(file.trail, backup)
    last = ground.work()
    ground.trail_holds(file.trail, last)
    if file.moment is not Moment.UNREAD:
        ground.until("what is in the trail arrives", lambda: ground.arrived(last))
    if file.moment is not Moment.WRITTEN:
        ground.end(ends.writer, killed=False)
    ground.back_up(backup)


def go_on(ground: FileGround, file: HomeFile) -> None:
    """The reader goes on after the damage."""
    if file.moment is Moment.UNREAD:
        _signal(ground, TRAILS[file.trail].reader, signal.SIGCONT)


def make_again(ground: FileGround, file: HomeFile) -> None:
    """What HELP RECOVERY says of a trail without a backup, where every reader has what the slot has let go of."""
    ground.end_all()
    trail, folder = file.trail, ground.root / "dirdat"
    writer, again = _WRITERS[trail](ground)
    ground.obey(f"DELETE EXTTRAIL ./dirdat/{trail}", must=trail != "da")
    for path in (*folder.glob(f"{trail}[0-9]*"), folder / f".{trail}.durable"):
        path.unlink() if path.is_file() else path.rmdir()
    ground.obey(*writer)
    ground.obey(*again)


def _of_extract(ground: FileGround) -> tuple[list[str], list[str]]:
    ((place,),) = ground.north("SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = 'ggs_ext1'")
    writer = [
        "ADD EXTTRAIL ./dirdat/ea, EXTRACT ext1, MEGABYTES 2",
        "DBLOGIN USERIDALIAS north",
        f"ALTER EXTRACT ext1, LSN {place}",
    ]
    return writer, ["ALTER EXTRACT pmp1, EXTSEQNO 0, EXTRBA 0"]


def _of_pump(ground: FileGround) -> tuple[list[str], list[str]]:
    writer = [
        "ADD EXTTRAIL ./dirdat/pa, EXTRACT pmp1, MEGABYTES 2",
        f"ALTER EXTRACT pmp1, EXTSEQNO {_first(ground, 'ea')}, EXTRBA 0",
    ]
    return writer, _path_again()


def _of_path(_ground: FileGround) -> tuple[list[str], list[str]]:
    return _path_again(), ["ALTER REPLICAT rep1, EXTSEQNO 0, EXTRBA 0, FILTERDUPTRANSACTIONS"]


_WRITERS = {"ea": _of_extract, "pa": _of_pump, "da": _of_path}
"""What makes a trail again, and what its reader is told."""


def _path_again() -> list[str]:
    return ["DELETE DISTPATH dp1", "ADD DISTPATH dp1, SOURCE ./dirdat/pa, TARGET ./dirdat/da"]


def _first(ground: FileGround, trail: str) -> int:
    return min(int(path.name[2:]) for path in (ground.root / "dirdat").glob(f"{trail}[0-9]*"))


def _signal(ground: FileGround, name: str, number: signal.Signals) -> None:
    entry = read_process_file(ground.root / "dirpcs" / name)
    if entry is not None:
        os.kill(entry.pid, number)
