"""Starting a process: what prevents the start is reported with its remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from ggshell.errors import DiskError
from ggshell.groups.launch import Launch
from ggshell.home.home import Home


@pytest.mark.parametrize(
    ("kind", "name"), [("extract", "EXTRACT EXT1"), ("path", "DISTPATH EXT1"), ("recvpath", "RECVPATH EXT1")]
)
def test_a_folder_at_the_path_of_a_groups_output_is_reported_with_the_remedy(
    tmp_path: Path, kind: str, name: str
) -> None:
    home = Home(tmp_path)
    home.output("EXT1").mkdir(parents=True)
    with pytest.raises(DiskError, match=f"start {name}") as raised:
        Launch(home, kind, "EXT1")
    assert raised.value.where == str(home.output("EXT1"))
    assert "remove it, then" in raised.value.hint
