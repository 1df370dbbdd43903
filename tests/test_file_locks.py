"""Locks on files: who waits, and which error says what."""

from __future__ import annotations

import errno
import fcntl
import threading
from pathlib import Path

import pytest

from ggshell.errors import ConflictError, DiskError
from ggshell.files import locked
from ggshell.home.sealed_file import SealedFile


def test_a_lock_of_another_process_is_named_after_the_patience(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    with (
        locked(path, "the wallet"),
        pytest.raises(ConflictError, match="the wallet is locked by another process"),
        locked(path, "the wallet", patience=0.05),
    ):
        pass


def test_a_lock_that_is_released_within_the_patience_is_taken(tmp_path: Path) -> None:
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with locked(tmp_path / "x.lock", "x"):
            held.set()
            release.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(60)
    sealed = SealedFile(tmp_path / "x", b"X", "the wallet", "", tmp_path / "x.lock")
    threading.Timer(0.1, release.set).start()
    with sealed.changing():
        thread.join()


@pytest.mark.parametrize("wait", [True, False])
def test_a_file_system_without_locks_is_not_another_process(
    wait: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: ENOLCK of NFS was tried again for the whole patience, and then called a lock of another process."""
    tries: list[int] = []

    def refuse(descriptor: int, operation: int) -> None:
        tries.append(operation)
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with (
        pytest.raises(DiskError, match=r"cannot lock .*x\.lock: No locks available") as caught,
        locked(tmp_path / "x.lock", "the wallet", wait=wait, patience=60.0),
    ):
        pass
    assert len(tries) == 1
    assert "supports locks" in caught.value.hint
