"""Which files a trail path names, on this machine and on other file systems."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from both_engines import local_engine
from command_line import run_ggshell
from object_stores import Bucket
from trail_samples import NOTES, insert, random_transactions, trail_in, write_trail

from ggshell import store_paths
from ggshell.errors import DiskError, NotFoundError, UsageError
from ggshell.query import paths
from ggshell.query.queries import counts, gaps
from ggshell.query.queries.trails import trails
from ggshell.query.splits import find_definitions
from ggshell.query.trail_read import TrailRead, files_of, plan
from ggshell.store_paths import StoreFile, path_of
from ggshell.trail import file_index
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
def stored(bucket: Bucket, trail: TrailName) -> str:
    """The same trail in an object store, without the file that is not part of it."""
    return bucket.upload(trail.folder, "home/dirdat")


@pytest.mark.parametrize("path", ["{0}/ea", "{0}/ea*", "{0}", "{0}/e?0*", "{0}/ea000000001"])
def test_a_trail_in_an_object_store_is_read_where_it_is(trail: TrailName, stored: str, path: str) -> None:
    local = paths.trail_files(path.format(trail.folder))
    remote = paths.trail_files(path.format(stored))
    assert remote == [file.replace(str(trail.folder), stored) for file in local]
    assert rows(remote) == [(row[0].replace(str(trail.folder), stored), *row[1:]) for row in rows(local)]
    assert paths.total_bytes(remote) == 0  # Nothing is fetched before the query is planned.


def rows(files: list[str]) -> list[tuple[Any, ...]]:
    read = TrailRead(("trail", "seqno", "rba", "csn", "xid", "owner", "table", "columns"))
    return [
        (row["trail"], row["rba"], row["csn"], row["xid"], row["table"], sorted(dict(row["columns"]).items()))
        for split in plan(files, 1500)
        for batch in read.batches(split)
        for row in batch.to_pylist()
    ]


@pytest.mark.parametrize("without", ["", ".ea.durable", ".index"])
def test_queries_of_a_trail_in_an_object_store_give_the_same_rows(
    trail: TrailName, bucket: Bucket, without: str
) -> None:
    """Also without the durable mark or without indexes."""
    for path in trail.folder.iterdir():
        if without and path.name.endswith(without):
            path.unlink()
    stored = bucket.upload(trail.folder, "t")
    here, there = (trails([f"{folder}/ea"], trail.folder, local_engine()) for folder in (trail.folder, stored))
    assert counts.count(there).rows == counts.count(here).rows
    assert counts.busiest_minutes(there, 3).rows == counts.busiest_minutes(here, 3).rows
    assert [each.check for each in gaps.gaps(there)] == [each.check for each in gaps.gaps(here)]
    assert {str(each) for each in find_definitions(map(path_of, there.files), "hr.employees")} == {
        str(each) for each in find_definitions(map(path_of, here.files), "hr.employees")
    }


def test_a_statement_takes_the_location_of_a_trail_in_an_object_store(trail: TrailName, stored: str) -> None:
    counted = []
    for location in (f"{trail.folder}/ea", f"{stored}/ea", f'"{stored}/e*"'):
        statement = f"TRAIL COUNT FROM {location}, BY TABLE"
        ended = run_ggshell("--home", trail.folder.parent, "--engine", "local", "--format", "csv", "-c", statement)
        assert ended.returncode == 0, ended.stderr
        counted.append(ended.stdout)
    assert counted[1:] == [counted[0]] * 2
    refused = run_ggshell("--home", trail.folder.parent, "-c", f"ADD EXTTRAIL {stored}/ea, EXTRACT ext1")
    assert "a trail name cannot contain ://" in refused.stderr


def test_planning_and_a_part_of_an_object_read_only_ranges_of_it(
    tmp_path: Path, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = trail_in(tmp_path, "eb")
    monkeypatch.setattr(file_index, "SPACING", 50_000)
    write_trail(name, [[insert(NOTES, id=str(n), body="b" * 8000)] for n in range(140)], max_bytes=1 << 20)
    files = paths.trail_files(f"{bucket.upload(name.folder, 't')}/eb")
    monkeypatch.setattr(store_paths, "_READ_AHEAD", 64 << 10)
    read = list[int]()
    original = StoreFile.read

    def counted(file: StoreFile, size: int, place: int) -> bytes:
        before = (file._base, len(file._data))
        found = original(file, size, place)
        if (file._base, len(file._data)) != before:
            read.append(len(file._data))
        return found

    monkeypatch.setattr(StoreFile, "read", counted)
    size = sum(path_of(file).stat().st_size for file in files)
    splits = plan(files, 300_000)
    assert len(splits) > 2
    assert sum(read) < size / 2
    read.clear()
    last = next(split for split in splits if split.first)
    assert sum(batch.num_rows for batch in TrailRead(("rba",)).batches(last)) > 0
    assert 0 < sum(read) < 900_000


def test_a_location_that_is_not_a_trail_or_not_there_is_reported(bucket: Bucket, stored: str) -> None:
    with pytest.raises(NotFoundError, match="is not a trail"):
        paths.trail_files(f"{stored}/zz")
    with pytest.raises(NotFoundError, match="does not exist"):
        paths.trail_files("s3://no-such-bucket/dirdat/ea")
    with pytest.raises(UsageError, match="nosuch://somewhere/dirdat is not a valid location"):
        paths.trail_files("nosuch://somewhere/dirdat/ea")


def test_an_object_that_is_removed_after_planning_is_an_error_that_names_it(bucket: Bucket, stored: str) -> None:
    splits = plan(paths.trail_files(f"{stored}/ea"))
    place = bucket.place("home/dirdat/ea000000001")
    place.system.delete_file(place.path)
    with pytest.raises(NotFoundError, match="home/dirdat/ea000000001 does not exist"):
        list(TrailRead(("rba",)).batches(splits[1]))


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
