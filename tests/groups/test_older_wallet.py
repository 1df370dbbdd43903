"""An older copy of the home's wallet instead of the newest: a version number never stands for two keys."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pipelines import EXT1, REP1, Pipeline
from processes import until

from ggshell.home.identity import FILE
from ggshell.home.process_file import ProcessState, state_of
from ggshell.trail.name import TrailName
from ggshell.trail.opened import open_file
from ggshell.trail.reader import TrailReader
from ggshell.trail.sealing import Protection
from ggshell.types import TrailPosition

LACKS = "lacks version 2 of master key OGG_DEFAULT_MASTERKEY"


@pytest.fixture
def pipeline(tmp_path: Path, north: str, south: str) -> Iterator[Pipeline]:
    """A home whose trail has a file for each of two key versions; ``older`` has the wallet from before RENEW MASTERKEY."""
    pipeline = Pipeline(tmp_path / "home", north, south)
    pipeline.write("ext1", "EXTRACT ext1\nUSERIDALIAS north\nENCRYPTTRAIL AES256\nEXTTRAIL ./dirdat/ea\nTABLE a.*;\n")
    pipeline.run("CREATE WALLET", "ADD MASTERKEY")
    pipeline.add()
    pipeline.start()
    pipeline.in_north("INSERT INTO a.items VALUES (1, 'one', 1)")
    pipeline.wait_for_rows(1)
    shutil.copytree(pipeline.home.root / "dirwlt", pipeline.home.root / "older")
    pipeline.run("STOP rep1", "RENEW MASTERKEY", "STOP ext1", "START ext1")
    pipeline.in_north("INSERT INTO a.items VALUES (2, 'two', 2)")
    until(
        "a file of version 2 exists", lambda: len(TrailName.parse("./dirdat/ea", pipeline.home.root).sequences()) == 2
    )
    reader = TrailReader(TrailName.parse("./dirdat/ea", pipeline.home.root), TrailPosition(1, 0))
    until("the row is in the new file", lambda: reader.read() is not None)
    reader.close()
    pipeline.run("STOP ext1")
    yield pipeline
    pipeline.close()


def protections(pipeline: Pipeline) -> list[Protection]:
    found = []
    name = TrailName.parse("./dirdat/ea", pipeline.home.root)
    for seqno in name.sequences():
        file = open_file(name, seqno)
        file.close()
        assert file.header.seal is not None
        found.append(file.header.seal.protection)
    return found


def wallet_folders(pipeline: Pipeline) -> tuple[Path, Path, Path]:
    return pipeline.home.root / "dirwlt", pipeline.home.root / "older", pipeline.home.root / "newest"


def restore_older(pipeline: Pipeline) -> None:
    wallet, older, newest = wallet_folders(pipeline)
    wallet.rename(newest)
    shutil.copytree(older, wallet)


def restore_newest(pipeline: Pipeline) -> None:
    wallet, _, newest = wallet_folders(pipeline)
    shutil.rmtree(wallet)
    newest.rename(wallet)


def test_an_older_copy_of_the_wallet_is_refused_by_extract_replicat_and_renew(pipeline: Pipeline) -> None:
    restore_older(pipeline)
    pipeline.start()
    refusal = pipeline.abended_report(EXT1)
    assert "GGS-00808" in refusal
    assert LACKS in refusal
    assert "restore the newest dirwlt, or add its keys with MERGE WALLET" in refusal
    assert "version 2 of master key OGG_DEFAULT_MASTERKEY is not in wallet" in pipeline.abended_report(REP1)
    for statement in ("RENEW MASTERKEY", "OPEN WALLET", "DELETE MASTERKEY VERSION 1"):
        assert LACKS in pipeline.run(statement, fails=True)
    assert "Missing: version 2" in pipeline.run("INFO MASTERKEY")
    assert [each.key_version for each in protections(pipeline)] == [1, 2]
    assert "Merged 1 key version" in pipeline.run("MERGE WALLET ./newest")
    assert "renewed to version 3" in pipeline.run("RENEW MASTERKEY")
    pipeline.start()
    pipeline.in_north("INSERT INTO a.items VALUES (3, 'three', 3)")
    pipeline.wait_for_rows(3)
    pipeline.assert_same_rows()
    assert [each.key_version for each in protections(pipeline)] == [1, 2, 3]


def test_a_home_without_recorded_keys_detects_an_older_copy_by_its_trails(pipeline: Pipeline) -> None:
    memory = pipeline.home.root / FILE
    document = json.loads(memory.read_text())
    del document["keys"], document["checksum"]
    memory.write_text(json.dumps(document))
    restore_older(pipeline)
    assert LACKS in pipeline.run("RENEW MASTERKEY", fails=True)
    pipeline.start("ext1")
    assert "encrypted with key OGG_DEFAULT_MASTERKEY, version 2 of wallet" in pipeline.abended_report(EXT1)
    assert [each.key_version for each in protections(pipeline)] == [1, 2]
    restore_newest(pipeline)
    pipeline.start()
    pipeline.wait_for_rows(2)
    pipeline.assert_same_rows()


def test_a_running_extract_begins_no_file_with_an_older_copy(pipeline: Pipeline) -> None:
    pipeline.start()
    pipeline.wait_for_rows(2)
    restore_older(pipeline)
    pipeline.run("SEND EXTRACT ext1, ROLLOVER")
    pipeline.in_north("INSERT INTO a.items VALUES (3, 'three', 3)")
    assert LACKS in pipeline.abended_report(EXT1)
    restore_newest(pipeline)
    pipeline.start("ext1")
    pipeline.wait_for_rows(3)
    pipeline.assert_same_rows()


def test_without_the_newest_copy_only_the_files_of_its_versions_are_lost(pipeline: Pipeline) -> None:
    wallet, older, _ = wallet_folders(pipeline)
    shutil.rmtree(wallet)
    shutil.copytree(older, wallet)
    pipeline.start("ext1")
    assert "If it is permanently lost, move dirwlt away, then run CREATE WALLET ANOTHER" in pipeline.abended_report(
        EXT1
    )
    shutil.rmtree(wallet)
    pipeline.run("CREATE WALLET ANOTHER", "ADD MASTERKEY", "MERGE WALLET ./older", "START ext1", "START rep1")
    assert "encrypted with key OGG_DEFAULT_MASTERKEY, version 2" in pipeline.abended_report(REP1)
    pipeline.in_north("INSERT INTO a.items VALUES (3, 'three', 3)")
    until("Extract begins a new file", lambda: len(TrailName.parse("./dirdat/ea", pipeline.home.root).sequences()) == 3)
    pipeline.run("DBLOGIN USERIDALIAS south", "ALTER REPLICAT rep1, EXTSEQNO 2, EXTRBA 0", "START rep1")
    pipeline.wait_for_rows(2)
    found = protections(pipeline)
    assert [each.key_version for each in found] == [1, 2, 1]
    assert found[2].wallet != found[0].wallet == found[1].wallet
    assert pipeline.in_south("SELECT id FROM b.items ORDER BY id") == [(1,), (3,)]
    assert state_of(pipeline.home.process(*REP1))[0] is ProcessState.RUNNING


def test_purge_wallet_is_refused_while_a_trail_file_needs_the_version(pipeline: Pipeline) -> None:
    assert "PURGE WALLET will be refused: 1 trail file is encrypted" in pipeline.run("DELETE MASTERKEY VERSION 1")
    first = pipeline.home.root / "dirdat" / "ea000000000"
    refusal = pipeline.run("PURGE WALLET", fails=True)
    assert "no version is purged: 1 trail file is encrypted with a version that is marked as deleted" in refusal
    assert f"{first} (version 1, which REPLICAT REP1 still needs)" in refusal
    pipeline.start("rep1")
    pipeline.wait_for_rows(2)
    pipeline.run("STOP rep1")
    assert "still need" not in pipeline.run("PURGE WALLET", fails=True).partition("ea000000000")[2].partition(")")[0]
    pipeline.run("PURGE EXTTRAIL ./dirdat/ea")
    assert not first.exists()
    assert "Purged 1 version" in pipeline.run("PURGE WALLET")
    pipeline.start()
    pipeline.in_north("INSERT INTO a.items VALUES (3, 'three', 3)")
    pipeline.wait_for_rows(3)


def test_a_replicat_at_the_end_of_a_file_whose_key_is_missing_does_not_start(pipeline: Pipeline) -> None:
    pipeline.start("rep1")
    pipeline.wait_for_rows(2)
    pipeline.run("STOP rep1")
    restore_older(pipeline)
    pipeline.start("rep1")
    assert "version 2 of master key OGG_DEFAULT_MASTERKEY is not in wallet" in pipeline.abended_report(REP1)
    restore_newest(pipeline)
    pipeline.start()
    pipeline.in_north("INSERT INTO a.items VALUES (3, 'three', 3)")
    pipeline.wait_for_rows(3)
