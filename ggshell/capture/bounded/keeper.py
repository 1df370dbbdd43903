"""Makes checkpoints of Bounded Recovery, finds the last one, restores what it holds.

The order that makes a crash harmless: the files of new objects (under temporary names, synced, renamed), the folder, then the
manifest in the same way, and only then anything older is removed.  Until the manifest's name is durable the checkpoint before
it stands with all its files; what a crash leaves of a new one is named by nothing, and the next checkpoint removes it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from ggshell.capture.bounded import manifest, objects
from ggshell.capture.bounded.disk import Disk
from ggshell.capture.bounded.manifest import BoundedCheckpoint, Identity, ObjectFile, PersistedObject
from ggshell.capture.bounded.objects import Definitions
from ggshell.capture.cache import Chunk, OpenTransaction, TransactionCache
from ggshell.capture.decisions import Cursor
from ggshell.errors import CaptureError, GgsError
from ggshell.types import LogPosition

STALE = "stale"
KEPT = 2
"""So many checkpoint files are kept; only the newest is sure to have all its objects."""
MISSING = "OGG-01567"
_TEMPORARY = ".new"
_NAME = re.compile(r"(CP|PO)\.(\w+)\.(\d+)(?:\.(\d+))?(\.new)?")


class Settings(NamedTuple):
    """``folder`` is the group's own; ``interval`` in seconds; ``durable`` waits for the disk (MS_SYNC)."""

    group: str
    folder: Path
    interval: int
    identity: Identity
    fingerprint: str
    incarnation: int
    keep_stale: bool = False
    durable: bool = True
    part_bytes: int = objects.PART_BYTES


class Place(NamedTuple):
    """Where a checkpoint is made: the log's position, cursor and time, and what has committed and is not in the trail yet.

    ``here`` and ``begin_of`` give the same, and where a transaction began, as file and byte, where the source knows these.
    """

    position: int
    cursor: Cursor
    time: int
    waiting: tuple[OpenTransaction, ...] = ()
    here: LogPosition = LogPosition(0, 0, 0)
    begin_of: Callable[[OpenTransaction], LogPosition] | None = None

    def place_of(self, transaction: OpenTransaction) -> LogPosition:
        return self.begin_of(transaction) if self.begin_of is not None else LogPosition(0, 0, transaction.begin)


class Found(NamedTuple):
    """The newest checkpoint that can be read, and what is wrong with newer ones."""

    checkpoint: BoundedCheckpoint | None
    trouble: str = ""


class Keeper:
    """The checkpoints of one group.  ``name``: a transaction's id as the database writes it."""

    def __init__(self, settings: Settings, disk: Disk, definitions: Definitions, name: Callable[[int], str]) -> None:
        self.settings = settings
        self._disk = disk
        self._definitions = definitions
        self._name = name
        self._saved: dict[int, tuple[PersistedObject, int]] = {}
        self._next_number = 0
        self._next_object = 0

    def find(self, below: int | None = None) -> Found:
        """The newest checkpoint, or the newest below a number.  Raises DiskError when the folder cannot be read."""
        trouble = ""
        for number, file in sorted(self._checkpoints(), reverse=True):
            if below is not None and number >= below:
                continue
            try:
                checkpoint = manifest.decode(self._disk.read(self.settings.folder / file), file)
                if checkpoint.group != self.settings.group or checkpoint.number != number:
                    raise CaptureError(f"{file} holds another checkpoint", code=manifest.DAMAGED)
            except GgsError as error:
                trouble = trouble or str(error)
                continue
            return Found(checkpoint, trouble)
        return Found(None, trouble)

    def restore(self, checkpoint: BoundedCheckpoint, cache: TransactionCache) -> None:
        """Put the persisted transactions into an empty cache.

        Raises CaptureError or DiskError when one of them is missing or damaged; the cache is then empty again.
        """
        present = set(self._disk.names(self.settings.folder))
        try:
            for item in checkpoint.objects:
                missing = [file.name for file in item.files if file.name not in present]
                if missing:
                    raise CaptureError(f"persisted object file {missing[0]} is missing", code=MISSING)
                transaction = cache.begin(item.xid, item.begin, item.begin_time)
                if transaction.ignored:
                    continue
                chunk: Chunk | None = None
                for loaded in self._load(item):
                    transaction.aborted |= loaded.aborted
                    if chunk is None or loaded.begins:
                        chunk = _chunk(loaded)
                        transaction.chunks.append(chunk)
                    cache.add(transaction, chunk, loaded.messages)
                if transaction.count != item.messages:
                    text = f"transaction {item.name} has {transaction.count} messages instead of {item.messages}"
                    raise CaptureError(text, code=manifest.DAMAGED)
                transaction.limit(held=item.held)
                self._saved[item.xid] = item, transaction.changes
        except GgsError:
            cache.clear()
            self._saved.clear()
            raise

    def _load(self, item: PersistedObject) -> Iterator[objects.Loaded]:
        for part, file in enumerate(item.files):
            content = self._disk.read(self.settings.folder / file.name)
            yield from objects.load(item, part, file, content, self._definitions)

    def set_interval(self, seconds: int) -> None:
        """From now on a transaction is long-running behind this time."""
        self.settings = self.settings._replace(interval=seconds)

    def set_durable(self, *, durable: bool) -> None:
        """Whether object files wait for the disk (MS_SYNC)."""
        self.settings = self.settings._replace(durable=durable)

    def is_long(self, transaction: OpenTransaction, log_time: int) -> bool:
        """Whether a transaction has been open for longer than an interval, by the log's own time, or was once."""
        return transaction.xid in self._saved or log_time - transaction.begin_time > self.settings.interval * 1_000_000

    def is_saved(self, transaction: OpenTransaction) -> bool:
        """Whether what is in files is all there is of it."""
        saved = self._saved.get(transaction.xid)
        return saved is not None and saved[1] == transaction.changes and saved[0].begin == transaction.begin

    def checkpoint(self, cache: TransactionCache, place: Place, now: int) -> BoundedCheckpoint:
        """Make a checkpoint at a place where everything that committed before it is durable in the trail.

        Raises DiskError; the checkpoint before then stands, whole.
        """
        folder, settings = self.settings.folder, self.settings
        self._disk.make_folder(folder)
        self._number_on()
        number = self._next_number
        held = [item for item in cache.open.values() if not item.ignored]
        long = [item for item in held if self.is_long(item, place.time)]
        chosen = {id(item) for item in long}
        others = [item for item in (*cache.unfinished(), *place.waiting) if id(item) not in chosen]
        oldest = min(others, key=lambda item: item.begin, default=None)
        saved: dict[int, tuple[PersistedObject, int]] = {}
        new = False
        for item in long:
            if self.is_saved(item):
                saved[item.xid] = self._saved[item.xid]
            else:
                saved[item.xid] = self._persist(item, number, place), item.changes
                new = True
        if new:
            self._disk.sync_folder(folder)
        checkpoint = BoundedCheckpoint(
            group=settings.group,
            number=number,
            time=now,
            interval=settings.interval,
            position=place.position,
            position_time=place.time,
            restart=oldest.begin if oldest is not None else place.position,
            restart_time=oldest.begin_time if oldest is not None else place.time,
            restart_name=self._name(oldest.xid) if oldest is not None else "",
            position_place=place.here,
            restart_place=place.place_of(oldest) if oldest is not None else place.here,
            identity=settings.identity,
            fingerprint=settings.fingerprint,
            incarnation=settings.incarnation,
            objects=tuple(item for item, _ in saved.values()),
        )
        name = f"CP.{settings.group}.{number:09d}"
        self._write(name, [manifest.encode(checkpoint)], durable=True)
        self._disk.sync_folder(folder)
        self._next_number += 1
        self._saved = saved
        return checkpoint

    def clean(self, checkpoint: BoundedCheckpoint) -> None:
        """Remove what a complete checkpoint does not need: older ones' objects, and what crashes left.

        Raises DiskError; nothing that is needed was touched.
        """
        folder, settings = self.settings.folder, self.settings
        kept = sorted(self._checkpoints(), reverse=True)[:KEPT]
        wanted = {file for _, file in kept} | {file.name for item in checkpoint.objects for file in item.files}
        for file in self._disk.names(folder):
            match = _NAME.fullmatch(file)
            if match is None or file in wanted:
                continue
            if settings.keep_stale and not match[5]:
                self._disk.make_folder(folder / STALE)
                self._disk.rename(folder / file, folder / STALE / file)
            else:
                self._disk.remove(folder / file)

    def _persist(self, transaction: OpenTransaction, written: int, place: Place) -> PersistedObject:
        number = self._next_object
        self._next_object += 1
        files: list[ObjectFile] = []
        state = data = 0
        for part, content in enumerate(objects.dump(transaction, number, self._definitions, self.settings.part_bytes)):
            name = f"PO.{self.settings.group}.{number:07d}.{part:07d}"
            files.append(ObjectFile(name, content.size, content.checksum))
            state += content.state
            data += content.data
            self._write(name, content.blocks, durable=self.settings.durable)
        return PersistedObject(
            number=number,
            xid=transaction.xid,
            name=self._name(transaction.xid),
            begin=transaction.begin,
            begin_time=transaction.begin_time,
            begin_place=place.place_of(transaction),
            held=max(transaction.held, place.cursor),
            messages=transaction.count,
            state=state,
            data=data,
            written=written,
            files=tuple(files),
        )

    def _write(self, name: str, blocks: list[bytes] | tuple[bytes, ...], *, durable: bool) -> None:
        folder = self.settings.folder
        self._disk.write(folder / (name + _TEMPORARY), blocks, durable=durable)
        self._disk.rename(folder / (name + _TEMPORARY), folder / name)

    def _checkpoints(self) -> list[tuple[int, str]]:
        """The numbers and names of the checkpoint files."""
        found = ((_NAME.fullmatch(file), file) for file in self._disk.names(self.settings.folder))
        return [(int(match[3]), file) for match, file in found if match and match[1] == "CP" and not match[5]]

    def _number_on(self) -> None:
        """Numbers go on behind everything that has a name already, so that no file is ever written anew."""
        for file in self._disk.names(self.settings.folder):
            match = _NAME.fullmatch(file)
            if match and match[1] == "CP":
                self._next_number = max(self._next_number, int(match[3]) + 1)
            elif match:
                self._next_object = max(self._next_object, int(match[3]) + 1)


def _chunk(loaded: objects.Loaded) -> Chunk:
    return Chunk(loaded.definitions, streamed=loaded.streamed, mark=loaded.mark, ready=loaded.ready)
