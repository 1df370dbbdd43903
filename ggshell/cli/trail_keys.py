"""Finds the trail files whose headers name keys of the wallet, and the groups that still read them."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from ggshell.cli.session import Session
from ggshell.cli.trails import written
from ggshell.errors import TrailError
from ggshell.home.identity import KeyMark
from ggshell.types import TrailPosition

if TYPE_CHECKING:
    from ggshell.trail.name import TrailName

FILES_OF_KEY: Final = "GGS-00810"
"""Existing trail files are encrypted with a key version that is deleted or is to be purged."""
NEXT_STEP: Final = (
    "stop and start the groups that write these trails (only a start uses the current version, in a new file), wait until"
    " every reader has finished with the files, and remove them with PURGE EXTTRAIL"
)
_SHOWN = 5


class SealedTrailFile(NamedTuple):
    """A trail file, and the key that its header names, without a fingerprint."""

    name: TrailName
    seqno: int
    key: KeyMark


class _Reader(NamedTuple):
    """A trail, a group that reads it, and the file that the group has reached."""

    trail: TrailName
    group: str
    seqno: int


def keys_of_trails(session: Session) -> list[KeyMark]:
    """Return the keys, without fingerprints, that trail files name: files of the home's groups, and those in dirdat."""
    return list(dict.fromkeys(file.key for name in sorted(_written(session)) for file in _sealed(name)))


def files_of(session: Session, marks: Collection[KeyMark]) -> str:
    """Describe the trail files that are encrypted with one of the keys: their names, versions and readers.

    Returns an empty text if there are none. The search covers the trails that the home's groups write and read, and
    those in dirdat.
    """
    if not marks:
        return ""
    wanted = {mark._replace(fingerprint="") for mark in marks}
    wanted |= {mark._replace(wallet="") for mark in wanted}  # a file written before wallets had IDs
    readers = list(_readers(session))
    names = _written(session) | {reader.trail for reader in readers}
    found = [file for name in sorted(names) for file in _sealed(name) if file.key in wanted]
    if not found:
        return ""
    shown = [_shown(file, readers) for file in found[:_SHOWN]]
    more = f"; and {len(found) - _SHOWN:,} more" if len(found) > _SHOWN else ""
    files = "trail file is" if len(found) == 1 else "trail files are"
    return f"{len(found):,} {files} encrypted with a version that is marked as deleted: {'; '.join(shown)}{more}"


def _shown(file: SealedTrailFile, readers: Collection[_Reader]) -> str:
    path = file.name.file(file.seqno)
    names = [group for trail, group, seqno in readers if trail == file.name and seqno <= file.seqno]
    needed = f", which {' and '.join(names)} still {'need' if len(names) > 1 else 'needs'}" if names else ""
    return f"{path} (version {file.key.version}{needed})"


def _written(session: Session) -> set[TrailName]:
    from ggshell.trail.name import TrailName

    folder = session.home.resolve("dirdat")
    names = {
        TrailName.parse(target.trail, session.home.root) for _, target in written(session) if not target.is_elsewhere
    }
    return names | {TrailName(folder, path.name[:2]) for path in folder.glob("??" + "[0-9]" * 9)}


def _readers(session: Session) -> Iterator[_Reader]:
    from ggshell.trail.name import TrailName

    for entry in session.home.groups():
        if entry.checkpoint is not None and entry.checkpoint.read.trail:
            read = entry.checkpoint.read
            seqno = read.current.seqno if isinstance(read.current, TrailPosition) else 0
            yield _Reader(TrailName.parse(read.trail, session.home.root), f"{entry.type} {entry.group}", seqno)


def _sealed(name: TrailName) -> Iterator[SealedTrailFile]:
    from ggshell.trail.opened import open_file

    for seqno in name.sequences():
        with contextlib.suppress(TrailError, FileNotFoundError):  # a damaged or purged file names no key
            file = open_file(name, seqno)
            file.close()
            if file.header.seal is not None and file.header.seal.protection.key_version:
                key = file.header.seal.protection
                yield SealedTrailFile(name, seqno, KeyMark(key.wallet, key.key_name, key.key_version, ""))
