"""What a trail file says of itself that a pump hands on to the trail that it writes."""

from __future__ import annotations

from typing import NamedTuple


class Seal(NamedTuple):
    """How the rows of a trail file are encrypted: ``algorithm`` (AES128, AES192, AES256), the master key's name and version,
    the file's own salt, and a value by which a wrong key is noticed.  No secret is in it."""

    algorithm: str
    key_name: str
    key_version: int
    salt: bytes
    check: bytes


class TrailFacts(NamedTuple):
    """A trail file's format number, its seal while its rows are still encrypted, and the URIs of the trails on its way, its
    own last."""

    format: int
    seal: Seal | None = None
    uris: tuple[str, ...] = ()
