"""The file ENCKEYS: named keys that trails can be encrypted with."""

from __future__ import annotations

import re
from typing import Final

from ggshell.cipher import KEY_SIZES
from ggshell.errors import ConflictError, NotFoundError, ParameterError, UsageError
from ggshell.files import locked, write_atomically
from ggshell.home.home import Home

FILE: Final = "ENCKEYS"
_LINE: Final = re.compile(r"(\S+)\s+0x([0-9A-Fa-f]+)")
_NAME: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]{0,23}")


def key_of_file(home: Home, name: str) -> bytes:
    """Return the key with a name. Raises NotFoundError; ParameterError if its length is not valid."""
    path = home.root / FILE
    try:
        lines = path.read_text().splitlines()
    except OSError as error:
        raise NotFoundError(f"cannot read {path} to look up key {name}: {error.strerror}", hint=_how(name)) from error
    for number, line in enumerate(lines, 1):
        found = _entry(line)
        if found and found[0].upper() == name.upper():
            if len(found[1]) // 2 not in KEY_SIZES:
                raise ParameterError(
                    f"key {name} has {len(found[1]) * 4} bits",
                    where=f"{path}:{number}",
                    hint="use a key of 128, 192 or 256 bits",
                )
            return bytes.fromhex(found[1])
    raise NotFoundError(f"key {name} is not in {path}", hint=_how(name))


def key_names(home: Home) -> list[str]:
    """Return the names of all keys, in the order of the file."""
    return [found[0] for line in _lines(home) if (found := _entry(line))]


def add_key(home: Home, name: str, key: bytes) -> None:
    """Add a key. Raises UsageError for a name or a length that is not valid, ConflictError if the name exists, DiskError."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name[:80]} is not a valid key name", hint="use at most 24 letters, digits, _ and $")
    if len(key) not in KEY_SIZES:
        raise UsageError(f"a key of {len(key) * 8} bits is not valid", hint="use 128, 192 or 256 bits")
    with locked(home.lock_of_store("enckeys"), FILE, wait=True):
        if name.upper() in (each.upper() for each in key_names(home)):
            raise ConflictError(f"key {name} already exists in {FILE}")
        _write(home, [*_lines(home), f"{name} 0x{key.hex().upper()}"])


def delete_key(home: Home, name: str) -> None:
    """Delete a key. Raises NotFoundError, DiskError."""
    with locked(home.lock_of_store("enckeys"), FILE, wait=True):
        lines = _lines(home)
        kept = [line for line in lines if not (found := _entry(line)) or found[0].upper() != name.upper()]
        if len(kept) == len(lines):
            raise NotFoundError(f"key {name} is not in {home.root / FILE}")
        _write(home, kept)


def _entry(line: str) -> tuple[str, str] | None:
    found = _LINE.fullmatch(line.split("#", maxsplit=1)[0].strip())
    return (found[1], found[2]) if found else None


def _lines(home: Home) -> list[str]:
    path = home.root / FILE
    return path.read_text().splitlines() if path.exists() else []


def _write(home: Home, lines: list[str]) -> None:
    write_atomically(home.root / FILE, "".join(f"{line}\n" for line in lines).encode(), mode=0o600)


def _how(name: str) -> str:
    return f"add this line to it: {name} 0x followed by 32, 48 or 64 hexadecimal digits"
