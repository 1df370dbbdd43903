"""A write rewrites few files, and a table never has many."""

from __future__ import annotations

import random
from collections import Counter

from ggshell.connectors.lake.file_plan import MERGE_FACTOR, DataFile, WriteRules, files_to_rewrite, tier

RULES = WriteRules(deleted_share=0.2, large_bytes=32 << 20)


def test_a_change_of_one_row_rewrites_no_large_file() -> None:
    large = [DataFile(f"{number}", 1_000_000, 128 << 20) for number in range(40)]
    assert files_to_rewrite(large, {"7": 1}, 500, RULES) == set()


def test_a_file_with_too_many_deleted_rows_is_rewritten() -> None:
    files = [DataFile("a", 1000, 64 << 20, deleted=200), DataFile("b", 1000, 64 << 20, deleted=199)]
    assert files_to_rewrite(files, {"a": 1, "b": 1}, 500, RULES) == {"a"}


def test_files_of_another_partition_are_never_merged() -> None:
    files = [DataFile(f"{number}", 10, 1000, partition="x" if number % 2 else "y") for number in range(20)]
    assert files_to_rewrite(files, {}, 500, RULES, ["x"]) == {file.path for file in files if file.partition == "x"}


def test_many_small_writes_leave_few_files_and_rewrite_a_row_about_once_a_tier() -> None:
    files: dict[str, DataFile] = {}
    rewritten = written = most = 0
    rng = random.Random(7)
    for number in range(20_000):
        size = rng.randrange(4_000, 40_000)
        written += size
        taken = files_to_rewrite(list(files.values()), {}, size, RULES)
        rewritten += sum(files[path].size for path in taken)
        size += sum(files.pop(path).size for path in taken)
        files[f"{number}"] = DataFile(f"{number}", size // 100, size)
        most = max(most, sum(file.size < RULES.large_bytes for file in files.values()))
    tiers = Counter(tier(file.size) for file in files.values())
    assert most <= (MERGE_FACTOR - 1) * (tier(RULES.large_bytes) + 1) == 25
    assert sum(file.size for file in files.values()) == written
    assert rewritten / written < tier(RULES.large_bytes) + 2, tiers
    assert sum(tiers.values()) < 25 + written / RULES.large_bytes
