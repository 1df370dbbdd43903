"""Encrypted trails and FORMAT RELEASE, from capture to apply."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pipelines import EXT1, REP1, Pipeline
from processes import until

from ggshell.clock import SystemClock
from ggshell.home.checkpoint import GroupKind
from ggshell.home.home import Home
from ggshell.home.wallet import Wallet
from ggshell.trail.fileheader import FileHeader
from ggshell.trail.name import TrailName
from ggshell.trail.opened import open_file
from ggshell.trail.reader import TrailReader
from ggshell.types import TrailPosition

SECRET = "nobody may read this"


@pytest.fixture
def pipeline(tmp_path: Path, north: str, south: str) -> Iterator[Pipeline]:
    pipeline = Pipeline(tmp_path / "home", north, south)
    yield pipeline
    pipeline.close()


def trail(pipeline: Pipeline, name: str) -> TrailName:
    return TrailName.parse(f"./dirdat/{name}", pipeline.home.root)


def header(pipeline: Pipeline, name: str, seqno: int = 0) -> FileHeader:
    file = open_file(trail(pipeline, name), seqno)
    file.close()
    return file.header


def content(pipeline: Pipeline, name: str) -> bytes:
    return b"".join(path.read_bytes() for path in pipeline.home.root.glob(f"dirdat/{name}0*"))


def wait_for_a_record(pipeline: Pipeline, seqno: int) -> None:
    """Wait until the file with this sequence number of the trail ``ea`` holds a record."""
    name = trail(pipeline, "ea")
    until(f"file {seqno} exists", lambda: seqno in name.sequences())
    reader = TrailReader(name, TrailPosition(seqno, 0))
    until(f"file {seqno} holds a record", lambda: reader.read() is not None)
    reader.close()


def extract(*lines: str) -> str:
    return "\n".join(["EXTRACT ext1", "USERIDALIAS north", *lines, "TABLE a.*;", ""])


def add_pump(pipeline: Pipeline, *lines: str) -> None:
    pipeline.write("pump1", "\n".join(["EXTRACT pump1", *lines, "RMTTRAIL ./dirdat/pa", "TABLE a.*;", ""]))
    pipeline.run(
        "ADD EXTRACT pump1, EXTTRAILSOURCE ./dirdat/ea",
        "ADD RMTTRAIL ./dirdat/pa, EXTRACT pump1",
        "DELETE REPLICAT rep1 !",
        "DBLOGIN USERIDALIAS south",
        "ADD REPLICAT rep1, EXTTRAIL ./dirdat/pa, CHECKPOINTTABLE b.checks",
    )


def test_a_pump_keeps_a_trail_encrypted_and_replicat_applies_it(pipeline: Pipeline) -> None:
    pipeline.write("ext1", extract("ENCRYPTTRAIL AES192", "EXTTRAIL ./dirdat/ea"))
    pipeline.run("CREATE WALLET", "ADD MASTERKEY")
    pipeline.add()
    add_pump(pipeline)
    pipeline.start("ext1", "pump1", "rep1")
    pipeline.in_north(f"INSERT INTO a.items VALUES (1, '{SECRET}', 1)")
    pipeline.wait_for_rows(1)
    pipeline.assert_same_rows()
    assert SECRET.encode() not in content(pipeline, "ea") + content(pipeline, "pa")
    for name in ("ea", "pa"):
        seal = header(pipeline, name, trail(pipeline, name).sequences()[-1]).seal
        assert seal is not None
        assert seal.protection.algorithm == "AES192"
    last = trail(pipeline, "pa").sequences()[
        -1
    ]  # the first file is empty if the pump started before ./dirdat/ea existed
    assert header(pipeline, "pa", last).uris == (header(pipeline, "ea").uri,)


def test_a_pump_with_decrypttrail_writes_an_unencrypted_trail(pipeline: Pipeline) -> None:
    pipeline.write("ext1", extract("ENCRYPTTRAIL", "EXTTRAIL ./dirdat/ea"))
    pipeline.run("CREATE WALLET", "ADD MASTERKEY")
    pipeline.add()
    add_pump(pipeline, "DECRYPTTRAIL")
    pipeline.start("ext1", "pump1", "rep1")
    pipeline.in_north(f"INSERT INTO a.items VALUES (1, '{SECRET}', 1)")
    pipeline.wait_for_rows(1)
    assert SECRET.encode() not in content(pipeline, "ea")
    assert SECRET.encode() in content(pipeline, "pa")


def test_a_trail_that_is_no_longer_encrypted_is_reported(pipeline: Pipeline) -> None:
    pipeline.write("ext1", extract("ENCRYPTTRAIL AES256", "EXTTRAIL ./dirdat/ea"))
    pipeline.run("CREATE WALLET", "ADD MASTERKEY")
    pipeline.add()
    pipeline.start("ext1")
    until("the trail exists", lambda: bool(trail(pipeline, "ea").sequences()))
    pipeline.run("STOP ext1")
    unencrypted, idle = "was encrypted, but is now written unencrypted", "ENCRYPTTRAIL has no effect"
    assert unencrypted not in pipeline.home.event_log.read_text()
    assert idle not in pipeline.home.event_log.read_text()
    pipeline.write("ext1", extract("EXTTRAIL ./dirdat/ea", "ENCRYPTTRAIL AES256"))
    pipeline.start("ext1")
    until("the change is reported", lambda: unencrypted in pipeline.home.report("EXT1").read_text())
    assert idle in pipeline.home.report("EXT1").read_text()
    assert unencrypted in pipeline.home.event_log.read_text()
    assert idle in pipeline.home.event_log.read_text()


def test_a_renewed_key_begins_a_new_file_at_the_next_start(pipeline: Pipeline) -> None:
    pipeline.write("ext1", extract("ENCRYPTTRAIL AES256", "EXTTRAIL ./dirdat/ea"))
    pipeline.run("CREATE WALLET", "ADD MASTERKEY")
    pipeline.add()
    pipeline.start()
    pipeline.in_north("INSERT INTO a.items VALUES (1, 'one', 1)")
    pipeline.wait_for_rows(1)
    pipeline.run("RENEW MASTERKEY", "STOP EXTRACT ext1", "START EXTRACT ext1")
    pipeline.in_north("INSERT INTO a.items VALUES (2, 'two', 2)")
    pipeline.wait_for_rows(2)
    seals = [header(pipeline, "ea", seqno).seal for seqno in trail(pipeline, "ea").sequences()]
    assert [seal.protection.key_version for seal in seals if seal is not None] == [1, 2]


def test_extract_and_replicat_report_a_missing_key_with_the_remedy(pipeline: Pipeline) -> None:
    pipeline.write("ext1", extract("ENCRYPTTRAIL", "EXTTRAIL ./dirdat/ea"))
    pipeline.add()
    pipeline.start("ext1")
    assert "ADD MASTERKEY" in pipeline.abended_report(EXT1) or "CREATE WALLET" in pipeline.abended_report(EXT1)
    pipeline.run("CREATE WALLET", "ADD MASTERKEY", "START ext1")
    pipeline.in_north("INSERT INTO a.items VALUES (1, 'one', 1)")
    reader = TrailReader(trail(pipeline, "ea"))
    until("a row is in the trail", lambda: reader.read() is not None)
    reader.close()
    for path in (pipeline.home.root / "dirwlt").iterdir():
        path.unlink()
    pipeline.start("rep1")
    assert "wallet" in pipeline.abended_report(REP1)


def test_a_key_of_the_key_file_is_used_by_name(pipeline: Pipeline) -> None:
    (pipeline.home.root / "ENCKEYS").write_text(f"shopkey 0x{'1F' * 32}\n")
    pipeline.write("ext1", extract("ENCRYPTTRAIL AES256, KEYNAME shopkey", "EXTTRAIL ./dirdat/ea"))
    pipeline.add()
    pipeline.start()
    pipeline.in_north(f"INSERT INTO a.items VALUES (1, '{SECRET}', 1)")
    pipeline.wait_for_rows(1)
    assert SECRET.encode() not in content(pipeline, "ea")


def test_format_release_sets_the_format_and_a_pump_keeps_it(pipeline: Pipeline) -> None:
    pipeline.write("ext1", extract("EXTTRAIL ./dirdat/ea, FORMAT RELEASE 12.3"))
    pipeline.add()
    add_pump(pipeline)
    pipeline.start("ext1", "pump1", "rep1")
    pipeline.in_north("INSERT INTO a.items VALUES (1, 'one', 1)")
    pipeline.wait_for_rows(1)
    assert [header(pipeline, name, trail(pipeline, name).sequences()[-1]).compatibility for name in ("ea", "pa")] == [
        6,
        6,
    ]
    pipeline.write("ext1", extract("EXTTRAIL ./dirdat/ea"))
    pipeline.run("STOP ext1", "START ext1")
    pipeline.in_north("INSERT INTO a.items VALUES (2, 'two', 2)")
    pipeline.wait_for_rows(2)
    assert (
        header(pipeline, "ea", 1).compatibility
        == header(pipeline, "pa", trail(pipeline, "pa").sequences()[-1]).compatibility
        == 7
    )


def test_an_unknown_release_is_refused_with_the_known_ones(pipeline: Pipeline) -> None:
    pipeline.write("ext1", extract("EXTTRAIL ./dirdat/ea, FORMAT RELEASE 11.2"))
    pipeline.add()
    pipeline.start("ext1")
    assert "FORMAT RELEASE 11.2: not a supported release (12.1" in pipeline.abended_report(EXT1)


def test_another_wallet_in_place_of_a_lost_one_is_refused_and_no_row_is_lost(pipeline: Pipeline) -> None:
    pipeline.write("ext1", extract("ENCRYPTTRAIL AES256", "EXTTRAIL ./dirdat/ea"))
    pipeline.run("CREATE WALLET", "ADD MASTERKEY")
    pipeline.add()
    pipeline.start()
    pipeline.in_north("INSERT INTO a.items VALUES (1, 'one', 1)")
    pipeline.wait_for_rows(1)
    pipeline.run("STOP rep1")
    pipeline.in_north("INSERT INTO a.items VALUES (2, 'two', 2)")
    until(
        "the row is in the trail",
        lambda: "two" in pipeline.run("TRAIL SQL 'SELECT columns FROM trail' FROM ./dirdat/ea"),
    )
    wallet, lost = pipeline.home.root / "dirwlt", pipeline.home.root / "lost"
    wallet.rename(lost)
    refusal = pipeline.run("CREATE WALLET", fails=True)
    assert "restore dirwlt from a backup" in refusal
    assert "CREATE WALLET ANOTHER" in refusal
    other = Home(pipeline.home.root / "other")
    Wallet(other).create()
    Wallet(other).add(SystemClock())
    (other.root / "dirwlt").rename(wallet)
    pipeline.run("SEND EXTRACT ext1, ROLLOVER")
    pipeline.in_north("INSERT INTO a.items VALUES (3, 'three', 3)")
    report = pipeline.abended_report(EXT1)
    assert "GGS-00802" in report
    assert "but the wallet in" in report
    pipeline.start()
    for group in (EXT1, REP1):
        assert "restore dirwlt from" in pipeline.abended_report(group)
    assert len(trail(pipeline, "ea").sequences()) == 1
    shutil.rmtree(wallet)
    lost.rename(wallet)
    pipeline.start()
    pipeline.wait_for_rows(3)
    pipeline.assert_same_rows()


def test_files_of_two_wallets_are_read_after_a_merge(pipeline: Pipeline) -> None:
    pipeline.write("ext1", extract("ENCRYPTTRAIL AES256", "EXTTRAIL ./dirdat/ea"))
    pipeline.run("CREATE WALLET", "ADD MASTERKEY")
    pipeline.add()
    add_pump(pipeline)
    pipeline.start("ext1")
    pipeline.in_north("INSERT INTO a.items VALUES (1, 'one', 1)")
    wait_for_a_record(pipeline, seqno=0)
    pipeline.run("STOP ext1")
    wallet, first, second = (pipeline.home.root / name for name in ("dirwlt", "first", "second"))
    wallet.rename(first)
    pipeline.run("CREATE WALLET ANOTHER", "ADD MASTERKEY", "START ext1")
    pipeline.in_north("INSERT INTO a.items VALUES (2, 'two', 2)")
    wait_for_a_record(pipeline, seqno=1)
    pipeline.run("STOP ext1")
    pipeline.start("pump1")
    assert "restore dirwlt from a backup" in pipeline.abended_report(("PUMP1", GroupKind.EXTRACT))
    wallet.rename(second)
    first.rename(wallet)
    pipeline.run("MERGE WALLET ./second", "START ext1", "START pump1", "START rep1")
    pipeline.in_north("INSERT INTO a.items VALUES (3, 'three', 3)")
    pipeline.wait_for_rows(3)
    pipeline.assert_same_rows()
    seals = [header(pipeline, "ea", seqno).seal for seqno in trail(pipeline, "ea").sequences()]
    wallets = [seal.protection.wallet for seal in seals if seal is not None]
    assert wallets[0] == wallets[2] != wallets[1]
