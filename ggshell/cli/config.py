"""Reads the user's defaults from ``~/.config/ggshell/config.toml`` ($XDG_CONFIG_HOME/ggshell/config.toml).

Command-line options and the environment take precedence. ``home`` always applies; the other settings are about how a
terminal shows things and apply only where standard output is a terminal, so that scripts get the same output everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ggshell.client.folder import user_folder
from ggshell.errors import UsageError

FORMATS = ("ggsci", "table", "vertical", "csv", "json", "markdown")
KEY_BINDINGS = ("emacs", "vi")
_CHOICES = {"format": FORMATS, "key_bindings": KEY_BINDINGS}
_SWITCHES = ("timing", "color")
SETTINGS = ("home", *_CHOICES, *_SWITCHES)


def config_file(environment: Mapping[str, str]) -> Path | None:
    """The file, whether or not it exists; None if the environment names no folder for it."""
    folder = user_folder(environment)
    return None if folder is None else folder / "config.toml"


def read_config(environment: Mapping[str, str], *, terminal: bool) -> dict[str, Any]:
    """Return the settings that apply, by their names in ``Options``; none if there is no file.

    Raises UsageError, with file and line, for a file that cannot be read or a setting that is not valid.
    """
    path = config_file(environment)
    if path is None:
        return {}
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise UsageError(f"cannot read the configuration file {path}: {reason}") from error
    found = {name: _checked(name, value, path, text) for name, value in _parsed(path, text).items()}
    return {name: value for name, value in found.items() if terminal or name == "home"}


def default_home(environment: Mapping[str, str]) -> Path | None:
    """The home directory if no option names it: GGSHELL_HOME, or ``home`` of the file; None for the current folder.

    Raises UsageError, as ``read_config``.
    """
    home = environment.get("GGSHELL_HOME") or read_config(environment, terminal=False).get("home")
    return Path(home) if home else None


def _parsed(path: Path, text: str) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        place = re.search(r" \(at line (\d+), column (\d+)\)$", message)
        line = int(place[1]) if place else text.count("\n") + 1
        raise UsageError(
            f"the configuration file is not valid TOML: {message[: place.start()] if place else message}",
            where=f"{path}:{line}",
            hint="write a setting as name = value; texts are in quotation marks",
        ) from error


def _checked(name: str, value: object, path: Path, text: str) -> object:
    """Return the value of a setting. Raises UsageError if the name or the value is not valid."""
    if name not in SETTINGS:
        raise _wrong(f"{name} is not a valid setting", f"use {', '.join(SETTINGS)}", name, path, text)
    if name in _SWITCHES and not isinstance(value, bool):
        raise _wrong(f"{value} is not a valid value of {name}", "use true or false", name, path, text)
    if name in _CHOICES and value not in _CHOICES[name]:
        raise _wrong(f"{value} is not a valid value of {name}", f"use {', '.join(_CHOICES[name])}", name, path, text)
    if name == "home":
        home = _expanded(value) if isinstance(value, str) else None
        if home is None or not home.is_absolute():
            raise _wrong(f"{value} is not a valid value of home", "use an absolute path", name, path, text)
        return str(home)
    return value


def _expanded(value: str) -> Path | None:
    """The path with the user's home directory for ~; None if that user does not exist."""
    try:
        return Path(value).expanduser()
    except RuntimeError:
        return None


def _wrong(what: str, hint: str, name: str, path: Path, text: str) -> UsageError:
    written = re.compile(rf"\s*(\[+\s*)?[\"']?{re.escape(name)}\b")
    line = next((number for number, line in enumerate(text.splitlines(), 1) if written.match(line)), 1)
    return UsageError(what, where=f"{path}:{line}", hint=hint)
