"""EDIT PARAMS in a connected shell: the file of the other home in an editor of this machine.

Masked passwords stay what they are; the service puts them back. A file that the service refuses stays on this machine, so
that nothing that was typed is lost.
"""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from ggshell.cli.results import Message, Note
from ggshell.errors import GgsError, HttpError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ggshell.client.remote import Remote

_FILES: Final = "/config/files"
_MISSING: Final = 404
_GLOBALS: Final = ("GLOBALS", "./GLOBALS")


def edit(remote: Remote, name: str, editor: Callable[[Path], None]) -> Message:
    """Fetch a parameter file, open it with ``editor``, and store it if it was changed.

    Raises UsageError for a file that is not a parameter file of the other home, HttpError if the service refuses it.
    """
    file = file_name(name)
    path = f"{_FILES}/{quote(file, safe='')}"
    text, tag = _fetched(remote, path)
    folder = Path(tempfile.mkdtemp(prefix="ggshell-edit-"))
    copy = folder / file
    copy.write_text(text, encoding="utf-8")
    try:
        editor(copy)
        changed = copy.read_text(encoding="utf-8", errors="replace")
    except BaseException:
        _remove(copy)
        raise
    if changed == text:
        _remove(copy)
        return Message()
    try:
        method, headers = ("PUT", {"If-Match": tag}) if tag else ("POST", {})
        reply = remote.request(method, path, {"lines": changed.splitlines()}, headers)
    except GgsError as error:
        kept = f"your file is kept as {copy}"
        error.hint = f"{error.hint}; {kept}" if error.hint else kept
        raise
    _remove(copy)
    notes = tuple(Note(each.code, each.title) for each in reply.messages if each.severity != "INFO")
    return Message((f"{file} is saved at {remote.url}.",), notes=notes)


def file_name(name: str) -> str:
    """Return the name by which the service knows a parameter file. Raises UsageError for a file elsewhere."""
    if name.upper() in _GLOBALS:
        return _GLOBALS[0]
    path = Path(name)
    if path.parent.as_posix() not in (".", "dirprm"):
        raise UsageError(f"{name} is not in dirprm", hint="edit other files of the home on its machine")
    if path.suffix.lower() in (".prm", ".inc"):
        return path.name
    return "mgr.prm" if name.upper() in ("MGR", "MANAGER") else f"{name.lower()}.prm"


def _fetched(remote: Remote, path: str) -> tuple[str, str]:
    """Return a file's text and its entity tag, both empty if it does not exist. Raises HttpError."""
    try:
        reply = remote.request("GET", path)
    except HttpError as error:
        if error.status != _MISSING:
            raise
        return "", ""
    lines = reply.response.get("lines")
    text = "".join(f"{line}\n" for line in lines) if isinstance(lines, list) else ""
    return text, reply.headers.get("etag", "")


def _remove(copy: Path) -> None:
    """Remove the copy with its folder; other files that an editor left there stay."""
    copy.unlink(missing_ok=True)
    with suppress(OSError):
        copy.parent.rmdir()
