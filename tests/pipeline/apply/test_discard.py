"""The discard file: its layout, appending, its size limit."""

from __future__ import annotations

from pathlib import Path

import pytest

from ggshell.clock import FakeClock
from ggshell.errors import DiskError
from ggshell.pipeline.apply.discard import Discarded, DiscardFile
from ggshell.types import TableName, TrailPosition

ONE = Discarded(
    TableName("hr", "a"),
    TableName("x", "b"),
    "update",
    TrailPosition(4, 1234),
    [("id", "1")],
    [("id", "2"), ("v", "NULL")],
    "no row was found to change",
)


def test_an_operation_is_enclosed_in_asterisks(tmp_path: Path) -> None:
    file = DiscardFile(tmp_path / "deep" / "r.dsc", "R", FakeClock())
    file.write(ONE)
    lines = file.path.read_text().splitlines()
    assert lines[0].startswith("ggshell Delivery process started, group R discard file opened: 2023-11-")
    assert lines[2:] == [
        "no row was found to change",
        "Operation failed at seqno 4 rba 1234",
        "Problem replicating hr.a to x.b",
        "Error occurred with update record (target format)...",
        "*",
        "id (before) = 1",
        "id = 2",
        "v = NULL",
        "*",
    ]


def test_append_keeps_and_purge_replaces_the_existing_content(tmp_path: Path) -> None:
    path = tmp_path / "r.dsc"
    for append, expected in ((True, 1), (True, 2), (False, 1)):
        DiscardFile(path, "R", FakeClock(), append=append).write(ONE)
        assert path.read_text().count("Operation failed") == expected


def test_a_full_or_unwritable_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "r.dsc"
    DiscardFile(path, "R", FakeClock()).write(ONE)
    with pytest.raises(DiskError, match="full"):
        DiscardFile(path, "R", FakeClock(), megabytes=0).write(ONE)
    with pytest.raises(DiskError, match="cannot write"):
        DiscardFile(path / "below", "R", FakeClock()).write(ONE)


def test_the_limit_counts_bytes_and_not_characters(tmp_path: Path) -> None:
    path = tmp_path / "r.dsc"
    DiscardFile(path, "R", FakeClock()).write(ONE)
    wide = ONE._replace(after=[("v", "€" * (400 << 10))])
    with pytest.raises(DiskError, match="full"):
        DiscardFile(path, "R", FakeClock(), megabytes=1).write(wide)
    assert path.stat().st_size < 1 << 20


def test_a_rolled_file_is_kept_under_a_number_and_the_next_one_has_its_own_header(tmp_path: Path) -> None:
    discard = DiscardFile(tmp_path / "rep1.dsc", "REP1", FakeClock())
    for number in range(12):
        (tmp_path / "rep1.dsc").write_text(f"file {number}")
        discard.roll()
    assert [(tmp_path / f"rep1{age}.dsc").read_text() for age in range(10)] == [f"file {11 - age}" for age in range(10)]
    assert len(list(tmp_path.iterdir())) == 10
    discard.roll()
    assert (tmp_path / "rep10.dsc").read_text() == "file 11"
