"""The watch on groups finds running processes and reports each end once; with real processes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from processes import Start, until_state

from ggshell.groups import watch as watch_module
from ggshell.groups.control import wait_readable
from ggshell.groups.watch import Watch, was_killed
from ggshell.home.checkpoint import GroupKind
from ggshell.home.home import Home
from ggshell.home.process_file import ProcessFile, ProcessState, kill

EXT1, EXT2 = ("EXT1", GroupKind.EXTRACT), ("EXT2", GroupKind.EXTRACT)


@pytest.fixture
def watch(home: Home) -> Iterator[Watch]:
    watch = Watch(home)
    yield watch
    watch.close()


def test_running_groups_are_found_and_their_end_is_reported(home: Home, start: Start, watch: Watch) -> None:
    processes = {group: start("idle", group[0]) for group in (EXT1, EXT2)}
    for group in processes:
        until_state(home, *group, ProcessState.RUNNING)
    assert watch.scan([EXT1, EXT2]) == []
    assert {group: entry.pid for group, entry in watch.running().items()} == {
        group: process.pid for group, process in processes.items()
    }
    processes[EXT1].kill()
    assert watch.ended(wait_readable(watch.descriptors(), 10)) == [EXT1]
    assert list(watch.running()) == [EXT2]
    assert watch.scan([EXT1, EXT2]) == []


def test_the_descriptor_of_a_living_process_is_not_reported(home: Home, start: Start, watch: Watch) -> None:
    start("idle")
    until_state(home, *EXT1, ProcessState.RUNNING)
    watch.scan([EXT1])
    assert watch.ended(set(watch.descriptors())) == []
    assert list(watch.running()) == [EXT1]


def test_an_end_between_two_scans_is_reported_once(home: Home, start: Start, watch: Watch) -> None:
    process = start("idle")
    until_state(home, *EXT1, ProcessState.RUNNING)
    watch.scan([EXT1])
    process.terminate()
    process.wait(10)
    assert watch.scan([EXT1]) == [EXT1]
    assert watch.scan([EXT1]) == []


def test_an_end_between_reading_the_file_and_watching_is_reported(
    home: Home, start: Start, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = start("idle")
    until_state(home, *EXT1, ProcessState.RUNNING)
    real = watch_module.end_descriptor

    def ends_now(entry: ProcessFile) -> int | None:
        process.kill()
        process.wait(10)
        return real(entry)

    monkeypatch.setattr(watch_module, "end_descriptor", ends_now)
    assert watch.scan([EXT1]) == []
    assert watch.scan([EXT1]) == [EXT1]
    assert watch.scan([EXT1]) == []


def test_a_group_that_was_started_again_is_watched_again(home: Home, start: Start, watch: Watch) -> None:
    first = start("idle")
    until_state(home, *EXT1, ProcessState.RUNNING)
    watch.scan([EXT1])
    first.kill()
    first.wait()
    second = start("idle")
    until_state(home, *EXT1, ProcessState.RUNNING)
    assert watch.scan([EXT1]) == []
    assert watch.running()[EXT1].pid == second.pid
    assert watch.ended(wait_readable(watch.descriptors(), 0)) == []


def test_a_deleted_group_is_watched_until_it_ends(home: Home, start: Start, watch: Watch) -> None:
    process = start("idle")
    until_state(home, *EXT1, ProcessState.RUNNING)
    watch.scan([EXT1])
    assert watch.scan([]) == []
    process.terminate()
    process.wait(10)
    assert watch.scan([]) == [EXT1]


def test_a_killed_group_is_distinguished_from_an_abended_one(home: Home, start: Start) -> None:
    first = start("idle")
    until_state(home, *EXT1, ProcessState.RUNNING)
    first.kill()
    first.wait()
    assert not was_killed(home, EXT1)
    start("idle")
    until_state(home, *EXT1, ProcessState.RUNNING)
    kill(home.process(*EXT1), "EXTRACT EXT1")
    assert was_killed(home, EXT1)
