"""The catalog: what it records, how it waits for other processes, and what repairs it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import checkpoints
import duckdb
import pytest
from processes import until

from ggshell.errors import StoreError
from ggshell.home.catalog import VERSION, Catalog, PathNote, TrailNote, TrandataNote, _turns
from ggshell.home.credential import Credential
from ggshell.home.home import Home

HOLDER = """
import sys, duckdb
with duckdb.connect(sys.argv[1]) as connection:
    connection.execute("SELECT 1")
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def holder(home: Home) -> Iterator[subprocess.Popen[str]]:
    """Another process that has the catalog open until its standard input ends."""
    Catalog(home).groups()
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(home.catalog)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_group_is_recorded_with_its_trails(home: Home) -> None:
    catalog = Catalog(home)
    catalog.save_group(checkpoints.extract("EXT1", "./dirdat/ea"))
    catalog.save_group(checkpoints.extract("EXT1", "./dirdat/eb"))
    assert [(note.name, note.type, note.source) for note in catalog.groups()] == [("EXT1", "EXTRACT", "TRANLOG")]
    assert catalog.trails() == [TrailNote("./dirdat/eb", "EXT1", False, 500)]


def test_a_group_can_be_recorded_twice(home: Home) -> None:
    catalog = Catalog(home)
    for _ in range(2):
        catalog.save_group(checkpoints.extract("EXT1"))
    assert len(catalog.groups()) == len(catalog.trails()) == 1


def test_a_path_is_recorded_and_deleted(home: Home) -> None:
    catalog = Catalog(home)
    catalog.save_group(checkpoints.path("DP1", "./dirdat/ea", "./dirdat/pa"))
    assert catalog.paths() == [PathNote("DP1", "./dirdat/ea", "./dirdat/pa")]
    catalog.delete_group("DP1")
    assert catalog.paths() == []
    assert catalog.groups() == []
    assert catalog.trails() == []


def test_trandata_is_recorded_with_its_key(home: Home) -> None:
    catalog = Catalog(home)
    notes = (
        TrandataNote("north", "shop", "items", "key", ("id", "part")),
        TrandataNote("north", "shop", "Odd", "full", ()),
    )
    catalog.save_trandata(notes)
    assert catalog.trandata("north") == [("shop", "Odd"), ("shop", "items")]
    assert catalog.trandata_notes("north")[1] == notes[0]
    catalog.delete_trandata("north", "shop", "Odd")
    assert catalog.trandata("north") == [("shop", "items")]
    assert catalog.trandata("south") == []


def test_aliases_are_replaced_each_time(home: Home) -> None:
    catalog = Catalog(home)
    entry = Credential("OracleGoldenGate", "north", "ogg@localhost/north")
    catalog.save_credentials(lambda: [entry])
    catalog.save_credentials(lambda: [entry])
    assert catalog.credentials() == [entry]


@pytest.mark.slow
def test_the_catalog_waits_for_another_command(home: Home, holder: subprocess.Popen[str]) -> None:
    pauses: list[float] = []

    def end_the_holder(seconds: float) -> None:
        pauses.append(seconds)
        assert holder.stdin is not None
        if len(pauses) == 3:
            holder.stdin.close()
            holder.wait()

    Catalog(home, wait=end_the_holder).save_group(checkpoints.extract("EXT1"))
    assert len(pauses) == 3
    assert [note.name for note in Catalog(home).groups()] == ["EXT1"]


@pytest.mark.slow
def test_the_process_that_locks_the_catalog_is_reported(home: Home, holder: subprocess.Popen[str]) -> None:
    pauses: list[float] = []
    with pytest.raises(StoreError, match=f"process {holder.pid} ") as caught:
        Catalog(home, wait=pauses.append).groups()
    assert caught.value.code == "GGS-00304"
    assert 4 < sum(pauses) < 7


@pytest.mark.slow
def test_concurrent_processes_lose_no_entry(home: Home) -> None:
    code = """
import sys
from pathlib import Path
from ggshell.home.catalog import Catalog, TrandataNote
from ggshell.home.home import Home
for number in range(12):
    Catalog(Home(Path(sys.argv[1]))).save_trandata([TrandataNote("north", sys.argv[2], str(number), "key", ())])
"""
    processes = [subprocess.Popen([sys.executable, "-c", code, str(home.root), owner]) for owner in ("a", "b")]
    assert [process.wait(30) for process in processes] == [0, 0]
    assert len(Catalog(home).trandata("north")) == 24


@pytest.mark.slow
def test_concurrent_threads_of_one_process_lose_no_entry(home: Home) -> None:
    Catalog(home).groups()

    def save(number: int) -> None:
        catalog = Catalog(home)
        catalog.save_group(checkpoints.extract(f"W{number}"))
        catalog.save_credentials(lambda: [Credential("Y", f"y{number}", "u")])
        if number % 2:
            catalog.delete_group(f"W{number}")

    with ThreadPoolExecutor(24) as pool:
        list(pool.map(save, range(24)))
    assert {note.name for note in Catalog(home).groups()} == {f"W{number}" for number in range(0, 24, 2)}
    assert len(Catalog(home).credentials()) == 1


def test_a_thread_waits_for_another_for_a_bounded_time(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ggshell.home.catalog.PATIENCE_SECONDS", 0.1)
    opened, release = Event(), Event()

    def read() -> list[Credential]:
        opened.set()
        release.wait(30)
        return []

    with ThreadPoolExecutor(1) as pool:
        holder = pool.submit(Catalog(home).save_credentials, read)
        assert opened.wait(30)
        with pytest.raises(StoreError, match="still locked by another command") as caught:
            Catalog(home).groups()
        release.set()
        holder.result(30)
    assert caught.value.code == "GGS-00304"
    assert Catalog(home).groups() == []


def test_another_connection_of_the_process_is_awaited(home: Home) -> None:
    Catalog(home).groups()
    other = duckdb.connect()
    other.execute(f"ATTACH '{home.catalog}'")
    pauses: list[float] = []

    def close(seconds: float) -> None:
        pauses.append(seconds)
        other.close()

    Catalog(home, wait=close).save_group(checkpoints.extract("EXT1"))
    assert len(pauses) == 1


@pytest.mark.parametrize("content", [b"this is no catalog" * 1000, b"", b"\0" * 50_000])
def test_a_damaged_catalog_is_reported_with_the_remedy(home: Home, content: bytes) -> None:
    checkpoints.save(home, checkpoints.extract("EXT1"))
    home.catalog.write_bytes(content)
    with pytest.raises(StoreError, match=home.catalog.name) as caught:
        Catalog(home).groups()
    assert caught.value.code == "GGS-00305"
    assert "move" in caught.value.hint


@pytest.mark.slow
def test_flipped_bytes_are_reported_as_damage_and_not_as_a_lock(home: Home) -> None:
    catalog = Catalog(home)
    for number in range(12):
        catalog.save_trandata([TrandataNote("north", "shop", f"table{number}", "key", ("id",))])
    data = bytearray(home.catalog.read_bytes())
    for place in range(12_288, len(data), 97):
        data[place] ^= 0x55
    home.catalog.write_bytes(data)
    pauses: list[float] = []
    with pytest.raises(StoreError) as caught:
        Catalog(home, wait=pauses.append).trandata("north")
    assert caught.value.code == "GGS-00305"
    assert pauses == []


def test_a_missing_catalog_is_rebuilt_from_the_checkpoint_files(home: Home) -> None:
    checkpoints.save(home, checkpoints.extract("EXT1"))
    checkpoints.save(home, checkpoints.path("DP1"))
    (home.root / "dirchk" / "BAD.cpr").write_bytes(b"damaged")
    catalog = Catalog(home)
    assert [note.name for note in catalog.groups()] == ["DP1", "EXT1"]
    assert [note.name for note in catalog.trails()] == ["./dirdat/ea", "./dirdat/pa"]


def test_rebuild_keeps_the_damaged_file(home: Home) -> None:
    checkpoints.save(home, checkpoints.extract("EXT1"))
    home.catalog.write_bytes(b"damaged" * 3000)
    kept = Catalog(home).rebuild()
    assert kept is not None
    assert kept.read_bytes().startswith(b"damaged")
    assert [note.name for note in Catalog(home).groups()] == ["EXT1"]


def test_rebuild_creates_a_missing_catalog(home: Home) -> None:
    assert Catalog(home).rebuild() is None
    assert home.catalog.exists()


def test_a_newer_catalog_is_refused(home: Home) -> None:
    Catalog(home).execute("INSERT INTO catalog_version VALUES (?)", [VERSION + 1])
    with pytest.raises(StoreError, match="newer program"):
        Catalog(home).groups()


def test_a_failed_statement_is_rolled_back(home: Home) -> None:
    catalog = Catalog(home)
    twice = checkpoints.extract("EXT1")._replace(write=checkpoints.extract("EXT1").write * 2)
    with pytest.raises(StoreError):
        catalog.save_group(twice)
    assert catalog.groups() == []


@pytest.mark.slow
def test_rebuild_waits_for_another_process(home: Home, holder: subprocess.Popen[str]) -> None:
    """Regression: what another command was writing went into the old catalog."""
    with pytest.raises(StoreError) as caught:
        Catalog(home, wait=lambda _: None).rebuild()
    assert (caught.value.code, home.catalog.exists()) == ("GGS-00304", True)
    assert Catalog(home, wait=lambda _: holder.communicate()).rebuild() is not None


def test_rebuild_waits_for_other_threads(home: Home) -> None:
    began = Event()

    def read() -> list[Credential]:
        began.set()
        until("rebuild waits", lambda: len(_turns(home.catalog)._threads) == 2)
        assert home.catalog.exists()
        return []

    with ThreadPoolExecutor(2) as pool:
        saving = pool.submit(Catalog(home).save_credentials, read)
        assert began.wait(30)
        assert pool.submit(Catalog(home).rebuild).result(30) is not None
        saving.result(30)
