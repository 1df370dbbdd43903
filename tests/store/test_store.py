"""The home: checkpoints survive and damage is named, credentials stay secret, the catalog waits its turn."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from ggshell.clock import FakeClock
from ggshell.errors import ConflictError, NotFoundError, StoreError
from ggshell.store import checkpoint as checkpoints
from ggshell.store.catalog import Catalog
from ggshell.store.checkpoint import Checkpoint, GroupType, ReadCheckpoint, SourceType, WriteCheckpoint
from ggshell.store.credential import CredentialStore, Login
from ggshell.store.events import EventLog, Severity
from ggshell.store.home import Home
from ggshell.types import LogPosition, TrailPosition

CHECKPOINT = Checkpoint(
    "EXT1",
    GroupType.EXTRACT,
    ReadCheckpoint(SourceType.LOG, current=LogPosition(1, 2, 3)),
    (WriteCheckpoint("./dirdat/ea", current=TrailPosition(4, 5)),),
    options={"slot": "ggs_ext1"},
)


def test_a_checkpoint_comes_back_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "EXT1.cpe"
    checkpoints.save(path, CHECKPOINT)
    assert checkpoints.load(path) == CHECKPOINT


def test_every_flipped_byte_of_a_checkpoint_is_found_and_the_previous_one_is_there(tmp_path: Path) -> None:
    path = tmp_path / "EXT1.cpe"
    checkpoints.save(path, CHECKPOINT)
    checkpoints.save(path, CHECKPOINT._replace(latest_xid="7"))
    content = path.read_bytes()
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 0x55
        path.write_bytes(damaged)
        with pytest.raises(StoreError, match="previous"):
            checkpoints.load(path)
    assert checkpoints.load(path.with_name("EXT1.cpe.previous")) == CHECKPOINT


def test_a_damaged_group_does_not_hide_the_others(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.ensure()
    for group in ("EXT1", "EXT2"):
        checkpoints.save(home.checkpoint(group, GroupType.EXTRACT), CHECKPOINT._replace(group=group))
    home.checkpoint("EXT1", GroupType.EXTRACT).write_bytes(b"junk")
    entries = home.groups()
    assert [(entry.group, entry.checkpoint is None, entry.error is None) for entry in entries] == [
        ("EXT1", True, False),
        ("EXT2", False, True),
    ]


def test_credentials_are_encrypted_and_belong_to_the_owner(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.ensure()
    store = CredentialStore(home)
    store.create()
    store.add("north", "u@h:1/d", "topsecret")
    assert store.resolve("north") == Login("u@h:1/d", "topsecret")
    files = list((tmp_path / "dircrd").iterdir())
    assert all(b"topsecret" not in file.read_bytes() for file in files)
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    with pytest.raises(ConflictError):
        store.add("north", "x", "y")
    with pytest.raises(NotFoundError, match="INFO CREDENTIALSTORE"):
        store.resolve("south")


def test_a_damaged_credential_store_is_named(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.ensure()
    CredentialStore(home).add("a", "u", "p")
    path = tmp_path / "dircrd" / "credentials.ggs"
    path.write_bytes(path.read_bytes()[:-1] + b"\0")
    with pytest.raises(StoreError, match="damaged"):
        CredentialStore(home).resolve("a")


def _note(root: Path, number: int) -> None:
    for turn in range(5):
        Catalog(Home(root)).save_trandata("d", f"o{number}", f"t{turn}", "default", ["id"])


def test_two_processes_share_the_catalog_by_turns(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.ensure()
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_note, args=(tmp_path, number)) for number in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0]
    assert len(Catalog(home).trandata("d")) == 10


def test_a_damaged_catalog_is_named_with_the_way_out(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.ensure()
    home.catalog.write_bytes(b"no database at all" * 1000)
    with pytest.raises(StoreError, match="rebuilt"):
        Catalog(home).trandata("d")


def test_an_event_is_one_line(tmp_path: Path) -> None:
    log = EventLog(Home(tmp_path), FakeClock())
    log.write(Severity.ERROR, "OGG-01668", "ggshell Capture", "two\nlines")
    assert log.read().count("\n") == 1
    assert "  ERROR   OGG-01668  ggshell Capture:  two lines" in log.read()
