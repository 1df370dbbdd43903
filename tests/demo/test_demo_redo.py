"""scripts/redo: the example of the manual, reproducible workloads, and errors of the command line."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from ggshell.connectors.oracle_redo.definitions import Definitions
from ggshell.connectors.oracle_redo.folder import open_rows
from ggshell.connectors.oracle_redo.log import RedoLog
from ggshell.demo import redo_cli
from ggshell.demo.redo_figure import Figure, checkpoint_time
from ggshell.parameters.loading import load_extract
from ggshell.pipeline.capture.cache import TransactionCache
from ggshell.types import LogPosition

BEGINNING = LogPosition(0, 0, 0)
HOURS = 3_600_000_000


def test_the_example_has_the_transactions_of_the_manual_at_each_checkpoint(tmp_path: Path) -> None:
    figure = Figure(tmp_path)
    log = RedoLog(
        open_rows(f"redo://{tmp_path}", BEGINNING),
        BEGINNING,
        lambda _: True,
        Definitions({}, lambda _: ("id",)),
        lambda code, text: pytest.fail(f"{code} {text}"),
    )
    cache = TransactionCache(64 << 20, tmp_path / "spill")

    def open_at(number: int, interval: int = 4) -> tuple[list[int], list[int]]:
        """The open transactions, and those that have been open for longer than an interval."""
        while log.feed(cache, 10_000) or not log.quiet:
            continue
        found = {item.xid & 0xFFFFFFFF: item.begin_time for item in cache.open.values()}
        long = [xid for xid, begin in found.items() if checkpoint_time(number) - begin > interval * HOURS]
        assert log.time == checkpoint_time(number)
        return list(found), long

    figure.until_n()
    assert open_at(0) == ([27, 45, 801, 950, 1024], [27, 45])
    rows = {item.xid & 0xFFFFFFFF: item.count for item in cache.open.values()}
    figure.until_n_plus_1()
    assert open_at(1) == ([27, 45, 801, 950, 1024], [27, 45, 801, 950, 1024])
    changed = [xid for item in cache.open.values() if item.count > rows[xid := item.xid & 0xFFFFFFFF]]
    assert changed == [45]
    figure.until_n_plus_3000()
    assert open_at(3000) == ([27, 45, 208_412, 208_863], [27, 45])
    log.close()


def make_log(folder: Path, *more: str) -> str:
    assert redo_cli.main(["make", str(folder), "--span", "5", "--rate", "20", *more]) == 0
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(folder.glob("*.jsonl")))).hexdigest()


def test_the_same_seed_makes_the_same_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert make_log(tmp_path / "a") == make_log(tmp_path / "b") != make_log(tmp_path / "c", "--seed", "2")
    assert redo_cli.main(["make", str(tmp_path / "a")]) == 2
    assert "already contains redo" in capsys.readouterr().err


def test_threads_and_gzip_create_their_files(tmp_path: Path) -> None:
    make_log(tmp_path / "a", "--threads", "2", "--gzip", "--segment-bytes", "20000")
    names = {path.name.split(".", 1)[1] for path in (tmp_path / "a").glob("redo_*")}
    assert names == {"jsonl", "jsonl.gz"}
    assert {path.name.split("_")[1] for path in (tmp_path / "a").glob("redo_*")} == {"1", "2"}


@pytest.mark.parametrize("kind", ["figure", "make"])
@pytest.mark.slow
def test_the_printed_parameters_read_the_log(tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert redo_cli.main(["--home", str(tmp_path / "home"), kind, str(tmp_path / "log")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"DBLOGIN SOURCEDB redo://{tmp_path}/log"
    group = lines[-1].split()[-1]
    found = load_extract(tmp_path / "home" / "dirprm" / f"{group}.prm")
    assert found.login.source == f"redo://{tmp_path}/log"


@pytest.mark.parametrize(
    ("given", "wrong"),
    [(["--span", "soon"], "soon is not a valid interval"), (["--rollbacks", "200%"], "200% is not a valid share")],
)
def test_invalid_arguments_are_refused(
    tmp_path: Path, given: list[str], wrong: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        redo_cli.main(["make", str(tmp_path), *given])
    assert wrong in capsys.readouterr().err
