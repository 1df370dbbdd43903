"""A new kind of database needs its own folder and one line in the registry: an in-memory database, from DBLOGIN to INFO."""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli.shell import Shell
from pipeline.capture.list_log import Entry

import ggshell.connectors
from ggshell.connectors import registry
from ggshell.groups import extract, replicat
from ggshell.record.image import encode_image

MOMENT = 1_700_000_000_000_000
LOGIN = "DBLOGIN SOURCEDB toy://shop"


@pytest.fixture
def toy(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    """A shell that knows the toy database through its folder and its line in the registry. Processes run in this process."""
    folders = [*ggshell.connectors.__path__, str(Path(__file__).parents[1])]
    monkeypatch.setattr(ggshell.connectors, "__path__", folders)
    monkeypatch.setattr(registry, "_KINDS", {"toy://": "toy", **registry._KINDS})
    handlers = [(number, signal.getsignal(number)) for number in (signal.SIGTERM, signal.SIGINT)]
    yield Shell(tmp_path / "home", capsys, monkeypatch)
    for number, handler in handlers:
        signal.signal(number, handler)
    gc.unfreeze()


def _write(log: list[Entry], first: int, *values: bytes) -> None:
    """Append one transaction for each value."""
    for number, value in enumerate(values, first):
        row = encode_image([(0, value)])
        for step, kind in enumerate("BCK"):
            log.append(Entry(number * 3 + step, MOMENT, kind, number, number * 10 if kind == "K" else 0, row))


@pytest.mark.slow
def test_a_kind_with_a_folder_and_a_registry_line_replicates(toy: Shell) -> None:
    added = toy.batch(
        LOGIN,
        "ADD CHECKPOINTTABLE shop.checks",
        "ADD EXTRACT ext1, TRANLOG, BEGIN NOW",
        "ADD EXTTRAIL ./dirdat/ea, EXTRACT ext1",
        "ADD REPLICAT rep1, EXTTRAIL ./dirdat/ea, CHECKPOINTTABLE shop.checks",
    )
    assert (added.code, added.err) == (0, ""), added.out
    assert "Capture begins at the first record." in added.out
    from ggshell.connectors.toy.connector import CHECKPOINTS, LOG, ROWS  # type: ignore[import-not-found]

    parameters = {
        "ext1": "EXTRACT ext1\nSOURCEDB toy://shop\nEND RUNTIME\nEXTTRAIL ./dirdat/ea\nTABLE shop.*;\n",
        "rep1": "REPLICAT rep1\nTARGETDB toy://shop\nEND RUNTIME\nMAP shop.*, TARGET shop.*;\n",
    }
    for name, text in parameters.items():
        toy.home.parameters(name).write_text(text)
    for first, values in ((1, (b"one", b"two")), (3, (b"three",))):  # The second run continues after the first.
        _write(LOG, first, *values)
        assert extract.run(toy.home, "EXT1") == 0, toy.home.report("EXT1").read_text()
        assert replicat.run(toy.home, "REP1") == 0, toy.home.report("REP1").read_text()
    assert sorted(ROWS) == [(b"one",), (b"three",), (b"two",)]
    ((row,),) = [list(rows.values()) for rows in CHECKPOINTS.values()]
    assert row.csn is not None
    assert row.csn.value == 30
    shown = toy.batch(LOGIN, "INFO EXTRACT ext1, DETAIL", "INFO REPLICAT rep1", "INFO CHECKPOINTTABLE shop.checks")
    assert "Toy Log" in shown.out
    assert "CSN 30" in shown.out


@pytest.mark.parametrize("statement", ["ADD TRANDATA shop.t", "ADD HEARTBEATTABLE", "REGISTER EXTRACT ext1 DATABASE"])
def test_a_feature_that_a_kind_does_not_implement_is_refused_with_the_name_of_the_kind(
    toy: Shell, statement: str
) -> None:
    toy.home.ensure()
    toy.home.globals.write_text("GGSCHEMA admin\n")
    answer = toy.batch(LOGIN, statement)
    assert answer.code != 0
    assert "Toy does not support" in answer.out + answer.err
