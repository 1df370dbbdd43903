"""Encrypted trails: the data areas and user tokens of rows under AES-GCM, with a key of each file's own.

The file's key is derived from a master key and a salt in the file's header.  A sealed area is a nonce (12 bytes), the
encrypted bytes, and a tag (16 bytes) that shows any change.  A nonce is 6 random bytes of the writer's run and a counter, so
that none serves twice though a torn tail was cut off and written again.  Empty areas stay empty.  Lengths, operation types,
table definitions, times and transaction ids stay in the clear.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Final, NamedTuple

import numpy as np

from ggshell.cipher import KEY_SIZES, NONCE, TAG, Cipher, derived_key, random_bytes
from ggshell.errors import TrailError
from ggshell.record.change import Areas, ChangeBatch

ALGORITHMS: Final = ("AES128", "AES192", "AES256")
OVERHEAD: Final = NONCE + TAG
_SALT, _CHECK, _RUN, _COUNTER = 16, 8, 6, 6
_ROWS, _PROBE = b"ggshell trail rows", b"ggshell trail check"

Keys = Callable[[str, int], bytes]
"""The secret behind a key's name and version (0: a key of the key file).  Raises NotFoundError."""


class Protection(NamedTuple):
    """How a trail is to be encrypted: the algorithm, and which key's version."""

    algorithm: str
    key_name: str
    key_version: int = 0


class Seal(NamedTuple):
    """How the rows of a file are encrypted, as its header says: with what, the file's own salt, and a value by which a wrong
    key is noticed.  No secret is in it."""

    protection: Protection
    salt: bytes
    check: bytes

    def encode(self) -> bytes:
        """The token's value: index of the algorithm (1), version (4), salt (16), check (8), the key's name."""
        what = self.protection
        index = ALGORITHMS.index(what.algorithm).to_bytes(1, "big")
        return index + what.key_version.to_bytes(4, "big") + self.salt + self.check + what.key_name.encode()

    @classmethod
    def decode(cls, value: bytes) -> Seal:
        """Raises ValueError."""
        if len(value) < 5 + _SALT + _CHECK or value[0] >= len(ALGORITHMS):
            raise ValueError("a seal with its salt and check")
        what = Protection(
            ALGORITHMS[value[0]],
            value[5 + _SALT + _CHECK :].decode(errors="replace"),
            int.from_bytes(value[1:5], "big"),
        )
        return cls(what, value[5 : 5 + _SALT], value[5 + _SALT : 5 + _SALT + _CHECK])


class RowCipher:
    """Seals and opens the rows of one file."""

    def __init__(self, seal: Seal, secret: bytes) -> None:
        size = KEY_SIZES[ALGORITHMS.index(seal.protection.algorithm)]
        self.seal = seal
        self._cipher = Cipher(derived_key(secret, seal.salt, _ROWS, size))
        self._run = random_bytes(_RUN)
        self._number = count()

    def close_rows(self, batch: ChangeBatch) -> ChangeBatch:
        """The batch with its data areas and user tokens sealed, in a buffer of their own."""
        areas, data = self._sealed(batch, Areas(batch.start, batch.length), 0)
        parts, tokens = [data], None
        if batch.user_tokens is not None:
            tokens, more = self._sealed(batch, batch.user_tokens, len(data))
            parts.append(more)
        return replace(batch, buffer=b"".join(parts), start=areas.start, length=areas.length, user_tokens=tokens)

    def open_rows(self, batch: ChangeBatch, file: object = "") -> ChangeBatch:
        """The batch in the clear.  Raises TrailError naming the RBA of a row that cannot be opened."""
        areas, data = self._opened(batch, Areas(batch.start, batch.length), 0, file)
        parts, tokens = [data], None
        if batch.user_tokens is not None:
            tokens, more = self._opened(batch, batch.user_tokens, len(data), file)
            parts.append(more)
        return replace(batch, buffer=b"".join(parts), start=areas.start, length=areas.length, user_tokens=tokens)

    def open_area(self, area: bytes) -> bytes:
        """One area in the clear.  Raises ValueError."""
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
    """The cipher of a new file, with a salt of its own.  Raises NotFoundError when the key is not there."""
    secret, salt = keys(protection.key_name, protection.key_version), random_bytes(_SALT)
    return RowCipher(Seal(protection, salt, _check(secret, salt)), secret)


def cipher_of(seal: Seal, keys: Keys, file: object = "") -> RowCipher:
    """The cipher of a file that there is.  Raises NotFoundError, TrailError when the key is not the one that it was."""
    secret = keys(seal.protection.key_name, seal.protection.key_version)
    if _check(secret, seal.salt) != seal.check:
        raise TrailError(
            f"trail file {file} is encrypted with another key {seal.protection.key_name},"
            f" version {seal.protection.key_version}",
            where=f"{file}, RBA 0",
            hint="copy the wallet of the system that wrote it",
        )
    return RowCipher(seal, secret)


def _check(secret: bytes, salt: bytes) -> bytes:
    return derived_key(secret, salt, _PROBE, _CHECK)
