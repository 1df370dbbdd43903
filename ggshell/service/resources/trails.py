"""Trails: their files, and the groups that write and read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from ggshell.errors import ConflictError, NotFoundError, StateError, UsageError
from ggshell.groups.trail_removal import remove_files, remove_trail
from ggshell.home.checkpoint import GroupKind, WriteCheckpoint
from ggshell.home.documents import Documents
from ggshell.home.process_file import ALIVE, state_of
from ggshell.home.users import Role
from ggshell.service.answers import DONE, Answer, Object, Said, collection, item, link, links_of
from ggshell.service.bodies import Body
from ggshell.service.call import Call
from ggshell.service.named_files import require_inside
from ggshell.service.refusals import not_here
from ggshell.service.responses import Collection, Item, Items, Resource, TrailPlace
from ggshell.service.routes import resource
from ggshell.service.statement_words import word
from ggshell.service.trail_facts import (
    KIND,
    FoundTrail,
    Trail,
    all_trails,
    find_trail,
    header_of,
    size_of,
    trail_details,
)
from ggshell.service.trail_names import trail_fields, trail_text
from ggshell.trail.name import TrailName

_BASE = "/trails"
_ONE = f"{_BASE}/{{trail}}"
_FILES = f"{_ONE}/sequences"
_FIRST, _LAST = 0, 999_999_999
_DETAILS = {"details": "show all facts of each trail"}
_FOLDER = {"path": "the folder of the trail"}
_REMOVED = {**_FOLDER, "extract": "the Extract that is no longer to write the trail"}
_FORCED = {**_FOLDER, "force": "delete files that a reader still needs"}
_RANGE = {**_FORCED, "first": "the first sequence number", "last": "the last sequence number"}


class TrailBody(Body):
    """A trail. Positions and files are what the groups have written: only the description and the size can be set."""

    name: str | None = None
    path: str = ""
    size_mb: int | None = msgspec.field(name="sizeMB", default=None)
    trail_name: str | None = None
    description: str | None = None
    sequence: int | None = None
    offset: int | None = None
    sequence_length: Any = None
    sequence_length_flip: bool | None = None
    sequence_min: int | None = None
    sequence_max: int | None = None
    sequence_min_in_use: int | None = None
    sequence_max_in_use: int | None = None
    sequence_last_archived: Any = None
    space_used: int | None = None
    process_ref: Any = None
    remote: bool | None = None

    def described(self) -> Object:
        """What is kept of a trail that no group writes yet."""
        given = {"sizeMB": self.size_mb, "trailName": self.trail_name, "description": self.description}
        return {key: value for key, value in given.items() if value is not None}


class TrailItem(Item, tag="ogg:collectionItem", kw_only=True):
    """A trail in a list. ``path``: its folder unless that is the home's."""

    path: str | None = None
    details: Trail | None = None


class TrailSequence(Resource, tag="ogg:trailSequence", kw_only=True):
    """A file of a trail. ``space_used``: in bytes."""

    encrypted: bool
    source_database: str
    space_used: int
    first_csn: str | None = None
    source_extract: str | None = None


class ExtractTrail(TrailPlace, tag_field="$schema", tag="ogg:trail", kw_only=True):
    """A trail that an Extract writes."""

    size_mb: int = msgspec.field(name="sizeMB")
    remote: bool


class ExtractTrails(Resource, tag="ogg:extractTrails"):
    """An Extract with its trails."""

    name: str
    is_running: bool
    trails: list[ExtractTrail]


class ExtractTrailsList(Resource, tag="ogg:extractTrailsList"):
    """The Extracts with their trails."""

    extracts: list[ExtractTrails]


@resource(
    "GET",
    _BASE,
    role=Role.USER,
    summary="List the trails that groups use, and those with files in dirdat",
    query=_DETAILS,
    returns=Collection[TrailItem],
)
def list_trails(call: Call) -> Answer:
    """List the trails; with ``details`` in the address, all facts of each."""
    detailed = "details" in call.request.query
    return Answer(collection(_item(call, each, detailed=detailed) for each in all_trails(call)))


def _item(call: Call, found: FoundTrail, *, detailed: bool) -> TrailItem:
    """Return a trail's entry. Its link names its folder, because the same name can exist in several."""
    fields = trail_fields(found.text)
    name, folder, base = str(fields["name"]), str(fields.get("path", "")), call.url(_BASE)
    links = links_of(base, name)
    if folder:
        links[1] = link("canonical", f"{base}/{quote(name, safe='')}?path={quote(folder, safe='')}")
    return TrailItem(links=links, name=name, path=folder or None, details=trail_details(found) if detailed else None)


@resource("GET", _ONE, role=Role.USER, summary="Show a trail", query=_FOLDER, returns=Trail)
def get_trail(call: Call, trail: str) -> Answer:
    return Answer(trail_details(find_trail(call, trail)))


@resource("POST", _ONE, role=Role.ADMINISTRATOR, summary="Describe a trail", body=TrailBody, optional=True, status=201)
def create_trail(call: Call, trail: str) -> Answer:
    """Describe a trail. It gets files when a group writes it."""
    body: TrailBody = call.body or TrailBody()
    name, path = body.name or trail, body.path
    require_inside(call.bounds, call.principal, trail_text(name, path), written=True)
    found = TrailName.parse(trail_text(name, path), call.home.root)
    if any(each.name.real == found.real for each in all_trails(call)):
        raise ConflictError(f"trail {trail_text(name, path)} already exists")
    Documents(call.home, KIND).create(trail, {"name": name, "path": path, **body.described()})
    return Answer(status=201)


@resource(
    "PATCH",
    _ONE,
    role=Role.ADMINISTRATOR,
    summary="Change the description or the file size",
    body=TrailBody,
    query=_FOLDER,
)
def update_trail(call: Call, trail: str) -> Answer:
    body: TrailBody = call.body
    found = find_trail(call, trail)
    writer = found.writer
    if body.size_mb is not None and writer is not None and writer.write is not None:
        _resize(call, found, body.size_mb)
    kept = {**trail_fields(found.text), **found.document, **body.described()}
    Documents(call.home, KIND).put(_document_name(call, found) or trail, kept)
    return Answer()


def _resize(call: Call, found: FoundTrail, megabytes: int) -> None:
    writer = found.writer
    if writer is None or writer.write is None or writer.write.megabytes == megabytes:
        return
    if writer.entry.type is not GroupKind.EXTRACT:
        raise UsageError(f"the file size of {writer.name} cannot be changed", hint="delete the path and add it again")
    kind = "RMTTRAIL" if writer.write.remote else "EXTTRAIL"
    extract = word(writer.entry.group)
    call.run(f"ALTER {kind} {word(found.text)}, EXTRACT {extract}, MEGABYTES {megabytes}", told=True)


def _document_name(call: Call, found: FoundTrail) -> str | None:
    documents = Documents(call.home, KIND)
    return next((name for name in documents.names() if documents.find(name) == found.document), None)


@resource(
    "DELETE",
    _ONE,
    role=Role.ADMINISTRATOR,
    summary="Delete a trail that no group uses, with its files; or remove it from an Extract and keep its files",
    query=_REMOVED,
)
def delete_trail(call: Call, trail: str) -> Answer:
    found = find_trail(call, trail)
    if "extract" in call.request.query:
        return _remove(call, found, call.request.query["extract"])
    if found.uses:
        users = ", ".join(use.name for use in found.uses)
        hint = "delete these groups first, or add ?extract=NAME to remove the trail from a stopped Extract"
        raise StateError(f"trail {found.text} is used by {users}", hint=hint)
    removed = remove_trail(call.home, found.name)
    name = _document_name(call, found) if found.document else None
    if name is not None:
        Documents(call.home, KIND).delete(name)
    _tell(call, removed)
    return Answer()


def _remove(call: Call, found: FoundTrail, extract: str) -> Answer:
    """Remove a trail from the Extract that writes it; the files are kept. Raises NotFoundError, StateError if it runs."""
    writers = [use for use in found.uses if use.write is not None and use.entry.type is GroupKind.EXTRACT]
    mine = [use.write for use in writers if use.entry.group == extract.upper()]
    if not mine or mine[0] is None:
        raise NotFoundError(
            f"EXTRACT {extract[:80]} does not write trail {found.text}", hint="see targets of the Extract"
        )
    call.run(f"DELETE {'RMTTRAIL' if mine[0].remote else 'EXTTRAIL'} {word(found.text)}", told=True)
    return Answer()


@resource(
    "GET", _FILES, role=Role.USER, summary="List the sequence numbers of a trail's files", query=_FOLDER, returns=Items
)
def list_sequences(call: Call, trail: str) -> Answer:
    found = find_trail(call, trail)
    base = call.url(f"{_BASE}/{quote(trail, safe='')}/sequences")
    return Answer(collection(item(base, str(seqno)) for seqno in found.name.sequences()))


@resource("DELETE", _FILES, role=Role.ADMINISTRATOR, summary="Delete the files from first to last", query=_RANGE)
def delete_sequences(call: Call, trail: str) -> Answer:
    query = call.request.query
    if not {"first", "last"} <= set(query):
        raise UsageError("first and last are required")
    first, last = _number(query["first"]), _number(query["last"])
    return _delete(call, trail, first, last)


@resource(
    "GET",
    f"{_FILES}/{{sequence}}",
    role=Role.ADMINISTRATOR,
    summary="Show a file of a trail",
    query=_FOLDER,
    returns=TrailSequence,
)
def get_sequence(call: Call, trail: str, sequence: str) -> Answer:
    found, seqno = find_trail(call, trail), _number(sequence)
    header = header_of(found.name, seqno)
    if "download" in call.request.query or "binary" in call.request.headers.get("accept", ""):
        raise not_here("the transfer of trail files", "use a distribution path")
    return Answer(
        TrailSequence(
            encrypted=header is not None and header.seal is not None,
            first_csn=str(header.first_csn) if header is not None and header.first_csn is not None else None,
            source_database=(header.database_name if header is not None else "") or "unknown",
            source_extract=header.producer if header is not None else None,
            space_used=size_of(found.name, seqno),
        )
    )


@resource("POST", f"{_FILES}/{{sequence}}", role=Role.ADMINISTRATOR, summary="Uploading a trail file is not supported")
def create_sequence(call: Call, trail: str, sequence: str) -> Answer:
    raise not_here("the upload of trail files", "use a distribution path")


@resource(
    "DELETE", f"{_FILES}/{{sequence}}", role=Role.ADMINISTRATOR, summary="Delete a file of a trail", query=_FORCED
)
def delete_sequence(call: Call, trail: str, sequence: str) -> Answer:
    seqno = _number(sequence)
    return _delete(call, trail, seqno, seqno)


def _delete(call: Call, trail: str, first: int, last: int) -> Answer:
    force = call.request.query.get("force", "false").lower() not in ("false", "0", "no")
    _tell(call, remove_files(call.home, find_trail(call, trail).name, first, last, force=force))
    return Answer()


def _tell(call: Call, removed: list[Path]) -> None:
    call.said += [Said(DONE, f"Deleted {path}.") for path in removed]


def _number(text: str) -> int:
    """Return a sequence number. Raises NotFoundError for a text that is not one."""
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(_LAST))):
        raise NotFoundError(f"{text[:40]} is not a sequence number from {_FIRST} to {_LAST}")
    return int(text)


@resource("GET", "/exttrails", role=Role.USER, summary="List the Extracts with their trails", returns=ExtractTrailsList)
def list_extract_trails(call: Call) -> Answer:
    extracts = [
        ExtractTrails(
            name=entry.group,
            is_running=state_of(call.home.process(entry.group, entry.type))[0] in ALIVE,
            trails=[_written(each) for each in entry.checkpoint.write],
        )
        for entry in call.home.groups()
        if entry.type is GroupKind.EXTRACT and entry.checkpoint is not None
    ]
    return Answer(ExtractTrailsList(extracts=extracts))


def _written(found: WriteCheckpoint) -> ExtractTrail:
    place = found.current
    return ExtractTrail(
        **trail_fields(found.trail),
        size_mb=found.megabytes,
        sequence=place.seqno,
        offset=place.rba,
        remote=found.remote,
    )
