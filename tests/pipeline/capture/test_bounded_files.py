"""The files of Bounded Recovery: any damage is detected and leads to a normal recovery without loss of rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from pipeline.capture.list_log import Entry
from pipeline.capture.small_extract import FOLDER, HERE, SAME, Machine, SmallExtract, expected

from ggshell.errors import CaptureError, DiskError
from ggshell.pipeline.capture.bounded import manifest
from ggshell.pipeline.capture.bounded.manifest import RecoveryManifest
from ggshell.pipeline.capture.bounded.recovery import (
    RecoveryConditions,
    RecoveryKind,
    RecoveryRecord,
    RecoveryRefusal,
    decide,
)
from ggshell.pipeline.capture.bounded.store import STALE, SystemDisk

SECOND = 1_000_000
INTERVAL = 1200


def history() -> list[Entry]:
    """T1 is open from the begin on, the others are short; two of them, of one interval each, follow the last checkpoint."""
    found: list[Entry] = []

    def add(minute: int, kind: str, xid: int) -> None:
        number = len(found) + 1
        found.append(
            Entry(10 * number, (minute * 60 + 10_000) * SECOND, kind, xid, 3 * number, b"%04d of %d" % (number, xid))
        )

    add(0, "B", 1)
    for number in range(9):
        add(1 + number, "C", 1)
    for minute in range(10, 100, 5):
        add(minute, "B", minute)
        add(minute + 1, "C", minute)
        add(minute + 2, "K", minute)
    add(101, "B", 900)
    add(102, "C", 900)
    return found


def stopped(folder: Path) -> Machine:
    """A machine that has captured the history and stopped."""
    machine = Machine(folder, log=history(), interval=INTERVAL, purge=False, step_records=1)
    extract = SmallExtract(machine)
    while extract.turn():
        pass
    extract.save()
    assert extract.bounded.last is not None
    return machine


def recovers(machine: Machine) -> SmallExtract:
    """Restart, let everything commit, and compare the trail."""
    extract = SmallExtract(machine)
    number = len(machine.log) + 1
    for xid in (1, 900):
        end = Entry(10 * number, machine.log[-1].time + 60 * SECOND, "K", xid, 3 * number)
        machine.log.append(end)
        number += 1
    while extract.turn():
        pass
    extract.save()
    assert machine.trail == expected(machine.log, [])
    return extract


def objects(machine: Machine) -> list[str]:
    return [name for name in machine.disk.names(FOLDER) if name.startswith("PO")]


def test_a_large_transaction_is_stored_in_several_files_and_restored(tmp_path: Path) -> None:
    machine = stopped(tmp_path)
    assert len(objects(machine)) > 1
    assert recovers(machine).started.kind is RecoveryKind.BOUNDED


def test_damage_of_any_byte_of_an_object_is_detected(tmp_path: Path) -> None:
    size = len(stopped(tmp_path).disk.read(FOLDER / objects(stopped(tmp_path))[0]))
    for place in range(0, size, 7):
        machine = stopped(tmp_path)
        file = FOLDER / objects(machine)[0]
        content = bytearray(machine.disk.read(file))
        content[place] ^= 0x20
        machine.disk.damage(file, bytes(content))
        extract = recovers(machine)
        assert extract.started.kind is RecoveryKind.REREAD
        assert "checksum" in extract.started.failure


def test_a_missing_object_is_reported(tmp_path: Path) -> None:
    machine = stopped(tmp_path)
    machine.disk.damage(FOLDER / objects(machine)[-1], None)
    extract = recovers(machine)
    assert extract.started.kind is RecoveryKind.REREAD
    assert "is missing" in extract.started.failure
    assert extract.bounded.status == "ON"


def test_a_short_object_is_reported(tmp_path: Path) -> None:
    machine = stopped(tmp_path)
    file = FOLDER / objects(machine)[0]
    machine.disk.damage(file, machine.disk.read(file)[:-1])
    assert "bytes instead of" in recovers(machine).started.failure


def test_broffonfailure_leaves_bounded_recovery_off(tmp_path: Path) -> None:
    machine = stopped(tmp_path)
    machine.off_on_failure = True
    machine.disk.damage(FOLDER / objects(machine)[0], None)
    assert recovers(machine).bounded.status == "FAILED"


def test_a_damaged_newest_checkpoint_falls_back_to_the_previous_one(tmp_path: Path) -> None:
    """T1 has not changed since, so all objects of the previous checkpoint still exist."""
    machine = stopped(tmp_path)
    newest = max(name for name in machine.disk.names(FOLDER) if name.startswith("CP"))
    machine.disk.damage(FOLDER / newest, b"GGSBRCP 1 00000000\n{}")
    extract = recovers(machine)
    assert extract.started.kind is RecoveryKind.BOUNDED
    assert extract.started.manifest is not None
    assert extract.started.manifest.number == int(newest[-9:]) - 1


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (SAME._replace(identity=HERE._replace(machine="south")), "another machine (north, here south)"),
        (SAME._replace(identity=HERE._replace(version="2")), "another version of ggshell (1, here 2)"),
        (SAME._replace(fingerprint="other"), "the captured tables changed"),
        (SAME._replace(on=False), "BROFF"),
        (SAME._replace(reset=True), "BRRESET"),
    ],
)
def test_different_conditions_lead_to_a_normal_recovery(
    tmp_path: Path, changed: RecoveryConditions, words: str
) -> None:
    machine = stopped(tmp_path)
    machine.conditions = changed
    extract = recovers(machine)
    assert extract.started.kind is RecoveryKind.REREAD
    assert words in extract.started.reason


def test_the_kinds_of_recovery(tmp_path: Path) -> None:
    """Guarantees 1 to 4 of ``decide``, and an altered start point."""
    found = stopped(tmp_path).store().find()[0]
    assert found is not None
    end = found.position + 50
    assert decide(RecoveryRecord(end, end, 1), found, SAME).kind is RecoveryKind.NORMAL
    assert decide(RecoveryRecord(end, 10, 1), None, SAME).refusal is RecoveryRefusal.ABSENT
    assert decide(RecoveryRecord(end, found.restart, 1), found, SAME)[:2] == (RecoveryKind.REREAD, found.restart)
    plan = decide(RecoveryRecord(end, 10, 1), found, SAME)
    assert (plan.kind, plan.position, plan.manifest) == (RecoveryKind.BOUNDED, found.restart, found)
    assert decide(RecoveryRecord(end, 10, 2), found, SAME).refusal is RecoveryRefusal.RESET
    assert decide(RecoveryRecord(found.position - 1, 10, 1), found, SAME).refusal is RecoveryRefusal.RESET
    assert decide(RecoveryRecord(end, 10, 1), None, SAME, "damaged").refusal is RecoveryRefusal.FAILED


def test_a_manifest_is_read_as_written_or_refused(tmp_path: Path) -> None:
    found = stopped(tmp_path).store().find()[0]
    assert found is not None
    data = manifest.encode(found)
    read_back: RecoveryManifest = manifest.decode(data, "CP")
    assert read_back == found
    for place in range(0, len(data), 5):
        with pytest.raises(CaptureError):
            manifest.decode(data[:place], "CP")
        with pytest.raises(CaptureError):
            manifest.decode(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :], "CP")


def test_stale_files_are_kept_only_if_requested(tmp_path: Path) -> None:
    machine = stopped(tmp_path)
    for keep in (False, True):
        store = machine.store()
        store.settings = store.settings._replace(keep_stale=keep)
        extract = SmallExtract(machine)
        extract.bounded._store = store
        extract.cache.clear()
        extract.checkpoint()
        extract.checkpoint()
        stale = machine.disk.names(FOLDER / STALE)
        assert bool(stale) is keep
        assert len([name for name in machine.disk.names(FOLDER) if name.startswith("CP")]) == 2


def test_the_file_system_behaves_like_the_simulated_disk(tmp_path: Path) -> None:
    disk, folder = SystemDisk(), tmp_path / "BR" / "EXT1"
    assert disk.names(folder) == []
    disk.make_folder(folder)
    disk.write(folder / "a.new", [b"one ", b"two"], durable=True)
    disk.rename(folder / "a.new", folder / "a")
    disk.sync_folder(folder)
    assert (disk.names(folder), disk.read(folder / "a")) == (["a"], b"one two")
    disk.remove(folder / "a")
    disk.remove(folder / "a")
    with pytest.raises(DiskError, match="cannot read"):
        disk.read(folder / "a")
    with pytest.raises(DiskError, match="cannot write"):
        disk.write(tmp_path / "nowhere" / "a", [b""], durable=False)


def test_a_row_that_is_rolled_back_marks_its_transaction_as_changed(tmp_path: Path) -> None:
    """The only change of T1 between two checkpoints is the removal of a row; its files must reflect that."""
    machine = stopped(tmp_path)
    last = machine.log[-1]
    machine.log.append(Entry(last.position + 10, last.time + SECOND, "U", 1, last.csn + 1))
    extract = SmallExtract(machine)
    while extract.turn():
        pass
    extract.checkpoint()
    made = extract.bounded.last
    assert made is not None
    [saved] = made.objects
    assert saved.written == made.number
    machine.log.append(Entry(last.position + 20, last.time + 2 * SECOND, "B", 901, last.csn + 2))
    assert recovers(machine).started.kind is RecoveryKind.BOUNDED
