"""Errors of the disk: what could not be done, and what helps."""

from __future__ import annotations

from pathlib import Path

import pytest

from ggshell.errors import DiskError
from ggshell.files import disk_errors


def test_an_error_of_the_disk_names_the_action_and_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    inside = tmp_path / "file" / "folder"
    with pytest.raises(DiskError, match=r"cannot create .*: Not a directory") as raised, disk_errors("create", inside):
        inside.mkdir()
    assert "correct the permissions" in str(raised.value.hint)
    with pytest.raises(DiskError) as raised, disk_errors("write", tmp_path, hint="SPOOL another file"):
        tmp_path.write_text("")
    assert raised.value.hint == "SPOOL another file"
