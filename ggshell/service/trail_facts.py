"""Trails as the API shows them: their files, and the groups that write and read them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, Literal, NamedTuple

import msgspec

from ggshell.errors import NotFoundError, TrailError, UsageError
from ggshell.home.checkpoint import WriteCheckpoint
from ggshell.home.documents import Documents
from ggshell.home.home import GroupEntry
from ggshell.service.answers import Object
from ggshell.service.call import Call
from ggshell.service.named_files import require_inside
from ggshell.service.responses import Response, TrailPlace
from ggshell.service.trail_names import known_trail, trail_fields, trail_text
from ggshell.trail.fileheader import FileHeader
from ggshell.trail.name import TrailName

KIND: Final = "trail"
"""The kind of the documents with the descriptions of trails."""
_DIGITS: Final = 9


class TrailUse(Response):
    """A group that uses a trail."""

    name: str
    type: str
    access: Literal["read", "write"]


class Trail(TrailPlace, tag_field="$schema", tag="ogg:trail", kw_only=True):
    """A trail. ``sequence`` and ``offset``: where its writer is; ``space_used``: in bytes."""

    sequence_length: str
    remote: bool
    space_used: int
    size_mb: int | None = msgspec.field(name="sizeMB", default=None)
    sequence_min: int | None = None
    sequence_max: int | None = None
    process_ref: list[TrailUse] | None = None
    trail_name: str | None = None
    description: str | None = None


class Use(NamedTuple):
    """A group that writes a trail (``write`` is its checkpoint there) or reads it."""

    entry: GroupEntry
    write: WriteCheckpoint | None

    @property
    def name(self) -> str:
        return f"{self.entry.type} {self.entry.group}"


class FoundTrail(NamedTuple):
    """A trail of the home. ``text``: its name in statements; ``document``: what clients said about it."""

    text: str
    name: TrailName
    uses: tuple[Use, ...]
    document: Object

    @property
    def writer(self) -> Use | None:
        return next((use for use in self.uses if use.write is not None), None)


def all_trails(call: Call) -> list[FoundTrail]:
    """Return every trail of a group, of a client's description, or with files in ``dirdat`` or the home's folder."""
    home = call.home
    entries, documents = home.groups(), _documents(call)
    texts = [trail for entry in entries for trail in _used(entry)]
    texts += [trail_text(each["name"], each.get("path", "")) for each in documents.values()]
    for folder in ("./dirdat/", ""):
        files = home.resolve(folder).glob("??" + "[0-9]" * _DIGITS)
        texts += sorted({f"{folder}{path.name[:2]}" for path in files})
    found: dict[TrailName, str] = {}
    for text in texts:
        with contextlib.suppress(UsageError):
            found.setdefault(TrailName.parse(text, home.root).real, text)
    uses, described = _uses(home.root, entries), _described(home.root, documents)
    texts = sorted(found.values())
    return [_found(text, TrailName.parse(text, home.root), uses, described) for text in texts]


def find_trail(call: Call, trail: str) -> FoundTrail:
    """Return a trail by its name or its description's name, with ``path`` of the address.

    Raises NotFoundError, HttpError 403 for a trail outside the home.
    """
    path = call.request.query.get("path", "")
    documents = _documents(call)
    document = documents.get(trail)
    if document is not None:
        trail, path = document["name"], document.get("path", "")
    try:
        text = known_trail(call.home, trail, path, "./dirdat")
        name = TrailName.parse(text, call.home.root)
        uses, described = _uses(call.home.root, call.home.groups()), _described(call.home.root, documents)
        found = _found(text, name, uses, described)
    except UsageError as error:
        raise NotFoundError(f"trail {trail} does not exist: {error.message}") from error
    require_inside(call.bounds, call.principal, text, written=call.request.method == "DELETE")
    if not found.uses and not found.document and not found.name.sequences():
        raise NotFoundError(f"trail {trail} does not exist", hint="list the trails; a folder is named with path")
    return found


def _used(entry: GroupEntry) -> list[str]:
    checkpoint = entry.checkpoint
    if checkpoint is None:
        return []
    return [
        *(each.trail for each in checkpoint.written_here),
        *([checkpoint.read.trail] if checkpoint.read.trail else []),
    ]


def _documents(call: Call) -> dict[str, Object]:
    documents = Documents(call.home, KIND)
    return {name: documents.get(name) for name in documents.names()}


def _uses(root: Path, entries: Iterable[GroupEntry]) -> dict[TrailName, list[Use]]:
    """Return what the groups write and read, by the trails without links."""
    found: dict[TrailName, list[Use]] = {}
    for entry in entries:
        if entry.checkpoint is None:
            continue
        for write in entry.checkpoint.written_here:
            found.setdefault(TrailName.parse(write.trail, root).real, []).append(Use(entry, write))
        if entry.checkpoint.read.trail:
            found.setdefault(TrailName.parse(entry.checkpoint.read.trail, root).real, []).append(Use(entry, None))
    return found


def _described(root: Path, documents: Mapping[str, Object]) -> dict[TrailName, Object]:
    """Return what clients said about trails, by the trails without links; the first document of each counts."""
    found: dict[TrailName, Object] = {}
    for each in documents.values():
        found.setdefault(TrailName.parse(trail_text(each["name"], each.get("path", "")), root).real, each)
    return found


def _found(
    text: str, name: TrailName, uses: Mapping[TrailName, list[Use]], described: Mapping[TrailName, Object]
) -> FoundTrail:
    return FoundTrail(text, name, tuple(uses.get(name.real, ())), described.get(name.real, {}))


def trail_details(found: FoundTrail) -> Trail:
    """Return the body of a trail."""
    files = found.name.sequences()
    writer = found.writer
    write = writer.write if writer is not None else None
    return Trail(
        **trail_fields(found.text),
        size_mb=write.megabytes if write is not None else found.document.get("sizeMB"),
        sequence=write.current.seqno if write is not None else (files[-1] if files else 0),
        offset=write.current.rba if write is not None else 0,
        sequence_length=str(_DIGITS),
        remote=write is not None and write.remote,
        sequence_min=files[0] if files else None,
        sequence_max=files[-1] if files else None,
        space_used=sum(size_of(found.name, seqno) for seqno in files),
        process_ref=[_reference(use) for use in found.uses] or None,
        trail_name=found.document.get("trailName"),
        description=found.document.get("description"),
    )


def _reference(use: Use) -> TrailUse:
    return TrailUse(name=use.entry.group, type=use.entry.type.lower(), access="read" if use.write is None else "write")


def size_of(name: TrailName, seqno: int) -> int:
    """Return the size of a trail file in bytes, 0 if it was purged in the meantime."""
    try:
        return name.file(seqno).stat().st_size
    except OSError:
        return 0


def header_of(name: TrailName, seqno: int) -> FileHeader | None:
    """Return the header of a trail file, None if it cannot be read yet. Raises NotFoundError for a missing file."""
    from ggshell.trail.opened import open_file

    if seqno not in name.sequences():
        raise NotFoundError(f"trail {name} has no file with sequence number {seqno}")
    try:
        file = open_file(name, seqno)
    except (TrailError, FileNotFoundError):
        return None
    file.close()
    return file.header
