"""The Bounded Recovery store: the folder that holds a group's manifests and objects, on a disk that a test can crash.

This order makes a crash harmless: first the files of new objects (written under temporary names, synced, renamed), then
the folder, then the manifest in the same way, and only then are older files removed. Until the manifest's name is
durable, the previous checkpoint is valid with all its files. Nothing refers to the files that a crash leaves of a new
checkpoint, and the next checkpoint removes them.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

from ggshell.errors import CaptureError, DiskError, GgsError
from ggshell.files import sync_directory
from ggshell.pipeline.capture.bounded import manifest, objects
from ggshell.pipeline.capture.bounded.manifest import MachineIdentity, ObjectFile, PersistedObject, RecoveryManifest
from ggshell.pipeline.capture.bounded.objects import DefinitionCodec
from ggshell.pipeline.capture.cache import Chunk, OpenTransaction, TransactionCache
from ggshell.pipeline.capture.decisions import Cursor
from ggshell.types import LogPosition


class Disk(Protocol):
    """The files of one folder. Every failure raises DiskError; ``remove`` and ``names`` ignore what does not exist."""

    def make_folder(self, folder: Path) -> None: ...

    def write(self, path: Path, blocks: Iterable[bytes], *, durable: bool) -> None:
        """Write a new file. ``durable``: its content is on disk on return (its name may not be)."""
        ...

    def rename(self, old: Path, new: Path) -> None: ...

    def remove(self, path: Path) -> None: ...

    def sync_folder(self, folder: Path) -> None:
        """Make names created and removed so far durable on disk."""
        ...

    def names(self, folder: Path) -> list[str]: ...

    def read(self, path: Path) -> bytes: ...


class SystemDisk:
    """The files of the machine."""

    def make_folder(self, folder: Path) -> None:
        try:
            missing = [each for each in (folder, *folder.parents) if not each.exists()]
            folder.mkdir(parents=True, exist_ok=True, mode=0o750)
            for each in missing:
                sync_directory(each.parent)
        except OSError as error:
            raise _failed("make the folder", folder, error) from error

    def write(self, path: Path, blocks: Iterable[bytes], *, durable: bool) -> None:
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o640)
            try:
                for block in blocks:
                    view = memoryview(block)
                    while view:
                        view = view[os.write(descriptor, view) :]
                if durable:
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            with contextlib.suppress(OSError):  # the error of the write is the one to report
                path.unlink()
            raise _failed("write", path, error) from error

    def rename(self, old: Path, new: Path) -> None:
        try:
            old.replace(new)
        except OSError as error:
            raise _failed("rename", old, error) from error

    def remove(self, path: Path) -> None:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise _failed("remove", path, error) from error

    def sync_folder(self, folder: Path) -> None:
        try:
            sync_directory(folder)
        except OSError as error:
            raise _failed("make the names durable in", folder, error) from error

    def names(self, folder: Path) -> list[str]:
        try:
            return sorted(os.listdir(folder))  # noqa: PTH208 - bare names
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _failed("list", folder, error) from error

    def read(self, path: Path) -> bytes:
        try:
            return path.read_bytes()
        except OSError as error:
            raise _failed("read", path, error) from error


def _failed(what: str, path: Path, error: OSError) -> DiskError:
    return DiskError(
        f"Bounded Recovery cannot {what} {path}: {error.strerror}", hint="free space, or fix the permissions"
    )


STALE = "stale"
KEPT = 2
"""Number of checkpoint files that are kept. Only the newest is certain to have all its objects."""
MISSING = "OGG-01567"
_TEMPORARY = ".new"
_NAME = re.compile(r"(CP|PO)\.(\w+)\.(\d+)(?:\.(\d+))?(\.new)?")


class StoreSettings(NamedTuple):
    """The settings of a group. ``folder`` is its own; ``interval`` is in seconds; ``durable`` is MS_SYNC."""

    group: str
    folder: Path
    interval: int
    identity: MachineIdentity
    fingerprint: str
    incarnation: int
    keep_stale: bool = False
    durable: bool = True
    part_bytes: int = objects.PART_BYTES


class ManifestPosition(NamedTuple):
    """Where a checkpoint is made: the log's position, cursor and time.

    ``here`` is the same position as file and byte, and ``begin_of`` returns where a transaction began in this form, if
    the source knows them.
    """

    position: int
    cursor: Cursor
    time: int
    here: LogPosition = LogPosition(0, 0, 0)
    begin_of: Callable[[OpenTransaction], LogPosition] | None = None

    def place_of(self, transaction: OpenTransaction) -> LogPosition:
        return self.begin_of(transaction) if self.begin_of is not None else LogPosition(0, 0, transaction.begin)


class BoundedStore:
    """The checkpoints of one group. ``name`` returns a transaction's id as the database writes it."""

    def __init__(
        self, settings: StoreSettings, disk: Disk, definitions: DefinitionCodec, name: Callable[[int], str]
    ) -> None:
        self.settings = settings
        self._disk = disk
        self._definitions = definitions
        self._name = name
        self._saved: dict[int, tuple[PersistedObject, int]] = {}
        self._next_number = 0
        self._next_object = 0

    def find(self, below: int | None = None) -> tuple[RecoveryManifest | None, str]:
        """Return the newest manifest that can be read (below a number), and what is wrong with newer ones.

        Raises DiskError when the folder cannot be read.
        """
        trouble = ""
        for number, file in sorted(self._checkpoints(), reverse=True):
            if below is not None and number >= below:
                continue
            try:
                checkpoint = manifest.decode(self._disk.read(self.settings.folder / file), file)
                if checkpoint.group != self.settings.group or checkpoint.number != number:
                    raise CaptureError(f"{file} contains another checkpoint", code=manifest.DAMAGED)
            except GgsError as error:
                trouble = trouble or str(error)
                continue
            return checkpoint, trouble
        return None, trouble

    def restore(self, checkpoint: RecoveryManifest, cache: TransactionCache) -> None:
        """Load the persisted transactions into an empty cache.

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

    def _load(self, item: PersistedObject) -> Iterator[objects.LoadedMessages]:
        for part, file in enumerate(item.files):
            content = self._disk.read(self.settings.folder / file.name)
            yield from objects.load(item, part, file, content, self._definitions)

    def set_interval(self, seconds: int) -> None:
        """Set the time after which a transaction is long-running."""
        self.settings = self.settings._replace(interval=seconds)

    def set_durable(self, *, durable: bool) -> None:
        """Set whether object files wait for the disk (MS_SYNC)."""
        self.settings = self.settings._replace(durable=durable)

    def is_long(self, transaction: OpenTransaction, log_time: int) -> bool:
        """Whether a transaction has been open for longer than an interval, by the log's time, or is already saved."""
        return transaction.xid in self._saved or log_time - transaction.begin_time > self.settings.interval * 1_000_000

    def is_saved(self, transaction: OpenTransaction) -> bool:
        """Whether the files contain everything of a transaction."""
        saved = self._saved.get(transaction.xid)
        return saved is not None and saved[1] == transaction.changes and saved[0].begin == transaction.begin

    def checkpoint(self, cache: TransactionCache, place: ManifestPosition, now: int) -> RecoveryManifest:
        """Make a checkpoint at a place before which every commit is durable in the trail.

        Raises DiskError. The previous checkpoint then stays valid and complete.
        """
        folder, settings = self.settings.folder, self.settings
        self._disk.make_folder(folder)
        self._number_on()
        number = self._next_number
        held = [item for item in cache.open.values() if not item.ignored]
        long = [item for item in held if self.is_long(item, place.time)]
        chosen = {id(item) for item in long}
        others = [item for item in cache.unfinished() if id(item) not in chosen]
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
        checkpoint = RecoveryManifest(
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

    def clean(self, checkpoint: RecoveryManifest) -> None:
        """Remove the files that a complete checkpoint does not need: objects of older ones, and leftovers of crashes.

        Raises DiskError; no file that is needed was touched.
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

    def _persist(self, transaction: OpenTransaction, written: int, place: ManifestPosition) -> PersistedObject:
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
        """Continue numbering after every existing file, so that no file is ever overwritten."""
        for file in self._disk.names(self.settings.folder):
            match = _NAME.fullmatch(file)
            if match and match[1] == "CP":
                self._next_number = max(self._next_number, int(match[3]) + 1)
            elif match:
                self._next_object = max(self._next_object, int(match[3]) + 1)


def _chunk(loaded: objects.LoadedMessages) -> Chunk:
    return Chunk(loaded.definitions, streamed=loaded.streamed, id_offset=loaded.id_offset, ready=loaded.ready)
