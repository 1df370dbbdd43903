"""scripts/commit-subjects finds subjects of more than 72 characters, in a full clone and in a shallow one."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
SCRIPT = Path(__file__).parents[1] / "scripts" / "commit-subjects"
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
}
WHO = ("-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "protocol.file.allow=always")


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *WHO, *words], cwd=folder, env=ENVIRONMENT, capture_output=True, check=True)


def commit(folder: Path, *subjects: str) -> None:
    for subject in subjects:
        git(folder, "commit", "--allow-empty", "-m", subject)


def check(folder: Path) -> tuple[int, str]:
    result = subprocess.run([SCRIPT, folder], env=ENVIRONMENT, capture_output=True, text=True, check=False)
    return result.returncode, result.stderr


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-b", "main")
    return folder


def test_a_subject_has_at_most_72_characters(repository: Path) -> None:
    commit(repository, "ü" * 72)
    assert check(repository) == (0, "")
    commit(repository, "x" * 73, "short")
    code, errors = check(repository)
    assert (code, "has 73 characters, more than 72: xxx" in errors) == (1, True)


def test_only_the_last_twenty_commits_are_checked(repository: Path) -> None:
    commit(repository, "x" * 73, *(f"commit {number}" for number in range(20)))
    assert check(repository) == (0, "")


def test_pushed_commits_are_not_checked_if_there_are_unpushed_ones(repository: Path, tmp_path: Path) -> None:
    commit(repository, "x" * 73)
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--depth", "1", repository.as_uri(), str(clone))
    assert check(clone)[0] == 1
    commit(clone, "short")
    assert check(clone) == (0, "")
    commit(clone, "y" * 80)
    code, errors = check(clone)
    assert (code, errors.count("more than 72")) == (1, 1)


def test_an_unpacked_archive_and_an_empty_repository_have_no_commits(repository: Path, tmp_path: Path) -> None:
    assert check(repository) == (0, "")
    archive = tmp_path / "archive"
    archive.mkdir()
    assert check(archive) == (0, "")
