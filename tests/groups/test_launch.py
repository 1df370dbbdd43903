"""Starting a process: what keeps it from being started is named with its remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from ggshell.errors import DiskError
from ggshell.groups.launch import Launch
from ggshell.home.home import Home


def test_a_folder_in_place_of_the_output_of_a_group_is_named_with_its_remedy(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.output("EXT1").mkdir(parents=True)
    with pytest.raises(DiskError, match="EXTRACT EXT1") as raised:
        Launch(home, "extract", "EXT1")
    assert raised.value.where == str(home.output("EXT1"))
    assert "remove it, then" in raised.value.hint
