"""Facts about the files of a trail, without reading their records: headers, sizes, durable ends, restarts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from ggshell.object_stores import is_elsewhere
from ggshell.record.operation import IoType
from ggshell.store_paths import find_bytes, path_of
from ggshell.trail import layout
from ggshell.trail.boundaries import last_end
from ggshell.trail.fileheader import FileHeader, decode_header
from ggshell.trail.header_tokens import is_incomplete
from ggshell.trail.inspection import InspectedFile
from ggshell.trail.name import TrailName
from ggshell.trail.reach import TrailExtent, may_be_begun
from ggshell.types import Csn

_RESTART: Final = bytes([ord("E"), layout.PARTITION_METADATA, 0, ord("A"), 0, 0, int(IoType.RESTART_OK)])
"""The first bytes of a restart record's header (trail/FORMAT.md)."""


class FileFacts(NamedTuple):
    """A file of a trail.

    ``header``: None if it cannot be read; ``unread``: the bytes at the end that are incomplete or not durable; ``missing``:
    bytes that were durable and no longer exist; ``restarts``: where a writer resumed; ``begun``: the file is the newest, and
    its header is not complete yet.
    """

    trail: str
    seqno: int
    size: int
    header: FileHeader | None
    unread: int
    missing: int
    restarts: tuple[int, ...]
    begun: bool = False


def facts_of(files: Iterable[str]) -> list[FileFacts]:
    """The facts of files, in order. Raises NotFoundError for a file that does not exist."""
    return [_facts(file) for file in files]


def csn_form(files: Iterable[str], csn: Csn) -> Csn:
    """A CSN in the form that these trails use: a number, or an LSN. Unchanged if no header has a CSN."""
    for file in files:
        header = _facts(file, with_restarts=False).header
        if header is not None and header.first_csn is not None:
            return csn._replace(form=header.first_csn.form)
    return csn


def trail_and_number(file: str) -> tuple[str, int]:
    """The trail that a file belongs to, as text, and the file's sequence number."""
    folder, slash, name = file.rpartition("/")
    return f"{folder}{slash}{name[:2]}", int(name[2:])


def _facts(file: str, *, with_restarts: bool = True) -> FileFacts:
    path = path_of(file)
    looked = InspectedFile(path)
    try:
        size, end = looked.size, looked.durable_end()
        try:
            header: FileHeader | None = decode_header(looked.header)
        except ValueError:
            header = None
        whole = end if end is not None and end <= size else size
        if header is not None and (whole < size or end is None or end > size) and _is_last(looked):
            whole = min(whole, last_end(looked))
        restarts = tuple(_restarts(looked, path)) if with_restarts else ()
        begun = header is None and is_incomplete(looked.header, size) and _may_be_begun(looked)
    finally:
        looked.close()
    missing = max(0, (end or 0) - size)
    return FileFacts(*trail_and_number(file), size, header, size - whole if header else size, missing, restarts, begun)


def _may_be_begun(looked: InspectedFile) -> bool:
    return looked.trail is not None and may_be_begun(*looked.trail)


def _is_last(looked: InspectedFile) -> bool:
    """Whether the file is the last of its trail. A file that others follow is final."""
    if looked.trail is None:
        return True
    name, seqno = looked.trail
    return not name.file(seqno + 1).exists()


def lost_files(files: Iterable[str]) -> dict[str, int]:
    """For each trail whose durable mark is past its last file, the number of the file that contains the mark."""
    found: dict[str, int] = {}
    last = dict(map(trail_and_number, files))
    for trail, seqno in last.items():
        folder, slash, prefix = trail.rpartition("/")
        extent = TrailExtent.of(TrailName(path_of(folder + slash), prefix))
        if extent.mark is not None and extent.mark.seqno > max([seqno, *extent.files]):
            found[trail] = extent.mark.seqno
    return found


def _restarts(looked: InspectedFile, path: Path) -> Iterator[int]:
    for place in find_bytes(path, _RESTART):
        seen = looked.at(place - 8)
        if seen is not None and seen.record is not None and seen.record.io_type == IoType.RESTART_OK:
            yield seen.rba


def unread_notes(files: Collection[str]) -> list[str]:
    """One sentence for each file that is not read completely, and for each part of a trail that is missing."""
    found = [note for file in files for note in _unread_notes(_facts(file, with_restarts=False))]
    lost = [f"{trail} reached to file {seqno:09d}, which does not exist" for trail, seqno in lost_files(files).items()]
    return found + list(_holes(files)) + lost


def _holes(files: Iterable[str]) -> Iterator[str]:
    """Notes about missing files between two files of a trail. Files that exist but were not selected are not reported."""
    for (trail, before), (other, behind) in pairwise(map(trail_and_number, files)):
        if trail != other or is_elsewhere(trail) or behind - before < 2:
            continue
        there = TrailName(Path(trail).parent, trail[-2:]).sequences()
        missing = [seqno for seqno in range(before + 1, behind) if seqno not in there]
        if missing:
            span = f"file {missing[0]:09d}" if len(missing) == 1 else f"files {missing[0]:09d} to {missing[-1]:09d}"
            yield f"{span} of {trail} missing: the answer does not include their records"


def _unread_notes(facts: FileFacts) -> Iterator[str]:
    name = f"{facts.trail}{facts.seqno:09d}"
    if facts.header is None and facts.size and not facts.begun:
        yield f"{name} does not begin with a trail file header: it is not read"
    elif facts.missing:
        yield (
            f"{name} is cut off: {facts.missing:,} bytes that were durable are missing; "
            f"it is read up to RBA {facts.size - facts.unread:,}"
        )
    elif facts.unread:
        yield (
            f"{name} is read up to RBA {facts.size - facts.unread:,}; "
            f"{facts.unread:,} bytes after it are incomplete or not durable yet"
        )
