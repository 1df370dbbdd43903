"""The wallet: the versions of the master key, which encrypts trails.

Every wallet has an id, which encrypted trail files and the home record. A different wallet whose keys have the same names
and versions is therefore never mistaken for a missing one. The home also records a fingerprint of every key, so an older
copy of the wallet is not mistaken for the newest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from ggshell.cipher import Key, random_bytes
from ggshell.clock import Clock
from ggshell.errors import ConflictError, NotFoundError, StateError
from ggshell.home.home import Home
from ggshell.home.identity import KeyMark, known_keys, known_wallet, new_id, note_wallet
from ggshell.home.key_file import key_of_file
from ggshell.home.sealed_file import SealedFile
from ggshell.home.wallet_content import KeyEntry, WalletContent, shown_marks

DEFAULT_NAME = "OGG_DEFAULT_MASTERKEY"
_FILE, _SIZE = "cwallet.sso", 32
_LONGEST = 32_767
"""The maximum number of versions, from GoldenGate's documentation."""


class KeyStatus(Enum):
    """The status of a version: CURRENT encrypts, AVAILABLE only decrypts, DELETED is removed by PURGE WALLET."""

    CURRENT = "Current"
    AVAILABLE = "Available"
    DELETED = "Deleted"


class KeyVersion(NamedTuple):
    """A version of the master key, without its secret; ``created`` in microseconds since 1970."""

    number: int
    created: int
    status: KeyStatus


class Merged(NamedTuple):
    """The result of MERGE WALLET: the other wallet's id, and the number of master key versions that were added."""

    wallet: str
    versions: int


class Wallet:
    """The keys, by name and version, in an encrypted file; ``location`` is WALLETLOCATION, ``name`` is MASTERKEYNAME.

    Operations that encrypt or that change keys require a wallet with all keys that the home has ever recorded.
    """

    def __init__(self, home: Home, location: str = "", name: str = "") -> None:
        self.folder = home.resolve(location or "dirwlt")
        self.name = name or DEFAULT_NAME
        self._home = home
        self._file = self._sealed(self.folder, "the wallet", "create it with CREATE WALLET")

    @property
    def exists(self) -> bool:
        return self._file.exists

    @property
    def id(self) -> str:
        """The wallet's id. Raises NotFoundError, StoreError."""
        return self._load().id

    @property
    def follows(self) -> tuple[str, ...]:
        """The ids of the wallets that this one was merged with or replaces; it continues their trails."""
        return tuple(self._load().follows)

    def create(self, follows: Sequence[str] = (), *, another: bool = False) -> None:
        """Create an empty wallet.

        ``follows``: the ids of the wallets that the home's trails name. ``another``: create the wallet even if the home or
        its trails use another one, and give up that wallet's keys. Raises ConflictError if a wallet exists here; StateError
        if another one is in use and ``another`` is not set.
        """
        lost = [each for each in dict.fromkeys((known_wallet(self._home.root), *follows)) if each]
        with self._file.changing():
            if self.exists:
                raise ConflictError(f"a wallet already exists in {self.folder}", hint="open it with OPEN WALLET")
            if lost and not another:
                raise StateError(
                    f"the trails of this home are encrypted with wallet {', '.join(lost)}, which is not in {self.folder};"
                    " a new wallet cannot decrypt them",
                    code="GGS-00802",
                    hint="restore dirwlt from a backup, or create a new wallet anyway with CREATE WALLET ANOTHER",
                )
            content = WalletContent(new_id(), lost, gone=list(known_keys(self._home.root)))
            self._file.save(content.document())
        note_wallet(self._home.root, content.id)

    def claim(self) -> str:
        """Check that this is the home's wallet, record its keys in the home, and return its id.

        The wallet must have the recorded id and all recorded keys. Raises StateError for another wallet or an older copy,
        NotFoundError if there is none.
        """
        content = self._required()
        note_wallet(self._home.root, content.id, content.marks())
        return content.id

    def merge(self, folder: str) -> Merged:
        """Add the keys of another wallet, or of another copy of this one, so that data that either encrypted can be read.

        Raises NotFoundError if there is no wallet in the folder, ConflictError if it is the folder of this wallet.
        """
        place = self._home.resolve(folder)
        if place.exists() and self.folder.exists() and place.samefile(self.folder):
            raise ConflictError(
                f"{place} is the folder of this home's own wallet", hint="specify the folder of another wallet"
            )
        other = self._sealed(place, f"the wallet in {place}", "specify the folder of another wallet")
        with self._file.changing():
            mine, theirs = self._load(), WalletContent.of(other.load())
            more = mine.take_over(theirs)
            self._file.save(mine.document())
            if self._fault(mine) is None:
                note_wallet(self._home.root, mine.id, mine.marks())
        return Merged(theirs.id, more)

    def merged(self) -> list[tuple[str, str, int]]:
        """Return the keys that came from other wallets or copies: wallet id, key name and version."""
        return [(each.wallet, each.name, each.version) for each in self._load().keys if each.wallet]

    def missing(self, seen: Iterable[KeyMark] = ()) -> list[KeyMark]:
        """Return the keys that the home has recorded or its trails name (``seen``) but that the wallet lacks.

        Keys that were purged are not included.
        """
        return self._missing(self._load(), seen)

    def check(self, seen: Iterable[KeyMark] = ()) -> None:
        """Check that the wallet is the home's and is complete.

        Raises NotFoundError if there is no wallet, StoreError if it cannot be read, and StateError if it is a different
        wallet or an older copy.
        """
        self._required(seen)

    def add(self, clock: Clock, *, renew: bool = False, seen: Sequence[KeyMark] = ()) -> int:
        """Create a version of the master key, which encrypts from now on; return its number, which was never used before.

        ``seen``: the keys that the home's trail files name. Raises ConflictError if the key exists and ``renew`` is not
        set, NotFoundError if there is no key to renew, StateError for another wallet, an older copy or too many versions.
        """
        with self._file.changing():
            content = self._required(seen)
            mine = [entry for entry in content.own if entry.name == self.name]
            if mine and not renew:
                raise ConflictError(
                    f"master key {self.name} already exists", hint="create a new version with RENEW MASTERKEY"
                )
            if renew and not mine:
                raise self._no_key()
            number = max(content.highest(self.name), *self._used(content.id, seen), 0) + 1
            if number > _LONGEST:
                raise StateError(f"master key {self.name} already has the maximum of {_LONGEST} versions")
            content.keys.append(KeyEntry(self.name, number, clock.now(), random_bytes(_SIZE).hex()))
            self._file.save(content.document())
            note_wallet(self._home.root, content.id, content.marks())
        return number

    def mark(self, first: int, last: int, *, deleted: bool) -> list[int]:
        """Mark versions as deleted, or remove the mark; return the versions that were changed.

        In a range, the current version is skipped. Raises NotFoundError if nothing in the range can be changed, and
        StateError if the current version alone is to be deleted.
        """
        with self._file.changing():
            content = self._required()
            current = self._current(content)
            changed = []
            for place, entry in enumerate(content.keys):
                mine = not entry.wallet and entry.name == self.name and first <= entry.version <= last
                if mine and entry.deleted != deleted:
                    if deleted and entry.version == current and first == last:
                        raise StateError(
                            f"version {current} of master key {self.name} is the current one and cannot be deleted",
                            hint="run RENEW MASTERKEY first",
                        )
                    if deleted and entry.version == current:
                        continue
                    content.keys[place] = entry._replace(deleted=deleted)
                    changed.append(entry.version)
            if not changed:
                state = "can be deleted" if deleted else "is marked as deleted"
                span = f"no version from {first} to {last} that" if first < last else f"no version {first} that"
                raise NotFoundError(
                    f"master key {self.name} has {span} {state}", hint="list the versions with INFO MASTERKEY"
                )
            self._file.save(content.document())
        return changed

    def deleted(self) -> list[KeyMark]:
        """Return the versions that PURGE WALLET would remove."""
        content = self._load()
        return [content.mark(entry) for entry in content.keys if entry.deleted]

    def purge(self) -> int:
        """Permanently remove the versions that are marked as deleted; return their number."""
        with self._file.changing():
            content = self._required()
            deleted = [entry for entry in content.keys if entry.deleted]
            content.gone = sorted({*content.gone, *map(content.mark, deleted)})
            content.keys = [entry for entry in content.keys if not entry.deleted]
            self._file.save(content.document())
        return len(deleted)

    def versions(self) -> list[KeyVersion]:
        """Return all versions of the master key, oldest first."""
        content = self._load()
        current = self._current(content)
        return [
            KeyVersion(entry.version, entry.created, _status(entry, current))
            for entry in content.own
            if entry.name == self.name
        ]

    def current(self) -> int:
        """Return the number of the version that encrypts. Raises NotFoundError."""
        number = self._current(self._load())
        if number is None:
            raise self._no_key()
        return number

    def keys(self, name: str, version: int) -> tuple[Key, ...]:
        """Return the keys with a name and a version, the wallet's own first; version 0 is the key in the key file.

        There can be more than one after MERGE WALLET. Raises NotFoundError if there is none; ParameterError.
        """
        if version == 0:
            return (Key(key_of_file(self._home, name)),)
        content = self._load()
        found = [entry for entry in content.keys if (entry.name, entry.version) == (name, version)]
        if not found:
            highest = content.highest(name)
            older = f"; the newest version in this copy is {highest}" if 0 < highest < version else ""
            raise NotFoundError(
                f"version {version} of master key {name} is not in wallet {content.id} in {self.folder}{older}",
                code="OGG-06129",
                hint="restore dirwlt from the newest backup, or copy the wallet of the system that wrote the trail",
            )
        found.sort(key=lambda entry: bool(entry.wallet))
        return tuple(Key(bytes.fromhex(entry.secret), entry.wallet or content.id) for entry in found)

    def _sealed(self, folder: Path, what: str, remedy: str) -> SealedFile:
        """Return a wallet's file.

        A wallet inside the home uses the home's lock. A wallet elsewhere can be shared by homes and has its own lock.
        """
        inside = folder.is_relative_to(self._home.root)
        lock = self._home.lock_of_store("wallet") if inside else folder / ".cwallet.lock"
        return SealedFile(folder / _FILE, b"GGSWALL1", what, remedy, lock)

    def _required(self, seen: Iterable[KeyMark] = ()) -> WalletContent:
        """Return the content of the home's wallet. Raises StateError if it is a different wallet or an older copy."""
        content = self._load()
        fault = self._fault(content, seen)
        if fault is not None:
            raise fault
        return content

    def _fault(self, content: WalletContent, seen: Iterable[KeyMark] = ()) -> StateError | None:
        known = known_wallet(self._home.root)
        if known and known not in (content.id, *content.follows):
            return StateError(
                f"this home encrypts with wallet {known}, but the wallet in {self.folder} is {content.id}",
                code="GGS-00802",
                hint=f"restore dirwlt from a backup, then add the keys of wallet {content.id} with MERGE WALLET",
            )
        missing = self._missing(content, seen)
        return self._older(content, missing) if missing else None

    def _missing(self, content: WalletContent, seen: Iterable[KeyMark]) -> list[KeyMark]:
        named = (mark for mark in seen if mark.wallet == content.id)
        return content.missing((*known_keys(self._home.root), *named))

    def _older(self, content: WalletContent, missing: Sequence[KeyMark]) -> StateError:
        numbers = {(entry.name, entry.version) for entry in content.keys}
        other = [mark for mark in missing if (mark.name, mark.version) in numbers]
        lacks = [mark for mark in missing if mark not in other]
        said = [f"it lacks {shown_marks(lacks)}"] if lacks else []
        said += [f"it holds a different key than this home used for {shown_marks(other)}"] if other else []
        return StateError(
            f"wallet {content.id} in {self.folder} is not the newest copy that this home has used: {'; '.join(said)}",
            code="GGS-00808",
            hint="restore the newest dirwlt, or add its keys with MERGE WALLET. If it is permanently lost, move dirwlt away,"
            " then run CREATE WALLET ANOTHER, ADD MASTERKEY and MERGE WALLET with the folder that you moved: trail files"
            f" encrypted with {shown_marks(missing)} remain unreadable",
        )

    def _used(self, wallet: str, seen: Iterable[KeyMark]) -> list[int]:
        """Return the key's version numbers that the home has recorded or its trails name, including marks without wallet."""
        known = (*known_keys(self._home.root), *seen)
        return [mark.version for mark in known if mark.name == self.name and mark.wallet in ("", wallet)]

    def _current(self, content: WalletContent) -> int | None:
        numbers = [entry.version for entry in content.own if entry.name == self.name and not entry.deleted]
        return max(numbers, default=None)

    def _load(self) -> WalletContent:
        """Read the wallet. Raises NotFoundError, which names the wallet that the home has lost; StoreError."""
        try:
            return WalletContent.of(self._file.load())
        except NotFoundError as error:
            known = known_wallet(self._home.root)
            if not known:
                raise
            raise NotFoundError(
                f"wallet {known}, with which this home encrypts its trails, is not in {self.folder}",
                code="GGS-00803",
                hint="restore dirwlt from a backup",
            ) from error

    def _no_key(self) -> NotFoundError:
        return NotFoundError(
            f"master key {self.name} does not exist in the wallet", hint="create it with ADD MASTERKEY"
        )


def _status(entry: KeyEntry, current: int | None) -> KeyStatus:
    if entry.deleted:
        return KeyStatus.DELETED
    return KeyStatus.CURRENT if entry.version == current else KeyStatus.AVAILABLE
