"""A damaged identity of a home is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from ggshell.errors import DiskError, StoreError
from ggshell.files import locked
from ggshell.home.identity import FILE, KeyMark, ensure_identity, note_wallet, read_identity


def test_a_flipped_bit_of_the_identity_is_refused_with_the_remedy(tmp_path: Path) -> None:
    """Regression: a flipped bit in a key fingerprint was reported as another wallet, with a hint to create a new one."""
    (tmp_path / "dirdb").mkdir()
    ensure_identity(tmp_path)
    note_wallet(tmp_path, "0011223344556677", [KeyMark("0011223344556677", "KEY", 1, "a031a5edb576a68b")])
    path, written = tmp_path / FILE, read_identity(tmp_path)
    good, refused = path.read_bytes(), 0
    for bit in range(len(good) * 8):
        data = bytearray(good)
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
        try:
            assert read_identity(tmp_path) == written, bytes(data)
        except StoreError as error:
            assert (error.code, error.hint) == ("GGS-00801", f"restore {FILE} from a backup")
            refused += 1
    assert refused > len(good) * 7  # the other bytes are spaces between the fields


def test_an_identity_of_an_earlier_release_has_no_checksum(tmp_path: Path) -> None:
    (tmp_path / "dirdb").mkdir()
    (tmp_path / FILE).write_text('{"id": "0011223344556677", "root": "/home", "wallet": ""}')
    assert ensure_identity(tmp_path).row_keys == "/home"


def test_a_folder_in_place_of_a_lock_file_is_reported_with_the_remedy(tmp_path: Path) -> None:
    """Regression: START ended with a traceback."""
    path = tmp_path / ".REP1.replicat.lock"
    path.mkdir()
    with pytest.raises(DiskError, match=str(path)) as raised, locked(path, "REPLICAT REP1"):
        pass
    assert "remove it, then" in raised.value.hint
