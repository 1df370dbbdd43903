"""A simulated disk that can crash at any step; what was not synced then survives only by chance."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path

from ggshell.errors import DiskError


class Crash(BaseException):
    """The simulated machine crashes."""


class Fuse:
    """Counts steps; the last one crashes the machine or fails (``error``)."""

    def __init__(self) -> None:
        self.left: int | None = None
        self.error = False
        self.steps = 0

    def step(self) -> None:
        self.steps += 1
        if self.left is None:
            return
        self.left -= 1
        if self.left < 0:
            self.left = None
            if self.error:
                raise DiskError("no space left")
            raise Crash


class _File:
    def __init__(self) -> None:
        self.content = bytearray()
        self.durable = 0


class CrashingDisk:
    """Files in memory. Names and contents are volatile until synced; a crash keeps any part of the rest."""

    def __init__(self, fuse: Fuse) -> None:
        self.fuse = fuse
        self._names: dict[Path, _File] = {}
        self._durable: dict[Path, _File] = {}
        self._pending: list[tuple[str, Path, Path | None]] = []

    def make_folder(self, folder: Path) -> None:
        self.fuse.step()

    def write(self, path: Path, blocks: Iterable[bytes], *, durable: bool) -> None:
        self.fuse.step()
        file = self._names[path] = _File()
        self._pending.append(("link", path, None))
        for block in blocks:
            self.fuse.step()
            file.content += block
        self.fuse.step()
        if durable:
            file.durable = len(file.content)

    def rename(self, old: Path, new: Path) -> None:
        self.fuse.step()
        self._names[new] = self._names.pop(old)
        self._pending.append(("rename", old, new))

    def remove(self, path: Path) -> None:
        self.fuse.step()
        if self._names.pop(path, None) is not None:
            self._pending.append(("remove", path, None))

    def sync_folder(self, folder: Path) -> None:
        self.fuse.step()
        self._durable = dict(self._names)
        self._pending.clear()

    def names(self, folder: Path) -> list[str]:
        return sorted(path.name for path in self._names if path.parent == folder)

    def read(self, path: Path) -> bytes:
        try:
            return bytes(self._names[path].content)
        except KeyError:
            raise DiskError(f"no file {path}") from None

    def crash(self, rng: random.Random) -> None:
        """Keep durable names, any of the pending ones, and at least the synced part of each file."""
        files = dict(self._names)
        names = dict(self._durable)
        for kind, path, new in self._pending:
            if rng.random() < 0.5:
                continue
            if kind == "remove":
                names.pop(path, None)
            elif kind == "rename" and new is not None:
                source = names.pop(path, None) or files.get(new)
                if source is not None:
                    names[new] = source
            elif path in files:
                names[path] = files[path]
        for file in set(names.values()):
            kept = rng.randint(file.durable, len(file.content))
            lost = len(file.content) - kept
            file.content = file.content[:kept] + bytes(lost if rng.random() < 0.5 else 0)
            file.durable = len(file.content)
        self._names, self._durable = dict(names), dict(names)
        self._pending.clear()

    def damage(self, path: Path, content: bytes | None) -> None:
        """Simulate an external deletion or overwrite of a file."""
        if content is None:
            self._names.pop(path)
            self._durable.pop(path, None)
        else:
            self._names[path].content = bytearray(content)
