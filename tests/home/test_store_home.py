"""The home directory: its folders, its names, its groups."""

from __future__ import annotations

from pathlib import Path

import checkpoints
import pytest

from ggshell.errors import DiskError
from ggshell.home.checkpoint import GroupKind
from ggshell.home.home import SUBDIRECTORIES, Home


def test_subdirectories_are_created_once(tmp_path: Path) -> None:
    home = Home(tmp_path / "new")
    first = home.create_subdirectories()
    assert [(label, path.name) for label, path, _ in first] == list(SUBDIRECTORIES.items())
    assert all(made and path.is_dir() for _, path, made in first)
    assert not any(made for _, _, made in home.create_subdirectories())


def test_secrets_and_sockets_are_in_private_folders(tmp_path: Path) -> None:
    (tmp_path / "dirpcs").mkdir(mode=0o755)
    Home(tmp_path).ensure()
    assert {(tmp_path / name).stat().st_mode & 0o777 for name in ("dircrd", "dirwlt", "dirpcs")} == {0o700}


def test_a_home_that_cannot_be_created_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DiskError, match="file/home"):
        Home(tmp_path / "file" / "home").ensure()


def test_group_names_are_upper_case_and_parameter_files_lower_case(home: Home) -> None:
    names = [
        home.checkpoint("ext1", GroupKind.EXTRACT),
        home.checkpoint("Rep1", GroupKind.REPLICAT),
        home.checkpoint("dp1", GroupKind.PATH),
        home.process("ext1", GroupKind.EXTRACT),
        home.process("rep1", GroupKind.REPLICAT),
        home.process("dp1", GroupKind.PATH),
        home.report("ext1"),
        home.report("ext1", 3),
        home.parameters("EXT1"),
    ]
    assert [path.relative_to(home.root).as_posix() for path in names] == [
        "dirchk/EXT1.cpe",
        "dirchk/REP1.cpr",
        "dirchk/DP1.cpd",
        "dirpcs/EXT1.pce",
        "dirpcs/REP1.pcr",
        "dirpcs/DP1.pcd",
        "dirrpt/EXT1.rpt",
        "dirrpt/EXT13.rpt",
        "dirprm/ext1.prm",
    ]


def test_a_parameter_file_in_another_case_is_found(home: Home) -> None:
    written = home.root / "dirprm" / "EXT1.prm"
    written.write_text("EXTRACT ext1\n")
    assert home.parameters("ext1") == written


def test_groups_of_two_kinds_with_one_name_have_separate_sockets_and_locks(home: Home) -> None:
    assert len({home.socket("A", kind) for kind in GroupKind}) == len(GroupKind)
    assert len({home.lock("A", kind) for kind in GroupKind}) == len(GroupKind)


def test_paths_are_relative_to_the_home(home: Home) -> None:
    assert home.resolve(" './dirdat/ea' ") == home.root / "dirdat" / "ea"
    assert home.resolve("/elsewhere/ea") == Path("/elsewhere/ea")


def test_groups_are_listed_from_their_checkpoint_files(home: Home) -> None:
    for checkpoint in (checkpoints.replicat("REP1"), checkpoints.extract("EXT2"), checkpoints.extract("EXT1")):
        checkpoints.save(home, checkpoint)
        checkpoints.save(home, checkpoint)  # leaves a .previous beside it, which is not a group
    found = [(entry.group, entry.type) for entry in home.groups()]
    assert found == [("EXT1", GroupKind.EXTRACT), ("EXT2", GroupKind.EXTRACT), ("REP1", GroupKind.REPLICAT)]


def test_a_damaged_checkpoint_does_not_hide_other_groups(home: Home) -> None:
    checkpoints.save(home, checkpoints.extract("EXT1"))
    (home.root / "dirchk" / "EXT0.cpe").write_bytes(b"GGSCHK 1 00000000\n{}")
    bad, good = home.groups()
    assert bad.group == "EXT0"
    assert bad.checkpoint is None
    assert "ADD EXTRACT" in str(bad.error)
    assert ".previous" not in str(bad.error), "there is none"
    assert good.checkpoint is not None


def test_a_home_without_folders_has_no_groups(tmp_path: Path) -> None:
    assert Home(tmp_path / "nothing").groups() == []
