"""Authenticated encryption with AES, and keys derived from other keys; the ``cryptography`` package is used here alone."""

from __future__ import annotations

import os
from typing import Final

NONCE: Final = 12
TAG: Final = 16
KEY_SIZES: Final = (16, 24, 32)


def random_bytes(size: int) -> bytes:
    """Bytes that nobody can guess."""
    return os.urandom(size)


def derived_key(secret: bytes, salt: bytes, purpose: bytes, size: int) -> bytes:
    """A key for one purpose from a secret (HKDF with SHA-256); ``size`` in bytes."""
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(SHA256(), size, salt, purpose).derive(secret)


class Cipher:
    """AES-GCM with one key.  A nonce (12 bytes) must never serve twice under a key."""

    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._gcm = AESGCM(key)

    def encrypt(self, nonce: bytes, data: bytes, beside: bytes = b"") -> bytes:
        """The encrypted bytes and their tag; ``beside`` is not hidden but must be the same at decryption."""
        return self._gcm.encrypt(nonce, data, beside)

    def decrypt(self, nonce: bytes, data: bytes, beside: bytes = b"") -> bytes:
        """The bytes again.  Raises ValueError when they were changed, or the key is another one."""
        from cryptography.exceptions import InvalidTag

        try:
            return self._gcm.decrypt(nonce, data, beside)
        except InvalidTag:
            raise ValueError("damaged, or encrypted with another key") from None
