"""Facts that the checked files state about groups, trails and aliases; ``across`` compares them."""

from __future__ import annotations

import fnmatch
import posixpath
from dataclasses import dataclass, field
from typing import NamedTuple

from ggshell.check.findings import FilePlace


class AddedGroup(NamedTuple):
    """A group that a script adds.

    ``kind``: EXTRACT, REPLICAT or DISTPATH; ``source``: the trail that it reads, "" for a log; ``deleted``: a script
    deletes it later.
    """

    name: str
    kind: str
    place: FilePlace
    source: str = ""
    deleted: bool = False


class Use(NamedTuple):
    """A use of a name: a trail by a group, a group by START, or an alias by a login."""

    name: str
    place: FilePlace
    group: str = ""
    kind: str = ""
    deleted: bool = False


class MapUse(NamedTuple):
    """A MAP statement in a Replicat's parameter file."""

    group: str
    source: str
    target: str
    place: FilePlace
    columns: tuple[str, ...] = ()
    """The columns that COMPARECOLS and RESOLVECONFLICT name."""
    collects: bool = False
    """The target collects rows of several tables: EXCEPTIONSONLY or INSERTALLRECORDS."""


class ParameterFile(NamedTuple):
    """A parameter file and the group that it belongs to."""

    kind: str
    group: str
    place: FilePlace


@dataclass(slots=True)
class StatedFacts:
    """All facts, in the order of the files."""

    groups: list[AddedGroup] = field(default_factory=list)
    trails: list[Use] = field(default_factory=list)
    """Trails that scripts add, with the group that writes them."""
    written: list[Use] = field(default_factory=list)
    """Trails that parameter files name."""
    loaded: list[Use] = field(default_factory=list)
    """Files that EXTFILE and RMTFILE name."""
    hosts: dict[str, str] = field(default_factory=dict)
    """The last RMTHOST of each group that names another home."""
    started: list[Use] = field(default_factory=list)
    aliases: list[Use] = field(default_factory=list)
    logins: list[Use] = field(default_factory=list)
    maps: list[MapUse] = field(default_factory=list)
    files: list[ParameterFile] = field(default_factory=list)
    _places: dict[tuple[str, str], list[int]] = field(default_factory=dict)

    def add_group(self, group: AddedGroup) -> None:
        self._places.setdefault((group.kind, group.name.upper()), []).append(len(self.groups))
        self.groups.append(group)

    def add_trail(self, use: Use) -> None:
        self._places.setdefault(("TRAIL", use.name), []).append(len(self.trails))
        self.trails.append(use)

    def delete_groups(self, kind: str, pattern: str) -> None:
        """Mark groups as deleted by a script, so that they may be added again."""
        exact = (kind, pattern.upper())
        names = [exact] if not is_pattern(pattern) else [key for key in self._places if _fits(key, exact)]
        for place in (place for name in names for place in self._places.pop(name, ())):
            self.groups[place] = self.groups[place]._replace(deleted=True)

    def delete_trail(self, name: str) -> None:
        for place in self._places.pop(("TRAIL", name), ()):
            self.trails[place] = self.trails[place]._replace(deleted=True)


def is_pattern(name: str) -> bool:
    return "*" in name or "?" in name


def _fits(key: tuple[str, str], pattern: tuple[str, str]) -> bool:
    return key[0] == pattern[0] and fnmatch.fnmatchcase(key[1], pattern[1])


def trail(text: str) -> str:
    r"""Normalize a trail name: ``./dirdat/ea``, ``dirdat/ea`` and ``dirdat\ea`` are the same."""
    return posixpath.normpath(text.strip("'\"").replace("\\", "/")).removeprefix("./")
