"""Heartbeat settings in GLOBALS and in a group's parameter file."""

from __future__ import annotations

from pathlib import Path

import pytest

from ggshell.errors import ParameterError
from ggshell.groups.heartbeat_settings import HeartbeatSettings, home_names, load_heartbeats
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


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", None),
        ("CHECKPOINTTABLE a.b\n", None),
        (
            "-- a comment\n\nggschema one -- not this\nCOMMENT it's two & three\nGGSCHEMA two;\n",
            ("two", "gg_heartbeat"),
        ),
        ("CHECKPOINTTABLE a.b\nHEARTBEATTABLE ggs.beats\n", ("ggs", "beats")),
        ("GGSCHEMA other\nINCLUDE more.inc\n", ("included", "gg_heartbeat")),
        ("GGSCHEMA &\n one\n", ("one", "gg_heartbeat")),
        ("MACRO #name BEGIN GGSCHEMA one END;\n#name()\n", ("one", "gg_heartbeat")),
    ],
)
def test_the_names_are_those_that_globals_gives_last(tmp_path: Path, text: str, names: tuple[str, str] | None) -> None:
    home = Home(tmp_path)
    (tmp_path / "more.inc").write_text("GGSCHEMA included\n")
    assert home_names(home) is None
    home.globals.write_text(text)
    assert home_names(home) == (HeartbeatNames(*names) if names else None)


@pytest.mark.parametrize(
    "text", ["GGSCHEMA one two\n", "GGSCHEMA\n", "GGSCHEMA #name()\n", "NOSUCHPARAMETER\nGGSCHEMA a\n"]
)
def test_globals_that_is_not_valid_gives_no_names(tmp_path: Path, text: str) -> None:
    home = Home(tmp_path)
    home.globals.write_text(text)
    with pytest.raises(ParameterError):
        home_names(home)
