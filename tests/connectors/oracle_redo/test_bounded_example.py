"""The example of the manual as real redo: files at checkpoints n, n + 1 and n + 3000, and the position of a recovery."""

from __future__ import annotations

from pathlib import Path

import pytest
from pipeline.capture.crashing_disk import CrashingDisk, Fuse

from ggshell.clock import FakeClock
from ggshell.connectors.oracle_redo.definitions import Definitions
from ggshell.connectors.oracle_redo.folder import open_rows
from ggshell.connectors.oracle_redo.log import NoDefinitions, RedoLog
from ggshell.connectors.oracle_redo.rows import format_xid
from ggshell.demo.redo_figure import checkpoint_time, write_figure
from ggshell.pipeline.capture.bounded.manifest import MachineIdentity, RecoveryManifest
from ggshell.pipeline.capture.bounded.recovery import BoundedRecovery, RecoveryConditions, RecoveryKind, RecoveryRecord
from ggshell.pipeline.capture.bounded.store import BoundedStore, ManifestPosition, StoreSettings
from ggshell.pipeline.capture.cache import TransactionCache
from ggshell.pipeline.capture.stream import Capture
from ggshell.record.transaction import Completed
from ggshell.types import Csn, CsnForm, LogPosition, TableName

HERE = MachineIdentity("north", "Linux", "1")


def never(code: str, text: str) -> None:
    raise AssertionError(f"{code} {text}")


def wanted(_: TableName) -> bool:
    return True


def names(found: RecoveryManifest) -> set[int]:
    return {item.xid & 0xFFFFFFFF for item in found.objects}


class Run:
    """Reads the example with Bounded Recovery at its default interval."""

    def __init__(self, folder: Path, disk: CrashingDisk, recorded: RecoveryRecord | None) -> None:
        settings = StoreSettings("BR1", Path("/BR/BR1"), 4 * 3600, HERE, "same", 1)
        self.cache = TransactionCache(1 << 20, folder)
        store = BoundedStore(settings, disk, NoDefinitions(), format_xid)
        self.bounded = BoundedRecovery(store, FakeClock())
        self.made: list[RecoveryManifest] = []
        start = LogPosition(0, 0, 0)
        if recorded is None:
            self.bounded.begin(0)
        else:
            started = self.bounded.start(recorded, RecoveryConditions(True, False, HERE, "same"), self.cache, 0)
            assert started.kind is RecoveryKind.BOUNDED
            assert started.manifest is not None
            start = started.manifest.restart_place
        rows = open_rows(f"redo://{folder}", start)
        self.log = RedoLog(rows, start, wanted, Definitions({}, lambda _: ()), never)
        self.log.pause_time = self.bounded.log_due
        if recorded is not None and self.bounded.last is not None:
            for item in self.bounded.last.objects:
                self.log.resume(item.xid, item.begin_place)
            self.log.expect_orphaned_rows((self.bounded.last.position, 1 << 62))
        self.start = start
        self.capture = Capture(self.log, self.cache, Completed(Csn(0, CsnForm.NUMBER)))

    def read_to_end(self) -> None:
        while not self.capture.drained:
            self.capture.read()
            self.bounded.see(self.log.first_time)
            if self.capture.handed_out and self.bounded.due(self.log.time):
                here = self.log.position(self.log.state.read)
                place = ManifestPosition(self.log.state.read, self.log.cursor, self.log.time, here, self.log.begin_of)
                self.made.append(self.bounded.checkpoint(self.cache, place))
            self.log.pause_time = self.bounded.log_due


@pytest.mark.slow
def test_the_example_of_the_manual_with_its_own_numbers(tmp_path: Path) -> None:
    write_figure(tmp_path / "log")
    disk = CrashingDisk(Fuse())
    first = Run(tmp_path / "log", disk, None)
    first.read_to_end()
    by_time = {each.position_time: each for each in first.made}
    at_n, next_one, last = (by_time[checkpoint_time(number)] for number in (0, 1, 3000))
    assert last.number - at_n.number >= 2999  # One interval has no record at all.
    # At n: T27 and T45 are in files, and T801 determines the restart position.
    assert names(at_n) == {27, 45}
    assert at_n.restart_name.endswith(".801")
    # At n + 1, T45 has a new file, and T27 keeps its file.
    assert {27, 45} <= names(next_one)
    files = [{item.xid & 0xFFFFFFFF: item.files[0].name for item in each.objects} for each in (at_n, next_one)]
    assert files[0][27] == files[1][27]
    assert files[0][45] != files[1][45]
    # At n + 3000: a recovery restores both and reads from the begin of T208412 on.
    assert names(last) == {27, 45}
    assert last.restart_name.endswith(".208412")
    oldest = min(item.begin for item in first.cache.open.values())
    restarted = Run(tmp_path / "log", disk, RecoveryRecord(first.log.state.read, oldest, 1))
    assert restarted.start == last.restart_place
    assert {xid & 0xFFFFFFFF for xid in restarted.cache.open} == {27, 45}
    restarted.read_to_end()
    assert sorted(xid & 0xFFFFFFFF for xid in restarted.cache.open) == [27, 45, 208_412, 208_863]
    assert sorted(item.count for item in restarted.cache.open.values()) == sorted(
        item.count for item in first.cache.open.values()
    )
