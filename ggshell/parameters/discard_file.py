"""DISCARDFILE: the file for the operations that a Replicat's target refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ggshell.errors import StoreError
from ggshell.home.home import Home
from ggshell.parameters.lines import Parameter, file_text, parse_all
from ggshell.pipeline.apply.discard import OLDEST, aged


class DiscardRule(NamedTuple):
    """The last DISCARDFILE of a parameter file. ``file``: as written there; empty for the default file of the group."""

    file: str = ""
    append: bool = True
    megabytes: int = 50

    def path(self, home: Home, group: str) -> Path:
        """The discard file of a group."""
        return home.resolve(self.file) if self.file else home.discard(group)


def discard_rule(found: Sequence[Parameter]) -> DiscardRule:
    """The rule that the parameters of a file state."""
    stated = [each.args for each in found if each.name == "DISCARDFILE"]
    if not stated:
        return DiscardRule()
    last = stated[-1]
    return DiscardRule(last.get("file", ""), "purge" not in last, last.get("megabytes", 50))


def discard_files(home: Home, group: str) -> list[Path]:
    """The discard files of a group that exist: the current one, then those that DISCARDROLLOVER keeps, the newest first."""
    path = discard_path(home, group)
    return [each for each in (path, *(aged(path, age) for age in range(OLDEST + 1))) if each.exists()]


def discard_path(home: Home, group: str) -> Path:
    """The discard file of a group, by its parameter file as it is now; other statements of the file may be invalid."""
    path = home.parameters(group)
    try:
        found, _ = parse_all(file_text(path), path, "Replicat")
    except StoreError:
        return home.discard(group)
    return discard_rule(found).path(home, group)
