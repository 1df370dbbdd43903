"""The example of the manual: T27 and T45 are long-running at checkpoint n, and T801 is the oldest that is not."""

from __future__ import annotations

from pathlib import Path

import pytest
from pipeline.capture.list_log import Entry
from pipeline.capture.small_extract import FOLDER, Machine, SmallExtract

from ggshell.pipeline.capture.bounded.manifest import RecoveryManifest
from ggshell.pipeline.capture.bounded.recovery import RecoveryKind

HOUR = 3_600_000_000
FOUR = 4 * 3600
BEGIN = 1_000_000 * 1_000_000


class _Figure:
    """A log by the hour; each record follows the previous one."""

    def __init__(self) -> None:
        self.log: list[Entry] = []

    def add(self, hour: float, kind: str, *xids: int) -> None:
        for xid in xids:
            number = len(self.log) + 1
            content = b"%05d at %d " % (number, xid) if kind == "C" else b""
            self.log.append(Entry(10 * number, BEGIN + int(hour * HOUR), kind, xid, 5 * number, content))


def _begin_of(log: list[Entry], xid: int) -> int:
    return next(entry.position for entry in log if entry.xid == xid and entry.kind == "B")


def _figure() -> list[Entry]:
    found = _Figure()
    found.add(0, "B", 1)
    found.add(0, "K", 1)
    found.add(1, "B", 27)  # Open for days.
    found.add(1.1, "C", 27)
    found.add(2, "B", 45)
    found.add(2.1, "C", 45)
    found.add(7.0, "B", 801)
    found.add(7.1, "C", 801)
    found.add(7.5, "B", 950)
    found.add(8.0, "C", 950)  # Checkpoint n is made here.
    found.add(8.5, "B", 1024)
    found.add(8.6, "C", 45)  # T45 changes.
    found.add(9.0, "K", 801)
    found.add(9.1, "K", 950)
    found.add(12.0, "C", 1024)  # Checkpoint n + 1.
    found.add(12.1, "K", 1024)
    for hour in range(13, 12_009):  # Many intervals later, T27 and T45 are still open.
        if hour % 4 == 0:
            found.add(hour, "B", 300_000 + hour)
            found.add(hour, "K", 300_000 + hour)
    found.add(12_009.5, "B", 208_412)
    found.add(12_010, "C", 208_412)
    found.add(12_012.0, "C", 208_412)  # The last checkpoint.
    found.add(12_013.0, "B", 208_500)
    found.add(12_013.5, "C", 208_500)
    return found.log


@pytest.mark.slow
def test_the_example_of_the_manual(tmp_path: Path) -> None:
    machine = Machine(tmp_path, interval=FOUR, log=_figure(), step_records=1)
    extract = SmallExtract(machine)
    made: list[RecoveryManifest] = []
    while extract.turn():
        last = extract.bounded.last
        if last is not None and (not made or last.number != made[-1].number):
            made.append(last)
    number = next(n for n, each in enumerate(made) if {item.name for item in each.objects} == {"T27", "T45"})
    first, second = made[number], made[number + 1]
    # At n, T27 and T45 are in files, and T801 determines the restart position.
    assert (first.restart, first.restart_name) == (_begin_of(machine.log, 801), "T801")
    # At n + 1, T45 has a new file; T27 keeps its file.
    files = [{item.name: item.files[0].name for item in each.objects} for each in (first, second)]
    assert files[0]["T27"] == files[1]["T27"]
    assert files[0]["T45"] != files[1]["T45"]
    assert second.restart_name == "T1024"
    # At about n + 3000, a bounded recovery restores both and reads from T208412 on.
    assert len(made) - number >= 3000
    extract.save()
    restarted = SmallExtract(machine)
    assert restarted.started.kind is RecoveryKind.BOUNDED
    assert restarted.started.position == _begin_of(machine.log, 208_412)
    assert {item.xid for item in restarted.cache.open.values()} == {27, 45}
    assert {item.name for item in made[-1].objects} == {"T27", "T45"}
    kept = {name for name in machine.disk.names(FOLDER) if name.startswith("PO")}
    assert kept == {file.name for item in made[-1].objects for file in item.files}
    while restarted.turn():
        pass
    assert sorted(restarted.cache.open) == [27, 45, 208_412, 208_500]
