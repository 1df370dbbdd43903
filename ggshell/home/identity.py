"""The identity of a home: its id, its folder, and the wallet and keys that encrypt its trails.

A home that was copied also records the original home and the groups that came from it. The slots and checkpoint table rows
of those groups belong to the original until ``take_over``. In a copy of a copy, each group keeps its first owner.

The file contains fingerprints but no secrets. It is not stored in ``dirwlt``, so a home whose ``dirwlt`` is missing or is
an older copy still knows which wallet and which key versions it lost.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple

from ggshell.cipher import random_bytes
from ggshell.errors import StateError, StoreError
from ggshell.files import locked, read_json, write_atomically

FILE: Final = "dirdb/home.json"
_LOCK = "dirdb/.home.lock"
ID_SIZE: Final = 8
COPIED: Final = "GGS-00809"
"""The code of commands that are refused because the object belongs to the home that this one was copied from."""


class Original(NamedTuple):
    """A home that this one was copied from: its folder, its id, its ``row_keys``, and the groups that it owns."""

    root: str
    id: str
    row_keys: str
    groups: tuple[str, ...] = ()

    @property
    def is_there(self) -> bool:
        """Whether the home still exists at its path."""
        there = _identity_or_none(Path(self.root))
        return there is not None and there.id == self.id


class KeyMark(NamedTuple):
    """A version of a master key, without its secret.

    ``wallet``: the id of the wallet that created it. ``fingerprint``: distinguishes two keys of the same name and version.
    """

    wallet: str
    name: str
    version: int
    fingerprint: str


class HomeIdentity(NamedTuple):
    """The identity of a home, as stored in its file.

    ``root``: the home's folder when the file was written. ``wallet``: the id of its wallet, empty if it has none.
    ``keys``: every key that the home's wallet has ever contained. ``row_keys``: the text from which the keys of its
    checkpoint table rows are derived. This is the folder where the home was created; it does not change after a move, and a
    lost home that is created again in the same place has the same value. ``originals``: the homes that this one was copied
    from, the first one first. ``taken``: the ids of the homes that it has taken over.
    """

    id: str
    root: str
    wallet: str = ""
    keys: tuple[KeyMark, ...] = ()
    row_keys: str = ""
    originals: tuple[Original, ...] = ()
    taken: tuple[str, ...] = ()

    @property
    def copied(self) -> tuple[str, ...]:
        """The groups that came from the original homes."""
        return tuple(sorted(group for original in self.originals for group in original.groups))


def new_id() -> str:
    """Return a new id, unique among homes and wallets."""
    return random_bytes(ID_SIZE).hex()


def read_identity(root: Path) -> HomeIdentity | None:
    """Return the identity of a home, or None if it has none. Raises StoreError if the file cannot be read."""
    path = root / FILE
    try:
        return _identity(read_json(path.read_bytes()))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, TypeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is damaged"
        raise StoreError(
            f"home identity file {path} cannot be read: {reason}",
            code="GGS-00801",
            hint=f"restore {FILE} from a backup",
        ) from error


def ensure_identity(root: Path) -> HomeIdentity:
    """Return the identity of a home; create it if there is none. Raises StoreError, DiskError."""
    return read_identity(root) or _changed(root, lambda identity: identity)


def record_location(root: Path) -> str:
    """Record the home's current folder; return a notice if the home was moved, restored or copied, or else an empty text.

    A copy whose original still exists gets its own id. Raises StoreError, DiskError.
    """
    identity = ensure_identity(root)
    before = Path(identity.root)
    if before == root:
        return ""
    if before.exists() and before.samefile(root):
        return ""  # another path to the same folder
    original = _identity_or_none(before)
    if original is not None and original.id == identity.id:
        _changed(root, lambda mine: _as_copy(mine, root))
        return (
            f"This home is a copy of {before}. Its groups cannot be started here, and database objects that {before} owns"
            " cannot be changed from here: see HELP HOMES."
        )
    _changed(root, lambda mine: mine._replace(root=str(root)))
    return f"This home was moved or restored from {before}."


def _as_copy(mine: HomeIdentity, root: Path) -> HomeIdentity:
    """Return the identity of a copy: its current groups came from the original, or from the original's own originals."""
    if Path(mine.root) == root:
        return mine  # another shell has recorded it in the meantime
    original = Original(mine.root, mine.id, mine.row_keys, tuple(sorted(_groups(root) - set(mine.copied))))
    made = new_id()
    row_keys = str(root) if str(root) != mine.row_keys else made
    return mine._replace(id=made, root=str(root), row_keys=row_keys, originals=(*mine.originals, original))


def _groups(root: Path) -> set[str]:
    """Return the groups of a home, by their files."""
    return {
        path.stem.upper()
        for folder in ("dirchk", "dirdb/groups")
        for path in (root / folder).glob("*.cp?")
        if not path.name.startswith(".")
    }


def keys_of(root: Path) -> str:
    """Return the text from which the home's row keys are derived. Raises StoreError, DiskError."""
    return ensure_identity(root).row_keys


def original_of(root: Path, groups: Iterable[str] | None = None) -> Original | None:
    """Return the home that owns one of these groups because the group was copied from it, or None.

    ``groups`` None means all groups that this home has now. Raises StoreError.
    """
    found = read_identity(root)
    if found is None or not found.originals:
        return None
    wanted = _groups(root) if groups is None else {group.upper() for group in groups}
    return next((each for each in found.originals if wanted & set(each.groups)), None)


def copied_groups(root: Path) -> tuple[str, ...]:
    """Return the groups that came from an original, including groups deleted here since. Raises StoreError."""
    found = read_identity(root)
    return found.copied if found is not None else ()


def require_own(root: Path, groups: Iterable[str] | None, what: str) -> None:
    """Check that this home owns the database objects of these groups; for None, of all groups of this home.

    Raises StateError, which names the command ``what``, if another home owns them; StoreError.
    """
    original = original_of(root, groups)
    if original is not None:
        raise StateError(
            f"{what} is not allowed: this home is a copy of {original.root}, which owns the slots, checkpoint rows"
            " and tables of its groups",
            code=COPIED,
            hint=f"run it in {original.root}; or run TAKEOVER HOME after that home was removed; or DELETE the copied groups"
            " here, which removes only files of the copy",
        )


def require_free(root: Path, group: str) -> None:
    """Check that no original that still exists at its path owns a group of this name.

    Slots are named after groups, so both homes would use the same slot. Raises StateError, StoreError.
    """
    original = original_of(root, [group])
    if original is not None and original.is_there:
        raise StateError(
            f"group {group.upper()} cannot be added: this home is a copy of {original.root}, whose slots and checkpoint"
            " rows have that name",
            code=COPIED,
            hint="use another group name",
        )


def make_own(root: Path, group: str) -> None:
    """Record that this home owns a group that is added here, even if an original that no longer exists had one of that name.

    Raises StateError like ``require_free``; StoreError, DiskError.
    """
    require_free(root, group)
    if group.upper() in copied_groups(root):
        _changed(root, lambda mine: mine._replace(originals=tuple(_without(each, group) for each in mine.originals)))


def _without(original: Original, group: str) -> Original:
    return original._replace(groups=tuple(each for each in original.groups if each != group.upper()))


def take_over(root: Path) -> Original:
    """Make a copy the owner of everything that its originals owned; return the first original.

    Raises StateError if the home is not a copy, if an original still exists at its path or in a neighboring folder, or if a
    neighboring copy has taken it over; StoreError, DiskError.
    """
    found = read_identity(root)
    if found is None or not found.originals:
        raise StateError("this home is not a copy of another one: there is nothing to take over")
    for original in found.originals:
        if original.is_there:
            raise StateError(
                f"the original of this home is still in {original.root}: two homes cannot own the same groups",
                code=COPIED,
                hint=f"STOP everything there, remove or archive {original.root}, then run TAKEOVER HOME again",
            )
        _require_none_nearby(root, original)
    first = found.originals[0]
    taken = tuple(each.id for each in found.originals)
    _changed(
        root, lambda mine: mine._replace(row_keys=first.row_keys, originals=(), taken=tuple({*mine.taken, *taken}))
    )
    return first


def _require_none_nearby(root: Path, original: Original) -> None:
    """Check that neither the original nor another copy that has taken it over is in a neighboring folder.

    Neighbors of this home and of the original's old path are searched; homes elsewhere cannot be found. Raises StateError.
    """
    for folder in sorted({*_sibling_folders(Path(original.root)), *_sibling_folders(root)}):
        there = None if folder == root else _identity_or_none(folder)
        why = _owns(there, folder, original) if there is not None else ""
        if why:
            raise StateError(
                why,
                code=COPIED,
                hint=f"START the groups in {folder}; or STOP everything there, remove or archive it, then run TAKEOVER HOME"
                " again",
            )


def _owns(there: HomeIdentity, folder: Path, original: Original) -> str:
    """Return why the home in a folder owns an original's groups, or an empty text."""
    if there.id == original.id:
        return (
            f"the original of this home was moved from {original.root} to {folder}, or {folder} is an unused copy of it:"
            " two homes cannot own the same groups"
        )
    if original.id in there.taken:
        return f"{folder}, another copy of {original.root}, has taken over its groups: two homes cannot own the same groups"
    return ""


def _sibling_folders(folder: Path) -> list[Path]:
    """Return the folders in the parent of a folder, or an empty list if they cannot be listed."""
    try:
        return [each for each in folder.parent.iterdir() if each.is_dir()]
    except OSError:
        return []


def _identity(fields: dict[str, Any]) -> HomeIdentity:
    """Decode an identity. Raises TypeError or ValueError if it is not valid or was changed."""
    checksum = fields.pop("checksum", None)  # earlier releases wrote no checksum
    if checksum is not None and checksum != _checksum(fields):
        raise ValueError("its checksum is wrong")
    single, copied = fields.pop("original", None), fields.pop("copied", ())  # the format of earlier releases
    originals = [Original(**each) for each in fields.pop("originals", ())]
    if single is not None:
        originals = [Original(**single, groups=tuple(copied))]
    keys = tuple(KeyMark(*each) for each in fields.pop("keys", ()))
    taken = tuple(fields.pop("taken", ()))
    originals = [each._replace(groups=tuple(each.groups)) for each in originals]
    found = HomeIdentity(**fields, keys=keys, originals=tuple(originals), taken=taken)
    return found if found.row_keys else found._replace(row_keys=found.root)  # created by an earlier release


def _identity_or_none(root: Path) -> HomeIdentity | None:
    try:
        return read_identity(root)
    except StoreError:
        return None


def note_wallet(root: Path, wallet: str, keys: Iterable[KeyMark] = ()) -> None:
    """Record the home's wallet and the keys in it; recorded keys are never removed. Raises StoreError, DiskError."""
    found, seen = read_identity(root), frozenset(keys)
    if found is None or found.wallet != wallet or not seen <= set(found.keys):
        _changed(root, lambda mine: mine._replace(wallet=wallet, keys=tuple(sorted(seen.union(mine.keys)))))


def known_wallet(root: Path) -> str:
    """Return the id of the wallet that encrypts the home's trails, empty if none is recorded. Raises StoreError."""
    found = read_identity(root)
    return found.wallet if found is not None else ""


def known_keys(root: Path) -> tuple[KeyMark, ...]:
    """Return every key that the home's wallet has ever contained. Raises StoreError."""
    found = read_identity(root)
    return found.keys if found is not None else ()


def _changed(root: Path, change: Callable[[HomeIdentity], HomeIdentity]) -> HomeIdentity:
    """Change or create the identity while holding its lock, because another shell may do the same."""
    with locked(root / _LOCK, "the identity of the home", wait=True):
        identity = change(read_identity(root) or HomeIdentity(new_id(), str(root), row_keys=str(root)))
        fields = {**identity._asdict(), "originals": [each._asdict() for each in identity.originals]}
        write_atomically(root / FILE, json.dumps({**fields, "checksum": _checksum(fields)}, indent=1).encode())
    return identity


def _checksum(fields: dict[str, Any]) -> int:
    """Return the checksum of an identity, because one changed bit would make it a different home or wallet."""
    return zlib.crc32(json.dumps(fields, sort_keys=True).encode())
