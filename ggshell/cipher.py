"""Authenticated encryption with AES and key derivation. This is the only module that uses the ``cryptography`` package."""

from __future__ import annotations

import os
from typing import Final, NamedTuple

NONCE: Final = 12
TAG: Final = 16
KEY_SIZES: Final = (16, 24, 32)


class Key(NamedTuple):
    """A secret key and the id of the wallet that created it; the id is empty for a key from the key file."""

    secret: bytes
    wallet: str = ""

    def __repr__(self) -> str:
        return f"Key(wallet={self.wallet!r})"


def random_bytes(size: int) -> bytes:
    """Return cryptographically secure random bytes."""
    return os.urandom(size)


def derived_key(secret: bytes, salt: bytes, purpose: bytes, size: int) -> bytes:
    """Derive a key for one purpose from a secret (HKDF with SHA-256); ``size`` is in bytes."""
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(SHA256(), size, salt, purpose).derive(secret)


class Cipher:
    """AES-GCM with one key. A nonce (12 bytes) must never be used twice with the same key."""

    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._gcm = AESGCM(key)

    def encrypt(self, nonce: bytes, data: bytes, beside: bytes = b"") -> bytes:
        """Return the encrypted bytes and their tag; ``beside`` is authenticated but not encrypted."""
        return self._gcm.encrypt(nonce, data, beside)

    def decrypt(self, nonce: bytes, data: bytes, beside: bytes = b"") -> bytes:
        """Return the decrypted bytes. Raises ValueError if they were changed or were encrypted with another key."""
        from cryptography.exceptions import InvalidTag

        try:
            return self._gcm.decrypt(nonce, data, beside)
        except InvalidTag:
            raise ValueError("damaged, or encrypted with another key") from None
