"""The wallet: versions of the master key, and the older key file."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from ggshell.cipher import Key
from ggshell.clock import FakeClock
from ggshell.errors import ConflictError, NotFoundError, ParameterError, StateError, StoreError
from ggshell.home.home import Home
from ggshell.home.identity import FILE, KeyMark
from ggshell.home.sealed_file import SealedFile
from ggshell.home.wallet import KeyStatus, Wallet

CLOCK = FakeClock(1_700_000_000_000_000)


@pytest.fixture
def wallet(tmp_path: Path) -> Wallet:
    wallet = Wallet(Home(tmp_path))
    wallet.create()
    return wallet


def statuses(wallet: Wallet) -> list[tuple[int, KeyStatus]]:
    return [(each.number, each.status) for each in wallet.versions()]


def test_a_wallet_is_created_once_and_is_private(wallet: Wallet) -> None:
    with pytest.raises(ConflictError):
        wallet.create()
    assert [path.stat().st_mode & 0o077 for path in wallet.folder.glob("cwallet.*")] == [0, 0]


def test_a_renewed_key_encrypts_and_older_keys_still_decrypt(wallet: Wallet) -> None:
    wallet.add(CLOCK)
    first = wallet.keys(wallet.name, 1)
    assert wallet.add(CLOCK, renew=True) == 2
    assert wallet.current() == 2
    assert statuses(wallet) == [(1, KeyStatus.AVAILABLE), (2, KeyStatus.CURRENT)]
    assert wallet.keys(wallet.name, 1) == first != wallet.keys(wallet.name, 2)


def test_deleted_versions_can_be_restored_until_they_are_purged(wallet: Wallet) -> None:
    wallet.add(CLOCK)
    for _ in range(3):
        wallet.add(CLOCK, renew=True)
    assert wallet.mark(1, 9, deleted=True) == [1, 2, 3]
    assert wallet.mark(2, 2, deleted=False) == [2]
    assert wallet.purge() == 2
    assert statuses(wallet) == [(2, KeyStatus.AVAILABLE), (4, KeyStatus.CURRENT)]
    with pytest.raises(NotFoundError, match="version 1"):
        wallet.keys(wallet.name, 1)


def test_the_key_in_use_cannot_be_deleted(wallet: Wallet) -> None:
    wallet.add(CLOCK)
    with pytest.raises(StateError, match="current"):
        wallet.mark(1, 1, deleted=True)


def test_a_missing_wallet_or_key_is_reported(tmp_path: Path) -> None:
    wallet = Wallet(Home(tmp_path))
    with pytest.raises(NotFoundError, match="the wallet does not exist"):
        wallet.check()
    wallet.create()
    with pytest.raises(NotFoundError, match=r"master key \w+ does not exist in the wallet"):
        wallet.current()
    with pytest.raises(NotFoundError, match=r"master key \w+ does not exist in the wallet"):
        wallet.add(CLOCK, renew=True)


def test_a_damaged_wallet_is_refused(wallet: Wallet) -> None:
    path = wallet.folder / "cwallet.sso"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(StoreError, match="damaged"):
        wallet.check()


def test_keys_of_the_key_file_are_found_by_name(tmp_path: Path) -> None:
    (tmp_path / "ENCKEYS").write_text(f"# name value\nMyKey 0x{'0A' * 16}\nshort 0x0A\n")
    wallet = Wallet(Home(tmp_path))
    assert wallet.keys("mykey", 0) == (Key(b"\x0a" * 16),)
    with pytest.raises(ParameterError, match="8 bits"):
        wallet.keys("short", 0)
    with pytest.raises(NotFoundError, match="other"):
        wallet.keys("other", 0)


def move_folder(wallet: Wallet, name: str) -> Path:
    return wallet.folder.rename(wallet.folder.with_name(name))


def test_a_lost_wallet_is_replaced_only_on_request(wallet: Wallet) -> None:
    wallet.add(CLOCK)
    lost = wallet.id
    move_folder(wallet, "lost")
    with pytest.raises(NotFoundError, match=f"wallet {lost}.*restore dirwlt from a backup"):
        wallet.current()
    with pytest.raises(StateError, match=f"wallet {lost}.*CREATE WALLET ANOTHER"):
        wallet.create()
    wallet.create(another=True)
    assert wallet.id != lost
    assert wallet.follows == (lost,)
    assert wallet.claim() == wallet.id


def test_a_wallet_in_place_of_another_is_refused_by_its_id(wallet: Wallet, tmp_path: Path) -> None:
    wallet.add(CLOCK)
    lost = wallet.claim()
    move_folder(wallet, "lost")
    other = Wallet(Home(tmp_path / "elsewhere"))
    other.create()
    other.folder.rename(wallet.folder)
    with pytest.raises(StateError, match=f"encrypts with wallet {lost}, but the wallet in .* is {wallet.id}"):
        wallet.claim()


def test_a_merged_wallet_has_the_keys_of_both_with_its_own_first(wallet: Wallet, tmp_path: Path) -> None:
    wallet.add(CLOCK)
    other = Wallet(Home(tmp_path / "elsewhere"))
    other.create()
    other.add(CLOCK)
    other.add(CLOCK, renew=True)
    mine, theirs = wallet.keys(wallet.name, 1), other.keys(wallet.name, 1)
    assert wallet.merge(str(other.folder)) == (other.id, 2)
    assert wallet.keys(wallet.name, 1) == mine + theirs
    assert wallet.keys(wallet.name, 2) == other.keys(wallet.name, 2)
    assert (wallet.current(), statuses(wallet)) == (1, [(1, KeyStatus.CURRENT)])
    assert wallet.follows == (other.id,)
    assert wallet.merge(str(other.folder)).versions == 0
    with pytest.raises(ConflictError, match="own wallet"):
        wallet.merge(str(wallet.folder))


def test_a_wallet_of_an_earlier_release_has_the_same_id_in_every_copy(tmp_path: Path) -> None:
    wallet = Wallet(Home(tmp_path))
    old = SealedFile(wallet.folder / "cwallet.sso", b"GGSWALL1", "the wallet", "CREATE WALLET", wallet.folder / "lock")
    old.save([{"name": wallet.name, "version": 1, "created": 0, "secret": "ab" * 32, "deleted": False}])
    before = wallet.id
    wallet.add(CLOCK, renew=True)
    assert wallet.id == before
    assert [key.secret.hex() for key in wallet.keys(wallet.name, 1)] == ["ab" * 32]


def restore_backup(wallet: Wallet, backup: Path) -> None:
    shutil.rmtree(wallet.folder)
    shutil.copytree(backup, wallet.folder)


def backup_before_renewal(wallet: Wallet) -> Path:
    """Copy the wallet with version 1, then renew it to version 2; returns the copy."""
    wallet.add(CLOCK)
    backup = wallet.folder.with_name("backup")
    shutil.copytree(wallet.folder, backup)
    wallet.add(CLOCK, renew=True)
    return backup


def backup_after_renewal(wallet: Wallet, name: str = "newest") -> Path:
    newest = wallet.folder.with_name(name)
    shutil.copytree(wallet.folder, newest)
    return newest


def test_an_older_copy_of_the_wallet_does_not_encrypt_and_is_not_renewed(wallet: Wallet) -> None:
    backup = backup_before_renewal(wallet)
    newest = backup_after_renewal(wallet)
    restore_backup(wallet, backup)
    for use in (
        wallet.claim,
        wallet.check,
        wallet.purge,
        lambda: wallet.add(CLOCK, renew=True),
        lambda: wallet.mark(1, 1, deleted=True),
    ):
        with pytest.raises(StateError, match=r"lacks version 2 of master key \w+ - restore the newest dirwlt") as e:
            use()
        assert e.value.code == "GGS-00808"
    with pytest.raises(NotFoundError, match=f"version 2 .* is not in wallet {wallet.id}"):
        wallet.keys(wallet.name, 2)
    restore_backup(wallet, newest)
    assert wallet.add(CLOCK, renew=True) == 3


def test_the_newest_copy_is_merged_into_an_older_one(wallet: Wallet) -> None:
    backup = backup_before_renewal(wallet)
    newest, mine = backup_after_renewal(wallet), wallet.keys(wallet.name, 2)
    restore_backup(wallet, backup)
    assert wallet.merge(str(newest)) == (wallet.id, 1)
    assert wallet.claim() == wallet.id
    assert (wallet.keys(wallet.name, 2), wallet.current(), wallet.follows) == (mine, 2, ())
    assert wallet.merge(str(newest)).versions == 0


def test_a_home_of_an_earlier_release_records_the_keys_that_it_finds(wallet: Wallet, tmp_path: Path) -> None:
    backup = backup_before_renewal(wallet)
    memory = tmp_path / FILE
    document = json.loads(memory.read_text())
    secret = wallet.keys(wallet.name, 2)[0].secret
    assert secret.hex() not in memory.read_text()
    del document["keys"], document["checksum"]
    memory.write_text(json.dumps(document))
    assert wallet.claim() == wallet.id
    restore_backup(wallet, backup)
    with pytest.raises(StateError, match="lacks version 2"):
        wallet.claim()


def test_a_version_named_by_trail_files_counts_as_missing_and_its_number_is_not_reused(wallet: Wallet) -> None:
    wallet.add(CLOCK)
    of_trail = KeyMark(wallet.id, wallet.name, 7, "")
    with pytest.raises(StateError, match="lacks version 7"):
        wallet.add(CLOCK, renew=True, seen=[of_trail])
    assert wallet.missing([of_trail]) == [of_trail]
    assert wallet.add(CLOCK, renew=True, seen=[of_trail._replace(wallet=""), of_trail._replace(wallet="33" * 8)]) == 8


def test_two_keys_of_one_version_are_distinguished_and_both_decrypt_after_a_merge(
    wallet: Wallet, tmp_path: Path
) -> None:
    backup = backup_before_renewal(wallet)
    newest, mine = backup_after_renewal(wallet), wallet.keys(wallet.name, 2)
    twin = Wallet(Home(tmp_path / "elsewhere"))
    shutil.copytree(backup, twin.folder)
    assert twin.add(CLOCK, renew=True) == 2
    other = twin.keys(wallet.name, 2)
    restore_backup(wallet, twin.folder)
    with pytest.raises(
        StateError, match=r"it holds a different key than this home used for version 2 of master key \w+"
    ):
        wallet.claim()
    restore_backup(wallet, newest)
    assert wallet.merge(str(twin.folder)).versions == 1
    assert wallet.claim() == wallet.id
    assert wallet.keys(wallet.name, 2) == mine + other
    assert statuses(wallet) == [(1, KeyStatus.AVAILABLE), (2, KeyStatus.CURRENT)]
    assert wallet.merged() == [(wallet.id, wallet.name, 2)]


def test_a_purged_version_does_not_count_as_missing_and_its_number_is_not_reused(wallet: Wallet) -> None:
    backup_before_renewal(wallet)
    wallet.mark(1, 1, deleted=True)
    assert wallet.purge() == 1
    assert wallet.claim() == wallet.id
    assert wallet.add(CLOCK, renew=True) == 3


def test_after_the_loss_of_the_newest_copy_a_new_wallet_decrypts_with_the_older_keys(
    wallet: Wallet,
) -> None:
    backup = backup_before_renewal(wallet)
    lost, first = wallet.id, wallet.keys(wallet.name, 1)
    shutil.rmtree(wallet.folder)
    wallet.create(another=True)
    wallet.add(CLOCK)
    assert wallet.merge(str(backup)) == (lost, 1)
    assert wallet.claim() == wallet.id
    assert wallet.keys(wallet.name, 1)[1:] == first
    with pytest.raises(NotFoundError, match="version 2"):
        wallet.keys(wallet.name, 2)


def test_a_backup_of_the_wallet_can_be_moved_into_its_place(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.ensure()
    wallet = Wallet(home)
    wallet.create()
    wallet.add(CLOCK)
    backup = move_folder(wallet, "backup")
    home.ensure()
    for refused in (wallet.create, lambda: wallet.add(CLOCK, renew=True), lambda: wallet.merge("backup")):
        with pytest.raises((StateError, NotFoundError)):
            refused()
    assert not wallet.folder.exists()
    assert backup.rename(wallet.folder) == wallet.folder
    assert wallet.claim() == wallet.id
