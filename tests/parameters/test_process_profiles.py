"""What the profile of a managed process means for one group."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ggshell.errors import StoreError
from ggshell.home.checkpoint import GroupKind
from ggshell.home.documents import Documents
from ggshell.home.home import Home
from ggshell.parameters.process_parameters import RestartRule
from ggshell.parameters.process_profiles import (
    DEFAULT_PROFILE,
    GROUP_SETTINGS,
    PROFILE_VALUES,
    PROFILES,
    Profile,
    profile_of,
)

EXT1 = ("EXT1", GroupKind.EXTRACT)
START = {"autoStart": {"enabled": True, "delay": 7}}
RESTART = {"autoRestart": {"enabled": True, "retries": 3, "delay": 5, "window": 100, "disableOnFailure": False}}
RULE = RestartRule("EXTRACT", "EXT1", retries=3, wait=5, reset=100)


@pytest.mark.parametrize(
    ("setting", "wanted"),
    [
        (f"{PROFILES}:Fast", Profile(7.0, RULE)),
        ("Fast", Profile(7.0, RULE)),
        (RESTART, Profile(None, RULE)),
        ({"autoStart": {"enabled": False, "delay": 7}}, Profile()),
        (
            {"autoRestart": {"enabled": True}},
            Profile(None, RestartRule("EXTRACT", "EXT1", 9, wait=0, reset=60, gives_up=True)),
        ),
        ("Gone", Profile()),
        (None, Profile()),
    ],
)
def test_the_profile_of_a_group(tmp_path: Path, setting: Any, wanted: Profile) -> None:
    home = Home(tmp_path)
    Documents(home, PROFILE_VALUES).put(f"{PROFILES}:Fast", {**START, **RESTART})
    if setting is not None:
        Documents(home, GROUP_SETTINGS).put("EXTRACT EXT1", {"managedProcessSettings": setting})
    assert profile_of(home, EXT1) == wanted


def test_a_group_without_a_profile_has_the_default_one_and_a_path_has_none(tmp_path: Path) -> None:
    home = Home(tmp_path)
    Documents(home, PROFILE_VALUES).put(DEFAULT_PROFILE, START)
    assert profile_of(home, EXT1).start_delay == 7.0
    assert profile_of(home, ("P1", GroupKind.PATH)) == Profile()


def test_a_damaged_document_is_an_error(tmp_path: Path) -> None:
    home = Home(tmp_path)
    Documents(home, GROUP_SETTINGS).put("EXTRACT EXT1", {})
    next((tmp_path / "dirdb" / "service" / "groupSettings").iterdir()).write_text("{")
    with pytest.raises(StoreError):
        profile_of(home, EXT1)
