"""Small files are compacted; a row is not rewritten by every maintenance."""

from __future__ import annotations

from ggshell.connectors.lake.compaction import bins
from ggshell.connectors.lake.file_plan import DataFile

TARGET = 128 << 20


def file(name: str, megabytes: float, deleted: int = 0, partition: str = "") -> DataFile:
    return DataFile(name, 1000, int(megabytes * (1 << 20)), deleted, partition)


def names(files: list[DataFile]) -> list[list[str]]:
    return [sorted(each.path for each in found) for found in bins(files, TARGET)]


def test_small_files_are_gathered_up_to_the_target() -> None:
    assert names([file(str(number), 20) for number in range(9)]) == [["0", "1", "2", "3", "4", "5", "6"], ["7", "8"]]


def test_a_file_of_the_target_size_is_left_alone_unless_rows_of_it_are_deleted() -> None:
    assert names([file("a", 120), file("b", 200)]) == []
    assert names([file("a", 160, deleted=150), file("b", 200, deleted=90)]) == [["a"]]


def test_a_medium_file_waits_until_the_smaller_ones_are_worth_it() -> None:
    medium = file("medium", 60)
    assert names([medium, file("a", 1), file("b", 1)]) == [["a", "b"]]
    assert names([medium, file("a", 10), file("b", 6)]) == [["a", "b", "medium"]]


def test_files_of_different_partitions_stay_apart() -> None:
    assert names([file("a", 1, partition="x"), file("b", 1, partition="y"), file("c", 1, partition="y")]) == [
        ["b", "c"]
    ]


def test_many_maintenances_rewrite_a_row_only_a_few_times() -> None:
    files: list[DataFile] = []
    rewritten = 0
    for number in range(2000):
        files.append(file(str(number), 1))
        if number % 10 == 9:
            for found in bins(files, TARGET):
                size = sum(each.size for each in found)
                rewritten += size
                files = [each for each in files if each not in found]
                count = max(1, round(size / TARGET))
                files += [DataFile(f"{number}-{part}", 1000, size // count) for part in range(count)]
    assert rewritten / (2000 << 20) < 5
    assert len(files) < 2000 / 128 * 4 / 3 + 12
