"""Reads single values of a plain parameter file, for commands that need one name of GLOBALS and no more."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

from ggshell.language import grammar, pages
from ggshell.language.statement import without_comment

_LINE = re.compile(r"(\w+)(?:\s+([^#&\"'?]*?))?\s*;?")
_VALUE = re.compile(r"[\w.$]+")
_OTHER_FILES = frozenset({"include", "obey", "macro"})


def plain_values(path: Path, wanted: Collection[str]) -> dict[str, str] | None:
    """The last value of each wanted parameter that the file has, by name in upper case.

    None if only the parser of parameter files can tell: the file includes others, or has a macro, a quoted value, a line
    that continues, an unknown parameter, or a wanted parameter with anything but one value. The other parameters are not
    checked.
    """
    known = pages.index(grammar.PARAMETERS)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError):
        return None
    found: dict[str, str] = {}
    for line in map(str.strip, map(without_comment, lines)):
        match = _LINE.fullmatch(line)
        if not line or line.split()[0].upper() == "COMMENT":
            continue
        if match is None or match[1].lower() not in known or match[1].lower() in _OTHER_FILES:
            return None
        name, value = match[1].upper(), match[2] or ""
        if name in wanted:
            if not _VALUE.fullmatch(value):
                return None
            found[name] = value
    return found
