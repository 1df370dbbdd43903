"""Encrypted trails and FORMAT RELEASE, from the log to the target."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import until
from ways import EXT1, REP1, Way

from ggshell.clock import SystemClock
from ggshell.home.checkpoint import GroupKind
from ggshell.home.home import Home
from ggshell.home.wallet import Wallet
from ggshell.trail.fileheader import FileHeader
from ggshell.trail.name import TrailName
from ggshell.trail.opened import open_file
from ggshell.trail.reader import TrailReader

SECRET = "nobody may read this"


@pytest.fixture
def way(tmp_path: Path, north: str, south: str) -> Iterator[Way]:
    way = Way(tmp_path / "home", north, south)
    yield way
    way.close()


def trail(way: Way, name: str) -> TrailName:
    return TrailName.parse(f"./dirdat/{name}", way.home.root)


def header(way: Way, name: str, seqno: int = 0) -> FileHeader:
    file = open_file(trail(way, name), seqno)
    file.close()
    return file.header


def content(way: Way, name: str) -> bytes:
    return b"".join(path.read_bytes() for path in way.home.root.glob(f"dirdat/{name}0*"))


def extract(*lines: str) -> str:
    return "\n".join(["EXTRACT ext1", "USERIDALIAS north", *lines, "TABLE a.*;", ""])


def add_pump(way: Way, *lines: str) -> None:
    way.write("pump1", "\n".join(["EXTRACT pump1", *lines, "RMTTRAIL ./dirdat/pa", "TABLE a.*;", ""]))
    way.run(
        "ADD EXTRACT pump1, EXTTRAILSOURCE ./dirdat/ea",
        "ADD RMTTRAIL ./dirdat/pa, EXTRACT pump1",
        "DELETE REPLICAT rep1 !",
        "DBLOGIN USERIDALIAS south",
        "ADD REPLICAT rep1, EXTTRAIL ./dirdat/pa, CHECKPOINTTABLE b.checks",
    )


def test_an_encrypted_trail_is_carried_on_encrypted_and_applied(way: Way) -> None:
    way.write("ext1", extract("ENCRYPTTRAIL AES192", "EXTTRAIL ./dirdat/ea"))
    way.run("CREATE WALLET", "ADD MASTERKEY")
    way.add()
    add_pump(way)
    way.start("ext1", "pump1", "rep1")
    way.in_north(f"INSERT INTO a.items VALUES (1, '{SECRET}', 1)")
    way.arrives(1)
    way.same()
    assert SECRET.encode() not in content(way, "ea") + content(way, "pa")
    for name in ("ea", "pa"):
        seal = header(way, name, trail(way, name).sequences()[-1]).seal
        assert seal is not None
        assert seal.protection.algorithm == "AES192"
    last = trail(way, "pa").sequences()[-1]  # the first file is an empty one where the pump was there before ea
    assert header(way, "pa", last).uris == (header(way, "ea").uri,)


def test_a_pump_with_decrypttrail_writes_in_the_clear(way: Way) -> None:
    way.write("ext1", extract("ENCRYPTTRAIL", "EXTTRAIL ./dirdat/ea"))
    way.run("CREATE WALLET", "ADD MASTERKEY")
    way.add()
    add_pump(way, "DECRYPTTRAIL")
    way.start("ext1", "pump1", "rep1")
    way.in_north(f"INSERT INTO a.items VALUES (1, '{SECRET}', 1)")
    way.arrives(1)
    assert SECRET.encode() not in content(way, "ea")
    assert SECRET.encode() in content(way, "pa")


def test_a_trail_that_is_no_longer_encrypted_is_named_in_report_and_log(way: Way) -> None:
    way.write("ext1", extract("ENCRYPTTRAIL AES256", "EXTTRAIL ./dirdat/ea"))
    way.run("CREATE WALLET", "ADD MASTERKEY")
    way.add()
    way.start("ext1")
    until("the trail is there", lambda: bool(trail(way, "ea").sequences()))
    way.run("STOP ext1")
    bared, idle = "was encrypted, but is now written unencrypted", "ENCRYPTTRAIL has no effect"
    assert bared not in way.home.event_log.read_text()
    assert idle not in way.home.event_log.read_text()
    way.write("ext1", extract("EXTTRAIL ./dirdat/ea", "ENCRYPTTRAIL AES256"))
    way.start("ext1")
    until("it is reported", lambda: bared in way.home.report("EXT1").read_text())
    assert idle in way.home.report("EXT1").read_text()
    assert bared in way.home.event_log.read_text()
    assert idle in way.home.event_log.read_text()


def test_a_renewed_key_begins_a_new_file_at_the_next_start(way: Way) -> None:
    way.write("ext1", extract("ENCRYPTTRAIL AES256", "EXTTRAIL ./dirdat/ea"))
    way.run("CREATE WALLET", "ADD MASTERKEY")
    way.add()
    way.start()
    way.in_north("INSERT INTO a.items VALUES (1, 'one', 1)")
    way.arrives(1)
    way.run("RENEW MASTERKEY", "STOP EXTRACT ext1", "START EXTRACT ext1")
    way.in_north("INSERT INTO a.items VALUES (2, 'two', 2)")
    way.arrives(2)
    seals = [header(way, "ea", seqno).seal for seqno in trail(way, "ea").sequences()]
    assert [seal.protection.key_version for seal in seals if seal is not None] == [1, 2]


def test_without_a_key_extract_and_replicat_say_what_to_do(way: Way) -> None:
    way.write("ext1", extract("ENCRYPTTRAIL", "EXTTRAIL ./dirdat/ea"))
    way.add()
    way.start("ext1")
    assert "ADD MASTERKEY" in way.ends(EXT1) or "CREATE WALLET" in way.ends(EXT1)
    way.run("CREATE WALLET", "ADD MASTERKEY", "START ext1")
    way.in_north("INSERT INTO a.items VALUES (1, 'one', 1)")
    reader = TrailReader(trail(way, "ea"))
    until("a row is in the trail", lambda: reader.read() is not None)
    reader.close()
    for path in (way.home.root / "dirwlt").iterdir():
        path.unlink()
    way.start("rep1")
    assert "wallet" in way.ends(REP1)


def test_a_key_of_the_key_file_serves_by_its_name(way: Way) -> None:
    (way.home.root / "ENCKEYS").write_text(f"shopkey 0x{'1F' * 32}\n")
    way.write("ext1", extract("ENCRYPTTRAIL AES256, KEYNAME shopkey", "EXTTRAIL ./dirdat/ea"))
    way.add()
    way.start()
    way.in_north(f"INSERT INTO a.items VALUES (1, '{SECRET}', 1)")
    way.arrives(1)
    assert SECRET.encode() not in content(way, "ea")


def test_format_release_sets_the_format_and_a_pump_keeps_it(way: Way) -> None:
    way.write("ext1", extract("EXTTRAIL ./dirdat/ea, FORMAT RELEASE 12.3"))
    way.add()
    add_pump(way)
    way.start("ext1", "pump1", "rep1")
    way.in_north("INSERT INTO a.items VALUES (1, 'one', 1)")
    way.arrives(1)
    assert [header(way, name, trail(way, name).sequences()[-1]).compatibility for name in ("ea", "pa")] == [6, 6]
    way.write("ext1", extract("EXTTRAIL ./dirdat/ea"))
    way.run("STOP ext1", "START ext1")
    way.in_north("INSERT INTO a.items VALUES (2, 'two', 2)")
    way.arrives(2)
    assert header(way, "ea", 1).compatibility == header(way, "pa", trail(way, "pa").sequences()[-1]).compatibility == 7


def test_a_release_that_is_not_known_is_refused_with_those_that_are(way: Way) -> None:
    way.write("ext1", extract("EXTTRAIL ./dirdat/ea, FORMAT RELEASE 11.2"))
    way.add()
    way.start("ext1")
    assert "FORMAT RELEASE 11.2: not a supported release (12.1" in way.ends(EXT1)


def test_another_wallet_in_the_place_of_a_lost_one_is_refused_and_no_row_is_stuck(way: Way) -> None:
    way.write("ext1", extract("ENCRYPTTRAIL AES256", "EXTTRAIL ./dirdat/ea"))
    way.run("CREATE WALLET", "ADD MASTERKEY")
    way.add()
    way.start()
    way.in_north("INSERT INTO a.items VALUES (1, 'one', 1)")
    way.arrives(1)
    way.run("STOP rep1")
    way.in_north("INSERT INTO a.items VALUES (2, 'two', 2)")
    until("the row is in the trail", lambda: "two" in way.run("TRAIL SQL 'SELECT columns FROM trail' FROM ./dirdat/ea"))
    wallet, lost = way.home.root / "dirwlt", way.home.root / "lost"
    wallet.rename(lost)
    refusal = way.run("CREATE WALLET", fails=True)
    assert "restore dirwlt from a backup" in refusal
    assert "CREATE WALLET ANOTHER" in refusal
    other = Home(way.home.root / "other")
    Wallet(other).create()
    Wallet(other).add(SystemClock())
    (other.root / "dirwlt").rename(wallet)
    way.run("SEND EXTRACT ext1, ROLLOVER")
    way.in_north("INSERT INTO a.items VALUES (3, 'three', 3)")
    said = way.ends(EXT1)
    assert "GGS-00802" in said
    assert "but the wallet in" in said
    way.start()
    for group in (EXT1, REP1):
        assert "restore dirwlt from" in way.ends(group)
    assert len(trail(way, "ea").sequences()) == 1
    shutil.rmtree(wallet)
    lost.rename(wallet)
    way.start()
    way.arrives(3)
    way.same()


def test_files_of_two_wallets_are_read_after_a_merge(way: Way) -> None:
    way.write("ext1", extract("ENCRYPTTRAIL AES256", "EXTTRAIL ./dirdat/ea"))
    way.run("CREATE WALLET", "ADD MASTERKEY")
    way.add()
    add_pump(way)
    way.start("ext1")
    way.in_north("INSERT INTO a.items VALUES (1, 'one', 1)")
    reader = TrailReader(trail(way, "ea"))
    until("a row is in the trail", lambda: reader.read() is not None)
    reader.close()
    way.run("STOP ext1")
    wallet, first, second = (way.home.root / name for name in ("dirwlt", "first", "second"))
    wallet.rename(first)
    way.run("CREATE WALLET ANOTHER", "ADD MASTERKEY", "START ext1")
    way.in_north("INSERT INTO a.items VALUES (2, 'two', 2)")
    way.start("pump1")
    assert "restore dirwlt from a backup" in way.ends(("PUMP1", GroupKind.EXTRACT))
    wallet.rename(second)
    first.rename(wallet)
    way.run("STOP ext1", "MERGE WALLET ./second", "START ext1", "START pump1", "START rep1")
    way.in_north("INSERT INTO a.items VALUES (3, 'three', 3)")
    way.arrives(3)
    way.same()
    seals = [header(way, "ea", seqno).seal for seqno in trail(way, "ea").sequences()]
    wallets = [seal.protection.wallet for seal in seals if seal is not None]
    assert wallets[0] == wallets[2] != wallets[1]
