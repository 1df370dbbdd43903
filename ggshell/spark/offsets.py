"""Offsets of a stream from a trail, ``{"seqno": 3, "rba": 4711}``: where one batch ends and the next begins.

A batch ends where a transaction begins, or at the durable end, so every transaction lies whole in one batch.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ggshell.errors import NotFoundError, UsageError
from ggshell.record.operation import TransInd
from ggshell.spark import paths
from ggshell.trail.columnar import transaction_behind
from ggshell.trail.look import LookedFile
from ggshell.trail.name import TrailName
from ggshell.types import TrailPosition

_BEGINS = (TransInd.BEGIN, TransInd.SOLE)


def position_of(offset: dict[str, Any]) -> TrailPosition:
    """The place that an offset means."""
    return TrailPosition(int(offset["seqno"]), int(offset["rba"]))


def offset_of(position: TrailPosition) -> dict[str, int]:
    """The offset of a place."""
    return {"seqno": position.seqno, "rba": position.rba}


def trail_of(text: str) -> TrailName:
    """The one trail that a stream's path means: its name, or a folder or a glob of its files.

    It need not have files yet.  Raises UsageError for several trails, and for one that is not on this machine's file system.
    """
    if not text:
        raise UsageError("ggtrail reads a path", hint='spark.readStream.format("ggtrail").load("dirdat/ea")')
    if paths.is_elsewhere(text):
        raise UsageError(f"a stream follows a trail on a mounted file system, not {text}", hint="a batch can read it")
    path = Path(text.removeprefix("file://")).absolute()
    if len(path.name) == 2 and not path.is_dir() and path.parent.is_dir():
        return TrailName(path.parent, path.name)
    try:
        files = [Path(file) for part in text.split(",") for file in paths.trail_files(part.strip())]
    except NotFoundError:
        raise NotFoundError(f"{text} is no trail", hint="a stream follows one trail, ./dirdat/ea for example") from None
    names = {TrailName(file.parent.absolute(), file.name[:2]) for file in files}
    if len(names) > 1:
        raise UsageError(
            f"{text} holds {len(names)} trails ({', '.join(sorted(name.prefix for name in names))})",
            hint="a stream follows one of them",
        )
    return names.pop()


def cut(name: TrailName, begin: TrailPosition, end: TrailPosition, size: int) -> TrailPosition:
    """The first place between transactions that is ``size`` bytes or more behind ``begin``; ``end`` when none is."""
    place, left = begin, max(1, size)
    while place < end:
        there = name.file(place.seqno).stat().st_size
        if place.rba + left < there:
            break
        left -= max(0, there - place.rba)
        place = TrailPosition(place.seqno + 1, 0)
    else:
        return end
    place = TrailPosition(place.seqno, place.rba + left)
    while place < end:
        file = LookedFile(name.file(place.seqno))
        try:
            found = transaction_behind(file, place.rba)
        finally:
            file.close()
        if found is not None:
            return min(TrailPosition(place.seqno, found), end)
        place = TrailPosition(place.seqno + 1, 0)
    return end


def is_between_transactions(path: Path, place: int) -> bool:
    """Whether no transaction is open where a record begins: the first row behind it begins one, or there is none."""
    file = LookedFile(path)
    try:
        seen = file.at(max(place, file.first))
        while seen is not None and seen.record is not None and seen.record.table_index is None:
            seen = file.at(seen.rba + seen.size)
        return seen is None or (seen.record is not None and seen.record.trans_ind in _BEGINS)
    finally:
        file.close()
