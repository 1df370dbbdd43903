"""Heartbeat settings in GLOBALS and in a group's parameter file."""

from __future__ import annotations

from pathlib import Path

import pytest

from ggshell.errors import ParameterError
from ggshell.groups.heartbeat_settings import HeartbeatSettings, load_heartbeats
from ggshell.home.home import Home
from ggshell.pipeline.heartbeat.names import HeartbeatNames


def test_globals_names_the_objects_and_the_group_overrides_the_settings(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.ensure()
    assert load_heartbeats(home) == HeartbeatSettings()
    home.globals.write_text("GGSCHEMA ggadmin\nHEARTBEATTABLE beats\nDISABLE_HEARTBEAT_TABLE\n")
    assert load_heartbeats(home) == HeartbeatSettings(HeartbeatNames("ggadmin", "beats"), enabled=False)
    own = home.parameters("rep1")
    own.write_text("REPLICAT rep1\nENABLE_HEARTBEAT_TABLE\nLAGARCHIVE\nMAP a.*, TARGET b.*;\n")
    assert load_heartbeats(home, own, "Replicat")[:3] == (HeartbeatNames("ggadmin", "beats"), True, True)
    home.globals.write_text("HEARTBEATTABLE a.b.c\n")
    with pytest.raises(ParameterError):
        load_heartbeats(home)
