"""The files of a lake, in a folder or in an object store.

An object appears in a store when its upload is complete; in a folder, a file is written under another name, synced and
renamed. So a reader never sees a part of a file, and what a crash leaves has no name that anyone reads.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from ggshell.errors import ConnectionLostError, DiskError, GgsError
from ggshell.files import disk_errors, sync_directory
from ggshell.object_stores import StorePlace, is_elsewhere, open_place, store_error

_ATTEMPTS: Final = 3
_ATTEMPTS_SECONDS: Final = 10
"""The further attempts of one write, and the time of each and of all. After them, the whole batch is tried again."""
_LIBC = ctypes.CDLL(None, use_errno=True)


class LakeStore:
    """The files below one location."""

    def __init__(self, location: str) -> None:
        """Raises UsageError and ConnectionLostError as ``open_place`` does."""
        self.location = location
        self._place: StorePlace = open_place(location)

    def __repr__(self) -> str:
        return f"LakeStore({self.location!r})"

    @property
    def folder(self) -> Path | None:
        """The folder on this machine; None for an object store."""
        return None if is_elsewhere(self.location) else Path(self._place.path)

    def child(self, path: str) -> StorePlace:
        return self._place.child(path)

    def read(self, path: str) -> bytes | None:
        """The content of a file; None if it does not exist. Raises DiskError, ConnectionLostError."""
        place = self.child(path)
        with _store_errors(place):
            try:
                with place.system.open_input_stream(place.path) as source:
                    return source.read()  # type: ignore[no-any-return]
            except FileNotFoundError:
                return None

    def exists(self, path: str) -> bool:
        from pyarrow import fs

        place = self.child(path)
        with _store_errors(place):
            return bool(place.system.get_file_info(place.path).type != fs.FileType.NotFound)

    def names(self, path: str) -> list[str]:
        """The names in a folder, sorted; none if it does not exist."""
        return sorted(each.base_name for each in self._listed(self.child(path)))

    def files(self, path: str) -> list[str]:
        """The files in a folder and below it, relative to it, sorted; none if it does not exist."""
        place = self.child(path)
        found = self._listed(place, recursive=True)
        return sorted(each.path.removeprefix(place.path).lstrip("/") for each in found if each.is_file)

    @staticmethod
    def _listed(place: StorePlace, *, recursive: bool = False) -> list[Any]:
        from pyarrow import fs

        selector = fs.FileSelector(place.path, allow_not_found=True, recursive=recursive)
        with _store_errors(place):
            try:
                return place.system.get_file_info(selector)  # type: ignore[no-any-return]
            except FileNotFoundError:
                return []  # Arrow refuses a folder that is created while it looks for it.

    def delete(self, path: str) -> None:
        """Delete a file."""
        place = self.child(path)
        with _store_errors(place):
            place.system.delete_file(place.path)

    def delete_folder(self, path: str) -> None:
        """Delete a folder and all files in it, if it exists."""
        from pyarrow import fs

        place = self.child(path)
        with _store_errors(place):
            if place.system.get_file_info(place.path).type == fs.FileType.Directory:
                place.system.delete_dir(place.path)

    def create(self, path: str, data: bytes) -> bool:
        """Write a file unless it exists. Returns whether it was written; of several writers at once, one succeeds.

        A store can write an object and lose its answer; the library's next attempt then finds the object that it has
        written itself. So no two writers may have the same data. Raises DiskError, ConnectionLostError.
        """
        if self.folder is not None:
            return _create_file(self.folder / path, data)
        place = self.child(path)
        with _store_errors(place):
            return _create_object(place, data) or self.read(path) == data

    @contextmanager
    def writing(self, path: str) -> Iterator[Any]:
        """Write a file as a stream. It exists after the block, completely; after an error in the block, it does not."""
        place = self.child(path)
        with _store_errors(place), _file(Path(place.path)) if self.folder else _object(place) as sink:
            yield sink

    def sync(self) -> None:
        """Make durable what libraries have written to a folder; they do not sync their files. A store needs nothing."""
        if self.folder is None or not self.folder.is_dir():
            return
        descriptor = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            if _LIBC.syncfs(descriptor):
                number = ctypes.get_errno()
                raise DiskError(f"lake {self.folder} cannot be synced: {os.strerror(number)}")
        finally:
            os.close(descriptor)


@contextmanager
def _store_errors(place: StorePlace) -> Iterator[None]:
    """Convert errors of file systems to errors of this program."""
    try:
        yield
    except GgsError:
        raise
    except OSError as error:
        if is_elsewhere(place.text):
            raise store_error(place.text, error) from error
        raise DiskError(f"cannot use {place.text}: {error.strerror or error}") from error


@contextmanager
def _file(path: Path) -> Iterator[Any]:
    partial = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with partial.open("wb") as sink:
            yield sink
            sink.flush()
            os.fsync(sink.fileno())
        partial.replace(path)
        sync_directory(path.parent)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


@contextmanager
def _object(place: StorePlace) -> Iterator[Any]:
    """An upload. Closing it completes the object, so after an error the object is deleted."""
    sink = place.system.open_output_stream(place.path)
    try:
        yield sink
    except BaseException:
        with suppress(OSError):  # If the store does not answer, the object stays: no commit names it.
            sink.close()
            place.system.delete_file(place.path)
        raise
    sink.close()


def _create_file(path: Path, data: bytes) -> bool:
    with disk_errors("create", path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with partial.open("wb") as sink:
            sink.write(data)
            sink.flush()
            os.fsync(sink.fileno())
        os.link(partial, path)  # fails if another process has written it meanwhile; a rename would replace it
    except FileExistsError:
        return False
    except OSError as error:
        raise DiskError(f"cannot create {path}: {error.strerror}") from error
    finally:
        partial.unlink(missing_ok=True)
    sync_directory(path.parent)
    return True


def _create_object(place: StorePlace, data: bytes) -> bool:
    """Create an object with a conditional write, or, on HDFS, with a rename, which fails if the new name exists."""
    if place.text.startswith("hdfs://"):
        return _create_by_rename(place, data)
    from obstore.exceptions import AlreadyExistsError, BaseError
    from obstore.store import from_url

    folder, _, name = place.text.rpartition("/")
    try:
        store = from_url(
            folder,
            client_options={"allow_http": True, "timeout": timedelta(seconds=_ATTEMPTS_SECONDS)},
            retry_config={"max_retries": _ATTEMPTS, "retry_timeout": timedelta(seconds=_ATTEMPTS_SECONDS)},
        )
        store.put(name, data, mode="create")
    except AlreadyExistsError:
        return False
    except BaseError as error:
        raise ConnectionLostError(
            f"cannot write {place.text}: {str(error).splitlines()[0]}", hint="check the store and its credentials"
        ) from error
    return True


def _create_by_rename(place: StorePlace, data: bytes) -> bool:
    partial = f"{place.path}.{os.getpid()}.tmp"
    with place.system.open_output_stream(partial) as sink:
        sink.write(data)
    try:
        place.system.move(partial, place.path)
    except OSError:
        place.system.delete_file(partial)
        return False
    return True
