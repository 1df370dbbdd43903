"""Encrypted trails: the data areas and user tokens of rows are encrypted with AES-GCM, with one key per file.

The file's key is derived from a master key and a salt in the file's header. An encrypted area is a nonce (12 bytes), the
encrypted bytes, and a tag (16 bytes) that detects any change. A nonce is 6 random bytes per writer and a counter, so no
nonce is used twice, even if a torn tail is cut off and written again. Empty areas stay empty. Lengths, operation types,
table definitions, times and transaction ids are not encrypted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from typing import Final, NamedTuple

import numpy as np

from ggshell.cipher import KEY_SIZES, NONCE, TAG, Cipher, Key, derived_key, random_bytes
from ggshell.errors import NotFoundError, TrailError
from ggshell.record.change import Areas, ChangeBatch

ALGORITHMS: Final = ("AES128", "AES192", "AES256")
OVERHEAD: Final = NONCE + TAG
_SALT, _CHECK, _RUN, _COUNTER = 16, 8, 6, 6
_ROWS, _PROBE = b"ggshell trail rows", b"ggshell trail check"

Keys = Callable[[str, int], Sequence[Key]]
"""Returns the keys of a name and version (0: from the key file), the one that encrypts first. Raises NotFoundError."""


class Protection(NamedTuple):
    """How a trail is encrypted: the algorithm, the key's name and version, and the id of the wallet that holds the key.

    The wallet's id is empty for a key from the key file, and in files written before wallets had ids."""

    algorithm: str
    key_name: str
    key_version: int = 0
    wallet: str = ""

    @property
    def key(self) -> str:
        """The key's description for messages: name, version and wallet."""
        version = f", version {self.key_version}" if self.key_version else ""
        return f"key {self.key_name}{version}{f' of wallet {self.wallet}' if self.wallet else ''}"

    def is_as(self, wanted: Protection | None) -> bool:
        """Whether a file with this encryption meets the wanted one; without a wallet id, any wallet matches."""
        return wanted is not None and self[:3] == wanted[:3] and wanted.wallet in ("", self.wallet)


class Seal(NamedTuple):
    """The encryption of a file's rows, from its header: the protection, the file's salt, and a value to detect a wrong key.

    It contains no secret."""

    protection: Protection
    salt: bytes
    check: bytes

    def encode(self) -> bytes:
        """Encode the token's value: index of the algorithm (1 byte), version (4), salt (16), check (8), the key's name.

        The wallet's id is a separate token."""
        what = self.protection
        index = ALGORITHMS.index(what.algorithm).to_bytes(1, "big")
        return index + what.key_version.to_bytes(4, "big") + self.salt + self.check + what.key_name.encode()

    @classmethod
    def decode(cls, value: bytes) -> Seal:
        """Decode the token's value. Raises ValueError."""
        if len(value) < 5 + _SALT + _CHECK or value[0] >= len(ALGORITHMS):
            raise ValueError("a seal with its salt and check")
        what = Protection(
            ALGORITHMS[value[0]],
            value[5 + _SALT + _CHECK :].decode(errors="replace"),
            int.from_bytes(value[1:5], "big"),
        )
        return cls(what, value[5 : 5 + _SALT], value[5 + _SALT : 5 + _SALT + _CHECK])


class RowCipher:
    """Encrypts and decrypts the rows of one file."""

    def __init__(self, seal: Seal, secret: bytes) -> None:
        size = KEY_SIZES[ALGORITHMS.index(seal.protection.algorithm)]
        self.seal = seal
        self._cipher = Cipher(derived_key(secret, seal.salt, _ROWS, size))
        self._run = random_bytes(_RUN)
        self._number = count()

    def close_rows(self, batch: ChangeBatch) -> ChangeBatch:
        """Return the batch with its data areas and user tokens encrypted, in a new buffer."""
        areas, data = self._sealed(batch, Areas(batch.start, batch.length), 0)
        parts, tokens = [data], None
        if batch.user_tokens is not None:
            tokens, more = self._sealed(batch, batch.user_tokens, len(data))
            parts.append(more)
        return replace(batch, buffer=b"".join(parts), start=areas.start, length=areas.length, user_tokens=tokens)

    def open_rows(self, batch: ChangeBatch, file: object = "") -> ChangeBatch:
        """Return the batch decrypted. Raises TrailError with the RBA of a row that cannot be decrypted."""
        areas, data = self._opened(batch, Areas(batch.start, batch.length), 0, file)
        parts, tokens = [data], None
        if batch.user_tokens is not None:
            tokens, more = self._opened(batch, batch.user_tokens, len(data), file)
            parts.append(more)
        return replace(batch, buffer=b"".join(parts), start=areas.start, length=areas.length, user_tokens=tokens)

    def open_area(self, area: bytes) -> bytes:
        """Decrypt one area. Raises ValueError."""
        if not area:
            return area
        if len(area) < OVERHEAD:
            raise ValueError("too short for an encrypted area")
        return self._cipher.decrypt(area[:NONCE], area[NONCE:])

    def _sealed(self, batch: ChangeBatch, areas: Areas, first: int) -> tuple[Areas, bytes]:
        view, encrypt, run, number = memoryview(batch.buffer), self._cipher.encrypt, self._run, self._number
        out: list[bytes] = []
        for start, length in zip(areas.start.tolist(), areas.length.tolist(), strict=True):
            if length:
                nonce = run + next(number).to_bytes(_COUNTER, "big")
                out += (nonce, encrypt(nonce, bytes(view[start : start + length])))
        length = np.where(areas.length > 0, areas.length + OVERHEAD, 0)
        return Areas(first + np.cumsum(length) - length, length), b"".join(out)

    def _opened(self, batch: ChangeBatch, areas: Areas, first: int, file: object) -> tuple[Areas, bytes]:
        view, out = memoryview(batch.buffer), list[bytes]()
        for row, (start, length) in enumerate(zip(areas.start.tolist(), areas.length.tolist(), strict=True)):
            try:
                out.append(self.open_area(bytes(view[start : start + length])))
            except ValueError as error:
                raise TrailError(
                    f"a row of trail file {file} cannot be decrypted: {error}",
                    where=f"{file}, RBA {int(batch.rba[row])}",
                ) from None
        length = np.fromiter(map(len, out), dtype=np.int64, count=len(out))
        return Areas(first + np.cumsum(length) - length, length), b"".join(out)


def new_cipher(protection: Protection, keys: Keys) -> RowCipher:
    """Return the cipher of a new file, with a new salt.

    Raises NotFoundError if the key does not exist, TrailError if only another wallet has a key of that name."""
    found, salt = keys(protection.key_name, protection.key_version), random_bytes(_SALT)
    key = next((each for each in found if protection.wallet in ("", each.wallet)), None)
    if key is None:
        raise TrailError(
            f"the trail must be encrypted with {protection.key}, but the wallet here is {found[0].wallet}",
            code="GGS-00802",
            hint="restore dirwlt from a backup, or restart the group to write with another wallet",
        )
    return RowCipher(Seal(protection._replace(wallet=key.wallet), salt, _check(key.secret, salt)), key.secret)


def cipher_of(seal: Seal, keys: Keys, file: object = "") -> RowCipher:
    """Return the cipher of an existing file.

    Raises NotFoundError if the key does not exist, TrailError if it is not the key that the file was encrypted with."""
    what = seal.protection
    try:
        found = keys(what.key_name, what.key_version)
    except NotFoundError as error:
        raise NotFoundError(
            f"trail file {file} is encrypted with {what.key}: {error.message}",
            code=error.code,
            where=f"{file}, RBA 0",
            hint=_RESTORE if what.key_version else error.hint,
        ) from error
    for key in found:
        if _check(key.secret, seal.salt) == seal.check:
            return RowCipher(seal, key.secret)
    mine = found[0].wallet
    if what.wallet and what.wallet in {key.wallet for key in found}:
        other = "the wallet here holds a different key for that version"
    else:
        other = f"the wallet here is {mine}" if what.wallet and mine else "the key of that name here is a different one"
    raise TrailError(
        f"trail file {file} is encrypted with {what.key}, but {other}",
        code="GGS-00802",
        where=f"{file}, RBA 0",
        hint=f"{_RESTORE}; combine two wallets, or two copies of one, with MERGE WALLET"
        if what.key_version
        else "restore ENCKEYS from a backup",
    )


def check_same_wallet(before: Seal, wanted: Protection, follows: Sequence[str], keys: Keys, file: object) -> None:
    """Refuse to continue a trail with a different wallet, or an older copy of its wallet, than it was written with.

    A reader of the trail has only one wallet and could not decrypt all of it. ``before``: the encryption of an existing
    file; ``wanted``: that of the next file; ``follows``: the wallets that this one was merged with or replaces. Raises
    TrailError, NotFoundError.
    """
    old = before.protection
    if old.wallet and wanted.wallet and old.wallet != wanted.wallet:
        if old.wallet not in follows:
            raise TrailError(
                f"trail file {file} is encrypted with {old.key}, but the wallet here is {wanted.wallet}",
                code="GGS-00802",
                where=f"{file}, RBA 0",
                hint=f"{_RESTORE}; combine two wallets with MERGE WALLET",
            )
    elif old.key_name == wanted.key_name and old.key_version >= wanted.key_version:
        cipher_of(before, keys, file)  # an older copy of the wallet lacks this version, or has a different key for it


def _check(secret: bytes, salt: bytes) -> bytes:
    return derived_key(secret, salt, _PROBE, _CHECK)


_RESTORE = "restore dirwlt from the newest backup, or copy the wallet of the system that wrote the trail"
