"""The user's folder for settings that belong to no home: ``$XDG_CONFIG_HOME/ggshell`` or ``~/.config/ggshell``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ggshell.errors import StateError


def user_folder(environment: Mapping[str, str]) -> Path | None:
    """Return the folder, whether or not it exists; None if the environment names no folder for it."""
    folder, home = environment.get("XDG_CONFIG_HOME"), environment.get("HOME")
    if folder:
        return Path(folder, "ggshell")
    return Path(home, ".config", "ggshell") if home else None


def required_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder. Raises StateError if the environment names none."""
    folder = user_folder(environment)
    if folder is None:
        raise StateError("the environment does not specify a folder for settings", hint="set HOME or XDG_CONFIG_HOME")
    return folder
