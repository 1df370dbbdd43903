"""What the files of a trail say of themselves, without their records: headers, sizes, how far they are durable, restarts."""

from __future__ import annotations

import mmap
from collections.abc import Collection, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from ggshell.record.operation import IoType
from ggshell.spark.paths import is_elsewhere, local_copy
from ggshell.spark.splits import whole_end
from ggshell.trail import layout
from ggshell.trail.durable import MarkReader
from ggshell.trail.fileheader import FileHeader, decode_header
from ggshell.trail.look import LookedFile
from ggshell.trail.name import TrailName
from ggshell.types import Csn

_RESTART: Final = bytes([ord("E"), layout.PARTITION_METADATA, 0, ord("A"), 0, 0, int(IoType.RESTART_OK)])
"""How the header of a restart record begins (trail/FORMAT.md)."""


class FileFacts(NamedTuple):
    """A file; ``header`` is None where it cannot be read, ``unread`` counts the bytes at its end that are not whole or not
    durable, ``missing`` those that were durable and are not there, ``restarts`` are the places where a writer went on."""

    trail: str
    seqno: int
    size: int
    header: FileHeader | None
    unread: int
    missing: int
    restarts: tuple[int, ...]


def facts_of(files: Iterable[str]) -> list[FileFacts]:
    """The facts of files, in their order.  Raises NotFoundError for one that is not there."""
    return [_facts(file) for file in files]


def csn_form(files: Iterable[str], csn: Csn) -> Csn:
    """A CSN as these trails print theirs: a number, or an LSN; as it is where no header tells a CSN."""
    for file in files:
        header = _facts(file, with_restarts=False).header
        if header is not None and header.first_csn is not None:
            return csn._replace(lsn=header.first_csn.lsn)
    return csn


def trail_and_number(file: str) -> tuple[str, int]:
    """The trail that a file belongs to, as texts name it, and the file's sequence number."""
    folder, slash, name = file.rpartition("/")
    return f"{folder}{slash}{name[:2]}", int(name[2:])


def _facts(file: str, *, with_restarts: bool = True) -> FileFacts:
    path = local_copy(file)
    looked = LookedFile(path)
    try:
        size, end = looked.size, looked.durable_end()
        try:
            header: FileHeader | None = decode_header(looked.header)
        except ValueError:
            header = None
        whole = end if end is not None and end <= size else size
        if header is not None and (whole < size or end is None or end > size) and _is_last(looked):
            whole = min(whole, whole_end(looked))
        restarts = tuple(_restarts(looked, path, size)) if with_restarts else ()
    finally:
        looked.close()
    missing = max(0, (end or 0) - size)
    return FileFacts(*trail_and_number(file), size, header, size - whole if header else size, missing, restarts)


def _is_last(looked: LookedFile) -> bool:
    """Whether no file of the trail follows; a file that others follow is final."""
    if looked.trail is None:
        return True
    name, seqno = looked.trail
    return not name.file(seqno + 1).exists()


def lost_files(files: Iterable[str]) -> dict[str, int]:
    """Of each trail that has a mark behind its last file, the number of the file in which the mark is."""
    found: dict[str, int] = {}
    last = dict(map(trail_and_number, files))
    for trail, seqno in last.items():
        folder, slash, prefix = trail.rpartition("/")
        name = TrailName(Path(folder + slash), prefix)
        reader = MarkReader(name)
        mark = reader.read()
        reader.close()
        if mark is not None and mark.position.seqno > max([seqno, *name.sequences()]):
            found[trail] = mark.position.seqno
    return found


def _restarts(looked: LookedFile, path: Path, size: int) -> Iterator[int]:
    if not size:
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        place = content.find(_RESTART)
        while place >= 0:
            seen = looked.at(place - 8)
            if seen is not None and seen.record is not None and seen.record.io_type == IoType.RESTART_OK:
                yield seen.rba
            place = content.find(_RESTART, place + 1)


def unread_notes(files: Collection[str]) -> list[str]:
    """A sentence for each file of which not all is read, and for what a trail lacks, within it or, by its mark, behind it."""
    found = [told for file in files for told in _told(_facts(file, with_restarts=False))]
    lost = [f"{trail} reached to file {seqno:09d}, which is not there" for trail, seqno in lost_files(files).items()]
    return found + list(_holes(files)) + lost


def _holes(files: Iterable[str]) -> Iterator[str]:
    """What to tell of files that are not there between two of the same trail; those that were only not asked for are."""
    for (trail, before), (other, behind) in pairwise(map(trail_and_number, files)):
        if trail != other or is_elsewhere(trail) or behind - before < 2:
            continue
        there = TrailName(Path(trail).parent, trail[-2:]).sequences()
        missing = [seqno for seqno in range(before + 1, behind) if seqno not in there]
        if missing:
            span = f"file {missing[0]:09d}" if len(missing) == 1 else f"files {missing[0]:09d} to {missing[-1]:09d}"
            yield f"{span} of {trail} missing: the answer is without what was there"


def _told(facts: FileFacts) -> Iterator[str]:
    name = f"{facts.trail}{facts.seqno:09d}"
    if facts.header is None and facts.size:
        yield f"{name} does not begin as a trail file: nothing of it is read"
    elif facts.missing:
        yield (
            f"{name} is cut off: {facts.missing:,} bytes that were durable are missing; "
            f"it is read up to RBA {facts.size - facts.unread:,}"
        )
    elif facts.unread:
        yield (
            f"{name} is read up to RBA {facts.size - facts.unread:,}; "
            f"{facts.unread:,} bytes behind it are not whole or not durable yet"
        )
