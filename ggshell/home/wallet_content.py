"""The content of a wallet: its keys, each with the wallet that created it, and marks of the keys that were given up.

Two keys are the same if their fingerprints are equal. An older copy of a wallet is recognized because it lacks a key that
was not given up.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ggshell.cipher import derived_key
from ggshell.home.identity import ID_SIZE, KeyMark, new_id

_FINGERPRINT = b"ggshell key fingerprint"
_FINGERPRINT_SIZE = 8


class KeyEntry(NamedTuple):
    """A version of a key; ``created`` in microseconds since 1970, ``secret`` in hexadecimal digits.

    ``wallet``: the wallet from which MERGE WALLET added the key; empty for the wallet's own keys, which can encrypt.
    """

    name: str
    version: int
    created: int
    secret: str
    deleted: bool = False
    wallet: str = ""

    def __repr__(self) -> str:
        return f"KeyEntry({self.name!r}, {self.version}, wallet={self.wallet!r})"


@dataclass
class WalletContent:
    """The decoded content of a wallet's file.

    ``follows``: the ids of the wallets that it was merged with or replaces. ``gone``: the keys that PURGE WALLET removed or
    that CREATE WALLET ANOTHER gave up.
    """

    id: str
    follows: list[str] = field(default_factory=list)
    keys: list[KeyEntry] = field(default_factory=list)
    gone: list[KeyMark] = field(default_factory=list)

    @classmethod
    def of(cls, document: Any) -> WalletContent:
        """Decode a wallet's file.

        A file from before wallets had ids contains only keys; its id is derived from the first key, so all copies agree.
        """
        if isinstance(document, list):
            first = bytes.fromhex(document[0]["secret"]) if document else b""
            mine = derived_key(first, b"", b"ggshell wallet", ID_SIZE).hex() if first else new_id()
            return cls(mine, [], [KeyEntry(**each) for each in document])
        gone = [KeyMark(*each) for each in document.get("gone", ())]
        return cls(document["id"], list(document["follows"]), [KeyEntry(**each) for each in document["keys"]], gone)

    def document(self) -> dict[str, Any]:
        """Return the document to write to the file."""
        return {
            "id": self.id,
            "follows": self.follows,
            "keys": [each._asdict() for each in self.keys],
            "gone": [list(each) for each in self.gone],
        }

    @property
    def own(self) -> list[KeyEntry]:
        """The keys that were created in this wallet, excluding a second key with the same version from another copy."""
        return [entry for entry in self.keys if not entry.wallet]

    def mark(self, entry: KeyEntry) -> KeyMark:
        """Return the part of a key that may be known outside the wallet; the fingerprint does not reveal the secret."""
        mark = derived_key(bytes.fromhex(entry.secret), b"", _FINGERPRINT, _FINGERPRINT_SIZE).hex()
        return KeyMark(entry.wallet or self.id, entry.name, entry.version, mark)

    def marks(self) -> dict[KeyMark, KeyEntry]:
        return {self.mark(entry): entry for entry in self.keys}

    def missing(self, known: Iterable[KeyMark]) -> list[KeyMark]:
        """Return the keys of ``known`` that the wallet neither contains nor gave up.

        A key without a fingerprint matches any key of the same wallet, name and version.
        """
        there = {*self.marks(), *self.gone}
        return sorted(set(known).difference(there, (mark._replace(fingerprint="") for mark in there)))

    def highest(self, name: str) -> int:
        """Return the highest version of a key name that this wallet has or had, or 0."""
        purged = (mark.version for mark in self.gone if (mark.wallet, mark.name) == (self.id, name))
        mine = (entry.version for entry in self.keys if (entry.wallet or self.id, entry.name) == (self.id, name))
        return max((*mine, *purged), default=0)

    def take_over(self, other: WalletContent) -> int:
        """Add the keys of another wallet, or of another copy of this one; return how many were added.

        A version of this wallet that is missing here becomes its own. A second key of an existing version only decrypts.
        """
        there, more = self.marks(), 0
        for mark, entry in other.marks().items():
            if mark not in there:
                taken = {(mine.name, mine.version) for mine in self.own}
                twin = mark.wallet == self.id and (entry.name, entry.version) not in taken
                self.keys.append(entry._replace(wallet="" if twin else mark.wallet))
                more += 1
        self.keys.sort(key=lambda entry: (entry.wallet, entry.name, entry.version))
        self.follows = _others(self.id, (*self.follows, other.id, *other.follows))
        self.gone = sorted({*self.gone, *other.gone}.difference(self.marks()))
        return more


def _others(mine: str, wallets: Sequence[str]) -> list[str]:
    return [wallet for wallet in dict.fromkeys(wallets) if wallet != mine]


def shown_marks(marks: Iterable[KeyMark]) -> str:
    """Format keys for messages: ``version 2 and 3 of master key X``."""
    of: dict[str, list[str]] = {}
    for mark in marks:
        of.setdefault(mark.name, []).append(str(mark.version))
    return "; ".join(
        f"version{'s'[: len(found) > 1]} {' and '.join(filter(None, (', '.join(found[:-1]), found[-1])))} of master key {name}"
        for name, found in ((name, list(dict.fromkeys(found))) for name, found in of.items())
    )
