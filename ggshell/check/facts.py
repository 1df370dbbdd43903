"""What the files say about groups, trails and aliases; held together by ``across``."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field
from typing import NamedTuple

from ggshell.check.findings import Place


class Group(NamedTuple):
    """A group that a script adds: ``kind`` EXTRACT, REPLICAT or DISTPATH; ``source`` the trail it reads, "" for a log;
    ``deleted``: a script deletes it again."""

    name: str
    kind: str
    place: Place
    source: str = ""
    deleted: bool = False


class Use(NamedTuple):
    """A name that is used somewhere: a trail by a group, a group by START, an alias by a login."""

    name: str
    place: Place
    group: str = ""
    kind: str = ""


class MapUse(NamedTuple):
    """A MAP of a Replicat's file."""

    group: str
    source: str
    target: str
    place: Place


class ParameterFile(NamedTuple):
    """A parameter file: whose it is."""

    kind: str
    group: str
    place: Place


@dataclass(slots=True)
class Facts:
    """Everything that was said, in the order of the files."""

    groups: list[Group] = field(default_factory=list)
    trails: list[Use] = field(default_factory=list)
    """Trails that a script adds, for the group that writes them."""
    written: list[Use] = field(default_factory=list)
    """Trails that parameter files name."""
    started: list[Use] = field(default_factory=list)
    aliases: list[Use] = field(default_factory=list)
    logins: list[Use] = field(default_factory=list)
    maps: list[MapUse] = field(default_factory=list)
    files: list[ParameterFile] = field(default_factory=list)


def trail(text: str) -> str:
    """A trail's name in one spelling: ``./dirdat/ea``, ``dirdat/ea`` and ``DIRDAT\\ea`` of another system are the same."""
    return posixpath.normpath(text.strip("'\"").replace("\\", "/")).removeprefix("./")
