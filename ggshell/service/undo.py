"""How the steps of a request are undone, as data that a journal keeps.

A step is noted before it is carried out. Each of these classes therefore undoes a step that was carried out, in part, or not
at all, and can do so again.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ggshell.cli import registrations
from ggshell.cli.groups import is_wildcard
from ggshell.errors import NotFoundError, StateError
from ggshell.files import remove_leftovers, write_atomically
from ggshell.home.checkpoint import GroupKind, decode, load
from ggshell.home.home import Home
from ggshell.home.process_file import ALIVE, state_of
from ggshell.service.statement_words import word

if TYPE_CHECKING:
    from ggshell.service.call import Call


class Undo(msgspec.Struct, frozen=True):
    """How one step is undone.

    ``apply`` of each class does that. It returns what was done, an empty text if there was nothing to undo. Raises GgsError.
    """

    def require_unused(self, home: Home, *, later: bool) -> None:
        """Raise StateError if nothing may be undone, because a group is in use.

        ``later``: after the request was interrupted; the group may have been started and stopped again.
        """


class AddedGroup(Undo, frozen=True, tag="added group"):
    """A group was added: it is deleted."""

    kind: GroupKind
    name: str

    def require_unused(self, home: Home, *, later: bool) -> None:
        _require_unused(home, self.kind, self.name, started=0 if later else None)

    def apply(self, call: Call) -> str:
        path = call.home.checkpoint(self.name, self.kind)
        remove_leftovers(path)
        if is_wildcard(self.name) or not path.exists():
            return ""
        call.run(f"DELETE {self.kind} {word(self.name)} !")
        return f"{self.kind} {self.name} is deleted"


class ChangedGroup(Undo, frozen=True, tag="changed group"):
    """A stopped group was changed: its definition is restored. ``before``: the checkpoint file."""

    kind: GroupKind
    name: str
    started: int
    before: bytes

    def require_unused(self, home: Home, *, later: bool) -> None:
        _require_unused(home, self.kind, self.name, started=self.started)

    def apply(self, call: Call) -> str:
        path = call.home.checkpoint(self.name, self.kind)
        remove_leftovers(path)
        if not path.exists():
            return ""
        if path.read_bytes() == self.before:
            return ""
        registrations.restore(call.session, decode(self.before, path))
        return f"{self.kind} {self.name} was restored"


class RegisteredExtract(Undo, frozen=True, tag="registered"):
    """An Extract was registered: it is unregistered. ``connection``: the source database."""

    group: str
    connection: str

    def apply(self, call: Call) -> str:
        call.log_in(self.connection)
        try:
            call.run(f"UNREGISTER EXTRACT {word(self.group)} DATABASE")
        except NotFoundError:
            return ""
        return f"EXTRACT {self.group} is unregistered"


class WrittenFile(Undo, frozen=True, tag="file"):
    """A file was written: its content is restored, ``None`` for no file.

    ``path``: relative to the home. ``after``: the digest of the new content; a file that has another content by now is kept.
    Without it the file is restored regardless of its content.
    """

    path: str
    before: bytes | None
    mode: int
    after: str = ""

    def apply(self, call: Call) -> str:
        path = call.home.root / self.path
        remove_leftovers(path)
        present = path.read_bytes() if path.exists() else None
        if present == self.before:
            return ""
        if present is not None and self.after not in ("", digest(present)):
            return f"{self.path} is kept, because it was changed since"
        if self.before is None:
            path.unlink(missing_ok=True)
            return f"{self.path} is removed"
        write_atomically(path, self.before, mode=self.mode)
        return f"{self.path} was restored"


class MadeFolder(Undo, frozen=True, tag="folder"):
    """A folder was created: it is removed if it is empty."""

    path: str

    def apply(self, call: Call) -> str:
        with suppress(OSError):  # it was not created, or another request uses it
            (call.home.root / self.path).rmdir()
            return f"{self.path} is removed"
        return ""


AnyUndo = AddedGroup | ChangedGroup | RegisteredExtract | WrittenFile | MadeFolder


def changed_group(home: Home, kind: GroupKind, name: str) -> ChangedGroup:
    """Return how a change of a group is undone. Raises StoreError."""
    path = home.checkpoint(name, kind)
    before = path.read_bytes()
    return ChangedGroup(kind, name, decode(before, path).started, before)


def written_file(home: Home, path: Path, after: bytes | None = None) -> WrittenFile:
    """Return how writing a file is undone."""
    before, mode = (path.read_bytes(), path.stat().st_mode & 0o777) if path.exists() else (None, 0o640)
    return WrittenFile(in_home(home, path), before, mode, digest(after) if after is not None else "")


def in_home(home: Home, path: Path) -> str:
    """Return a path relative to the home if it is in it: the home may be moved."""
    return str(path.relative_to(home.root) if path.is_relative_to(home.root) else path)


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _require_unused(home: Home, kind: GroupKind, name: str, *, started: int | None) -> None:
    """Raise StateError if a group runs, or has been started at another time than ``started``."""
    path = home.checkpoint(name, kind)
    if state_of(home.process(name, kind))[0] in ALIVE:
        raise StateError(f"{kind} {name} is running: it was not undone", hint="delete what is not needed")
    if started is not None and path.exists() and load(path).started != started:
        raise StateError(f"{kind} {name} has been started: it was not undone", hint="delete what is not needed")
