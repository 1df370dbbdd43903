"""The credential store: logins are returned, secrets are encrypted, and every refusal has a remedy."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ggshell.errors import ConflictError, NotFoundError, StoreError
from ggshell.home.credential import Credential, CredentialStore, Login
from ggshell.home.home import Home

SECRET = "s3cret of north"


@pytest.fixture
def store(home: Home) -> CredentialStore:
    store = CredentialStore(home)
    store.create()
    store.add("north", "ogg@localhost/north", SECRET)
    return store


def test_an_alias_returns_its_login(store: CredentialStore, home: Home) -> None:
    assert CredentialStore(home).resolve("north") == Login("ogg@localhost/north", SECRET)


def test_domains_are_separate(store: CredentialStore) -> None:
    store.add("north", "other", "x", "Test")
    assert store.resolve("north").userid == "ogg@localhost/north"
    assert store.resolve("north", "Test") == Login("other", "x")
    assert store.entries() == [
        Credential("OracleGoldenGate", "north", "ogg@localhost/north"),
        Credential("Test", "north", "other"),
    ]


def test_replace_and_delete(store: CredentialStore) -> None:
    store.add("north", "ogg2", "new", replace=True)
    assert store.resolve("north") == Login("ogg2", "new")
    store.delete("north")
    assert store.entries() == []


def test_no_part_of_a_secret_is_readable(store: CredentialStore, home: Home) -> None:
    files = list((home.root / "dircrd").glob("credentials.*"))
    assert {path.stat().st_mode & 0o077 for path in files} == {0}
    assert len(files) == 2
    assert not any(SECRET.encode() in path.read_bytes() for path in files)


def test_a_missing_alias_is_reported_with_the_remedy(store: CredentialStore) -> None:
    with pytest.raises(NotFoundError, match="alias south ") as caught:
        store.resolve("south")
    assert "INFO CREDENTIALSTORE" in caught.value.hint


def test_a_deleted_store_is_reported_with_the_hint_to_restore_it(store: CredentialStore, home: Home) -> None:
    """Regression: the message named only the alias, as if it had never been added."""
    path = home.root / "dircrd" / "credentials.ggs"
    path.unlink()
    with pytest.raises(NotFoundError, match="alias north ") as caught:
        store.resolve("north")
    assert str(path) in caught.value.message
    assert "restore" in caught.value.hint
    path.with_suffix(".key").unlink()
    with pytest.raises(NotFoundError) as caught:
        store.resolve("north")
    assert caught.value.hint.startswith("create it with ALTER CREDENTIALSTORE")


def test_an_alias_is_missing_if_there_has_never_been_a_store(home: Home) -> None:
    with pytest.raises(NotFoundError, match="south"):
        CredentialStore(home).resolve("south")
    with pytest.raises(NotFoundError, match="the credential store does not exist"):
        CredentialStore(home).entries()


def test_an_existing_store_or_alias_is_not_replaced(store: CredentialStore) -> None:
    with pytest.raises(ConflictError):
        store.create()
    with pytest.raises(ConflictError, match="north"):
        store.add("north", "a", "b")
    with pytest.raises(NotFoundError):
        store.add("south", "a", "b", replace=True)
    with pytest.raises(NotFoundError):
        store.delete("south")


def test_a_removed_store_can_be_created_again(store: CredentialStore) -> None:
    store.remove()
    store.create()
    assert store.entries() == []


def test_every_flipped_byte_is_detected(store: CredentialStore, home: Home) -> None:
    path = home.root / "dircrd" / "credentials.ggs"
    data = path.read_bytes()
    for place in range(len(data)):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises(StoreError, match="cannot be read"):
            store.entries()


def test_a_lost_key_is_not_replaced(store: CredentialStore, home: Home) -> None:
    key = home.root / "dircrd" / "credentials.key"
    kept = key.read_bytes()
    key.unlink()
    for action in (store.entries, lambda: store.add("south", "a", "b")):
        with pytest.raises(StoreError, match="key file is missing"):
            action()
    key.write_bytes(kept)
    assert store.resolve("north").password == SECRET


@pytest.mark.slow
def test_concurrent_processes_lose_no_entry(store: CredentialStore, home: Home) -> None:
    code = """
import sys
from pathlib import Path
from ggshell.home.credential import CredentialStore
from ggshell.home.home import Home
for number in range(15):
    CredentialStore(Home(Path(sys.argv[1]))).add(f"{sys.argv[2]}{number}", "user", "word")
"""
    both = [subprocess.Popen([sys.executable, "-c", code, str(home.root), name]) for name in "ab"]
    assert [process.wait(30) for process in both] == [0, 0]
    assert len(store.entries()) == 31
