"""The folder through which a writer wakes readers: it belongs to one user, and only sockets of readers are touched."""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from ggshell.trail.name import TrailName
from ggshell.trail.waking import Listener, Waker


@pytest.fixture(params=["short", "l" * 120])
def name(tmp_path: Path, request: pytest.FixtureRequest) -> TrailName:
    folder = tmp_path / str(request.param)
    folder.mkdir()
    return TrailName(folder, "ea")


@pytest.fixture
def waker(name: TrailName) -> Iterator[Waker]:
    waker = Waker(name)
    yield waker
    waker.close()


@pytest.fixture
def listener(name: TrailName) -> Iterator[Listener]:
    listener = Listener(name)
    yield listener
    listener.close()


def folder(name: TrailName) -> Path:
    return name.folder / ".ea.wake"


def is_awake(listener: Listener) -> bool:
    return bool(select.select([listener.fileno()], [], [], 0)[0])


def test_a_writer_wakes_every_reader_through_the_folder_of_the_trail(
    waker: Waker, listener: Listener, name: TrailName
) -> None:
    other = Listener(name)
    waker.wake()
    assert is_awake(listener)
    assert is_awake(other)
    listener.drain()
    other.close()
    assert not is_awake(listener)
    assert folder(name).stat().st_mode & 0o777 == 0o700
    assert len(list(folder(name).iterdir())) == 1


def test_a_deleted_folder_is_created_again(waker: Waker, name: TrailName) -> None:
    waker.wake()
    folder(name).rmdir()
    listener = Listener(name)
    waker.wake()
    assert is_awake(listener)
    listener.close()


def test_a_writer_removes_only_the_socket_of_a_killed_reader(waker: Waker, name: TrailName) -> None:
    folder(name).mkdir(mode=0o700)
    named_as_one, other = folder(name) / "1-0123abcd", folder(name) / "precious"
    stale = folder(name) / "2-0123abcd"
    for path in (named_as_one, other):
        path.write_text("kept")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as reader:
        home = os.open(folder(name), os.O_RDONLY)
        reader.bind(f"/proc/self/fd/{home}/{stale.name}")
        os.close(home)
    waker.wake()
    assert sorted(path.name for path in folder(name).iterdir()) == ["1-0123abcd", "precious"]


def test_a_symbolic_link_in_place_of_the_folder_is_not_followed(waker: Waker, name: TrailName, tmp_path: Path) -> None:
    linked_folder = tmp_path / "victim"
    linked_folder.mkdir(mode=0o755)
    (linked_folder / "1-0123abcd").write_text("kept")
    folder(name).symlink_to(linked_folder)
    listener = Listener(name)
    waker.wake()
    assert not is_awake(listener)
    listener.close()
    assert [path.read_text() for path in linked_folder.iterdir()] == ["kept"]


def test_a_folder_of_another_user_is_left_alone_and_the_reader_still_starts(
    waker: Waker, name: TrailName, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder(name).mkdir(mode=0o777)
    monkeypatch.setattr(os, "geteuid", lambda: folder(name).stat().st_uid + 1)
    listener = Listener(name)
    waker.wake()
    assert not is_awake(listener)
    listener.close()
    assert not list(folder(name).iterdir())
