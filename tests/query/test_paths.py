"""Which files a trail path names, on this machine and on other file systems."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs
from trail_samples import random_transactions, trail_in, write_trail

from ggshell.errors import DiskError, NotFoundError, UsageError
from ggshell.query import paths
from ggshell.query.trail_read import TrailRead, files_of, plan
from ggshell.trail.durable import MarkReader
from ggshell.trail.name import TrailName


@pytest.fixture
def trail(tmp_path: Path) -> TrailName:
    name = trail_in(tmp_path)
    write_trail(name, random_transactions(1, 40), max_bytes=4000)
    (name.folder / "notes.txt").write_text("no trail")
    return name


def count(files: list[str]) -> int:
    return sum(batch.num_rows for split in plan(files) for batch in TrailRead(("rba",)).batches(split))


def test_a_path_names_its_files_in_order(trail: TrailName, tmp_path: Path) -> None:
    every = [str(trail.file(seqno)) for seqno in trail.sequences()]
    assert len(every) > 3
    for text in ("./dirdat/ea", "dirdat", "dirdat/e?*", "dirdat/ea0*"):
        assert paths.trail_files(text, tmp_path) == every
    assert paths.trail_files(f"file://{trail}") == every
    assert files_of({"path": f"{trail}, {every[1]}"}) == every
    assert paths.trail_files(every[2]) == [every[2]]
    assert paths.total_bytes(every) == sum(Path(file).stat().st_size for file in every)


@pytest.mark.parametrize("text", ["dirdat/zz", "nowhere", "dirdat/zz*", "dirdat/ea000000999"])
def test_a_path_that_is_not_a_trail_is_reported(trail: TrailName, tmp_path: Path, text: str) -> None:
    with pytest.raises(NotFoundError, match="is not a trail"):
        paths.trail_files(text, tmp_path)


def test_another_file_is_not_a_trail_file(trail: TrailName) -> None:
    with pytest.raises(UsageError, match=r"notes\.txt is not a trail file"):
        paths.trail_files(str(trail.folder / "notes.txt"))
    with pytest.raises(UsageError, match="ggtrail requires a path"):
        files_of({})


@pytest.mark.parametrize("path", ["dirdat", "dirdat/*", "dirdat/zz", "dirdat/zz000000000"])
def test_a_file_that_only_has_the_name_of_a_trail_file_is_reported(trail: TrailName, tmp_path: Path, path: str) -> None:
    (trail.folder / "zz000000000").write_text("<html>")
    with pytest.raises(UsageError, match="zz000000000 has the name of a trail file but is not one"):
        paths.trail_files(path, tmp_path)
    assert paths.trail_files("dirdat/ea", tmp_path)
    (trail.folder / "zz000000000").write_bytes(b"")  # The header of this file is still incomplete.
    assert len(paths.trail_files("dirdat", tmp_path)) == len(trail.sequences()) + 1


@pytest.fixture
def _remote(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """``hdfs://there/…`` maps to this machine's file system through Arrow; copies go to a folder of the test."""

    def file_system(text: str) -> tuple[Any, str]:
        return fs.LocalFileSystem(), text.removeprefix("hdfs://there")

    monkeypatch.setattr(paths, "_file_system", file_system)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "copies"))
    (tmp_path / "copies").mkdir()


@pytest.mark.usefixtures("_remote")
@pytest.mark.parametrize("path", ["{0}", "{0}*", "{1}", "{1}/e?0*", "{0}000000001"])
def test_a_trail_on_another_file_system_is_read_from_copies(trail: TrailName, path: str) -> None:
    local = paths.trail_files(path.format(trail, trail.folder))
    remote = paths.trail_files("hdfs://there" + path.format(trail, trail.folder))
    assert remote == [f"hdfs://there{file}" for file in local]
    assert count(remote) == count(local) > 0
    assert paths.total_bytes(remote) == 0  # Nothing is fetched before the query is planned.


@pytest.mark.usefixtures("_remote")
def test_a_copy_is_refreshed_when_the_file_has_grown(trail: TrailName) -> None:
    before = count(paths.trail_files(f"hdfs://there{trail}"))
    copy = paths.local_copy(f"hdfs://there{trail.file(0)}")
    first = copy.stat().st_ino
    assert paths.local_copy(f"hdfs://there{trail.file(0)}").stat().st_ino == first
    write_trail(trail, random_transactions(2, 10), max_bytes=4000, first_csn=41)
    assert count(paths.trail_files(f"hdfs://there{trail}")) > before
    assert paths.local_copy(f"hdfs://there{trail.file(0)}").stat().st_ino == first
    mark = MarkReader(TrailName(copy.parent, "ea")).read()
    assert mark is not None
    assert mark == MarkReader(trail).read()


@pytest.mark.usefixtures("_remote")
def test_a_remote_path_that_is_not_a_trail_is_reported(trail: TrailName) -> None:
    with pytest.raises(NotFoundError, match="is not a trail"):
        paths.trail_files(f"hdfs://there{trail.folder}/zz")
    with pytest.raises(NotFoundError, match="cannot read hdfs://there/no/such/folder"):
        paths.trail_files("hdfs://there/no/such/folder/ea")


def test_a_file_system_that_cannot_be_reached_is_reported() -> None:
    with pytest.raises(NotFoundError, match="cannot reach nosuch://somewhere/dirdat"):
        paths.trail_files("nosuch://somewhere/dirdat/ea")


def test_a_file_that_cannot_be_opened_is_reported(trail: TrailName) -> None:
    trail.file(900_000).symlink_to(trail.folder / "gone")
    with pytest.raises(NotFoundError, match="ea000900000 cannot be read: No such file"):
        paths.trail_files(str(trail))
    trail.file(900_000).unlink()
    trail.file(900_000).mkdir()
    with pytest.raises(NotFoundError, match="ea000900000 cannot be read: Is a directory"):
        paths.trail_files(str(trail))


def test_a_durable_mark_that_cannot_be_opened_is_reported(trail: TrailName) -> None:
    mark = trail.folder / ".ea.durable"
    mark.unlink()
    mark.symlink_to(mark.name)  # A link to itself: it cannot be opened, not even by root.
    with pytest.raises(DiskError, match=r"ea\.durable cannot be opened"):
        MarkReader(trail).read()
