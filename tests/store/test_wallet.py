"""The wallet: versions of the master key, and the older key file."""

from __future__ import annotations

from pathlib import Path

import pytest

from ggshell.clock import FakeClock
from ggshell.errors import ConflictError, NotFoundError, ParameterError, StateError, StoreError
from ggshell.store.home import Home
from ggshell.store.wallet import KeyStatus, Wallet

CLOCK = FakeClock(1_700_000_000_000_000)


@pytest.fixture
def wallet(tmp_path: Path) -> Wallet:
    wallet = Wallet(Home(tmp_path))
    wallet.create()
    return wallet


def statuses(wallet: Wallet) -> list[tuple[int, KeyStatus]]:
    return [(each.number, each.status) for each in wallet.versions()]


def test_a_wallet_is_made_once_and_lies_closed(wallet: Wallet) -> None:
    with pytest.raises(ConflictError):
        wallet.create()
    assert [path.stat().st_mode & 0o077 for path in wallet.folder.glob("cwallet.*")] == [0, 0]


def test_a_renewed_key_encrypts_and_the_older_ones_still_decrypt(wallet: Wallet) -> None:
    wallet.add(CLOCK)
    first = wallet.secret(wallet.name, 1)
    assert wallet.add(CLOCK, renew=True) == 2
    assert wallet.current() == 2
    assert statuses(wallet) == [(1, KeyStatus.AVAILABLE), (2, KeyStatus.CURRENT)]
    assert wallet.secret(wallet.name, 1) == first != wallet.secret(wallet.name, 2)


def test_deleted_versions_can_be_taken_back_until_they_are_purged(wallet: Wallet) -> None:
    wallet.add(CLOCK)
    for _ in range(3):
        wallet.add(CLOCK, renew=True)
    assert wallet.mark(1, 9, deleted=True) == [1, 2, 3]
    assert wallet.mark(2, 2, deleted=False) == [2]
    assert wallet.purge() == 2
    assert statuses(wallet) == [(2, KeyStatus.AVAILABLE), (4, KeyStatus.CURRENT)]
    with pytest.raises(NotFoundError, match="version 1"):
        wallet.secret(wallet.name, 1)


def test_the_key_in_use_cannot_be_deleted(wallet: Wallet) -> None:
    wallet.add(CLOCK)
    with pytest.raises(StateError, match="current"):
        wallet.mark(1, 1, deleted=True)


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    wallet = Wallet(Home(tmp_path))
    with pytest.raises(NotFoundError, match="no wallet"):
        wallet.check()
    wallet.create()
    with pytest.raises(NotFoundError, match="no master key"):
        wallet.current()
    with pytest.raises(NotFoundError, match="no master key"):
        wallet.add(CLOCK, renew=True)


def test_a_damaged_wallet_is_not_believed(wallet: Wallet) -> None:
    path = wallet.folder / "cwallet.sso"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(StoreError, match="damaged"):
        wallet.check()


def test_keys_of_the_key_file_by_name(tmp_path: Path) -> None:
    (tmp_path / "ENCKEYS").write_text(f"# name value\nMyKey 0x{'0A' * 16}\nshort 0x0A\n")
    wallet = Wallet(Home(tmp_path))
    assert wallet.secret("mykey", 0) == b"\x0a" * 16
    with pytest.raises(ParameterError, match="8 bits"):
        wallet.secret("short", 0)
    with pytest.raises(NotFoundError, match="other"):
        wallet.secret("other", 0)
