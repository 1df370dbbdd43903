"""Starting a process: what prevents the start is reported with its remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from ggshell.errors import DiskError
from ggshell.groups.launch import Launch
from ggshell.home.home import Home


def test_a_folder_at_the_path_of_a_groups_output_is_reported_with_the_remedy(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.output("EXT1").mkdir(parents=True)
    with pytest.raises(DiskError, match="EXTRACT EXT1") as raised:
        Launch(home, "extract", "EXT1")
    assert raised.value.where == str(home.output("EXT1"))
    assert "remove it, then" in raised.value.hint
