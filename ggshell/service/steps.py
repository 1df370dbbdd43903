"""Steps of a request that belong together: if one fails, or the service ends between them, those before it are undone.

What undoes a step is written to the journal of the changed object before the step. The journal is removed at the end. The
next start of the service, or the next change of the object, undoes the steps of a remaining journal.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from ggshell.cli.outcome import Outcome
from ggshell.errors import ConflictError, DiskError, GgsError, StateError, StoreError, UsageError
from ggshell.files import disk_errors, remove_leftovers, sync_directory, write_atomically
from ggshell.home.home import Home
from ggshell.home.unfinished import journal_of
from ggshell.service.answers import Said
from ggshell.service.undo import AnyUndo, MadeFolder, in_home, written_file

if TYPE_CHECKING:
    from ggshell.service.call import Call


_UNNAMED: Final = "request"
"""The name of the journal of a request that changes several objects, or none."""


class Unfinished(msgspec.Struct, frozen=True):
    """The content of a journal: the request, and how each of its steps is undone, in the order of the steps."""

    request: str
    steps: tuple[AnyUndo, ...]


class Journal:
    """The journal of the requests that change an object. Its user holds the lock of the object."""

    def __init__(self, home: Home, changed: str) -> None:
        self.path = journal_of(home, changed)

    def read(self) -> Unfinished | None:
        """Return what the last request left, None if nothing. Raises StoreError if the file is damaged."""
        remove_leftovers(self.path)
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=Unfinished)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as error:
            hint = "check the object manually, then remove the file"
            raise StoreError(f"the journal {self.path} cannot be read: {error}", hint=hint) from error

    def write(self, content: Unfinished) -> None:
        """Replace the content; without steps, remove the file. Returns when that is durable. Raises DiskError."""
        folder = self.path.parent
        with disk_errors("write", self.path):
            if not content.steps:
                self.path.unlink(missing_ok=True)
            elif not folder.is_dir():
                folder.mkdir(parents=True, exist_ok=True)
                sync_directory(folder.parent)
            if folder.is_dir() and not content.steps:
                sync_directory(folder)
        if content.steps:
            write_atomically(self.path, msgspec.json.encode(content), mode=0o600)


class Steps:
    """The steps of one request."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._journal = Journal(call.home, call.changed or _UNNAMED)
        self._done: list[AnyUndo] = []

    def __enter__(self) -> Steps:
        self._call.session.keeps_journal = True
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        try:
            if error is None:
                self.complete()
            elif self._done:
                self._undo()
        except DiskError:  # the request is refused: the steps that are still in the journal are undone later
            self._call.state.undo_again.set()
            raise
        finally:
            self._call.session.keeps_journal = False

    def _undo(self) -> None:
        """Undo the steps, and leave those in the journal that cannot be undone now."""
        left, errors, _ = undo(self._call, self._done, later=False)
        self._call.said += [Said(each.code, f"not undone: {each}", "WARNING") for each in errors]
        self._write(left)
        if left:
            self._call.state.undo_again.set()

    def note(self, step: AnyUndo) -> None:
        """Note how the next step is undone. Raises DiskError."""
        self._write([*self._done, step])
        self._done.append(step)

    def complete(self) -> None:
        """Keep what is done if the service ends from now on; a later step that fails still undoes it. Raises DiskError."""
        if self._done:
            self._write([])

    def _write(self, steps: list[AnyUndo]) -> None:
        request = self._call.request
        text = f"{request.method} {request.address} by {self._call.principal.name}@{request.client}"
        self._journal.write(Unfinished(text, tuple(steps)))

    def run(self, statement: str, step: AnyUndo, exists: Callable[[], bool], *, told: bool = False) -> Outcome:
        """Carry out a statement that adds an object; ``exists``: whether the object is there already. Raises GgsError."""
        new = not exists()
        if new:
            self.note(step)
        try:
            return self._call.run(statement, told=told)
        except ConflictError:  # the object is that of another request or shell
            if new:
                self._done.remove(step)
                self._write(self._done)
            raise

    def keep_file(self, path: Path, after: bytes | None = None) -> None:
        """Note the content of a file that is written next; ``after``: the new content. Raises DiskError."""
        self.note(written_file(self._call.home, path, after))

    def write_file(self, path: Path, text: str) -> None:
        """Write a file; undoing restores its previous content. Raises DiskError, StoreError."""
        content = text.encode()
        self.keep_file(path, content)
        write_atomically(path, content)

    def make_folder(self, path: Path) -> None:
        """Create a folder and those above it; undoing removes those that were created and are empty.

        Raises UsageError if a file is in the way, DiskError.
        """
        missing = [each for each in (path, *path.parents) if not each.exists()]
        for each in reversed(missing):
            self.note(MadeFolder(in_home(self._call.home, each)))
            try:
                each.mkdir(exist_ok=True)
            except (FileExistsError, NotADirectoryError):
                raise UsageError(
                    f"{path} is not a folder: a file has that name or the name of a folder above it"
                ) from None
            except OSError as error:
                raise DiskError(f"cannot create {each}: {error.strerror}") from error


def undo(
    call: Call, steps: list[AnyUndo] | tuple[AnyUndo, ...], *, later: bool
) -> tuple[list[AnyUndo], list[GgsError], list[str]]:
    """Undo steps in reverse order. Return those that cannot be undone now, the errors, and what was done.

    Nothing is undone of a group that is in use by now. ``later``: after the request was interrupted.
    """
    left: list[AnyUndo] = []
    errors: list[GgsError] = []
    done: list[str] = []
    try:
        for each in steps:
            each.require_unused(call.home, later=later)
    except StateError as error:
        return [], [error], []
    except GgsError as error:
        return list(steps), [error], []
    for each in reversed(steps):
        try:
            text = each.apply(call)
        except GgsError as error:
            left.insert(0, each)
            errors.append(error)
        except OSError as error:
            left.insert(0, each)
            errors.append(DiskError(f"cannot undo a change of the home: {error}"))
        else:
            done += [text] if text else []
    return left, errors, done
