"""Queries of encrypted trails: the wallet decrypts them in both engines and in the data source; counts need no key."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from both_engines import local_engine, spark_engine
from trail_samples import random_transactions, trail_in, write_trail

from ggshell.clock import FakeClock
from ggshell.errors import GgsError
from ggshell.home.home import Home
from ggshell.home.wallet import Wallet
from ggshell.query.queries.counts import count
from ggshell.query.queries.gaps import TrailState, gaps
from ggshell.query.queries.trails import Engine, TrailSpan, trails
from ggshell.query.session import WarmSession
from ggshell.query.trail_read import HomeKeys
from ggshell.trail.sealing import Protection
from ggshell.trail.writer import WriterOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = "SELECT seqno, rba, op, length, columns, before FROM trail ORDER BY seqno, rba"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a wallet, an encrypted trail, and a comma in its name."""
    home = Home(tmp_path / "one, two")
    wallet = Wallet(home)
    wallet.create()
    wallet.add(FakeClock())
    options = WriterOptions(protection=Protection("AES256", wallet.name, 1), keys=HomeKeys(str(home.root)))
    write_trail(trail_in(home.root), random_transactions(5, 30), max_bytes=9_000, options=options)
    write_trail(trail_in(home.root, "ec"), random_transactions(5, 30), max_bytes=9_000)
    return home.root


def engines(warm: WarmSession) -> list[Engine]:
    return [local_engine(), spark_engine(warm)]


def test_both_engines_decrypt_with_the_wallet_and_count_without_it(home: Path, warm: WarmSession) -> None:
    for engine in engines(warm):
        sealed = trails(["./dirdat/ea"], home, engine, keys=HomeKeys(str(home)))
        clear = trails(["./dirdat/ec"], home, engine)
        places = slice(2, None)  # Encrypted rows are longer in the file.
        assert [row[places] for row in sealed.ask("q", ROWS).rows] == [row[places] for row in clear.ask("q", ROWS).rows]
        shutil.rmtree(home / "dirwlt")
        assert count(sealed, "", TrailSpan()).rows == count(clear, "", TrailSpan()).rows
        with pytest.raises(GgsError, match=r"ea00000000\d is encrypted with key OGG_DEFAULT_MASTERKEY, version 1"):
            sealed.ask("q", ROWS)
        Wallet(Home(home)).create(another=True)
        Wallet(Home(home)).add(FakeClock())
        with pytest.raises(GgsError, match="but the wallet here is"):
            sealed.ask("q", ROWS)
        shutil.rmtree(home / "dirwlt")
        shutil.copytree(home / "kept", home / "dirwlt")


@pytest.fixture(autouse=True)
def kept(home: Path) -> None:
    shutil.copytree(home / "dirwlt", home / "kept")


def test_the_data_source_decrypts_with_the_wallet_of_a_home(home: Path, spark: SparkSession) -> None:
    files = json.dumps([str(trail_in(home).file(0))])
    reader = spark.read.format("ggtrail").option("files", files)
    own = reader.option("home", str(home)).option("table", "hr.employees").load()
    assert own.where("id = 1").count() >= 1
    with pytest.raises(Exception, match="is encrypted with key"):
        spark.read.format("ggtrail").option("files", files).load().collect()


def test_trail_gaps_names_the_files_that_this_wallet_cannot_decrypt(home: Path) -> None:
    """Finding 63: it reported ok although some of the files had been written with another wallet."""
    queried = trails(["./dirdat/ea"], home, local_engine(), keys=HomeKeys(str(home)))
    (found,) = [each for each in gaps(queried) if each.check == "keys"]
    assert found.state is TrailState.GOOD
    shutil.rmtree(home / "dirwlt")
    Wallet(Home(home)).create(another=True)
    Wallet(Home(home)).add(FakeClock())
    closed = [each for each in gaps(queried) if each.check == "keys"]
    assert {each.state for each in closed} == {TrailState.GAP}
    assert [each.seqno for each in closed] == trail_in(home).sequences()
    clear = gaps(trails(["./dirdat/ec"], home, local_engine()))
    assert "keys" not in [each.check for each in clear]
