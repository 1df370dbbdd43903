"""Steps: what is undone when a statement fails after it has had an effect."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ggshell.cli.commands import extract
from ggshell.clock import SystemClock
from ggshell.errors import ConflictError, DatabaseError, UsageError
from ggshell.home.checkpoint import GroupKind
from ggshell.home.home import Home
from ggshell.home.users import Role
from ggshell.parameters.service_parameters import ServiceParameters
from ggshell.service.call import Call, Request
from ggshell.service.group_changes import add_group
from ggshell.service.sign_in import Principal
from ggshell.service.state import ServiceState

ADD = "ADD EXTRACT load1, SOURCEISTABLE"


@pytest.fixture
def call(tmp_path: Path) -> Iterator[Call]:
    """A call of a user with the role ADMINISTRATOR."""
    home = Home(tmp_path / "home")
    home.ensure()
    state = ServiceState(home, ServiceParameters(), SystemClock())
    request = Request("POST", "", "", {}, {}, None, False, "127.0.0.1")
    found = Call(state, request, Principal("jane", Role.ADMINISTRATOR))
    yield found
    found.close()
    state.close()


def add(call: Call) -> None:
    with call.steps() as steps:
        add_group(call, steps, GroupKind.EXTRACT, "LOAD1", ADD)


def test_a_group_is_deleted_whose_statement_fails_after_it_was_added(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose_the_connection(*_: object) -> None:
        raise DatabaseError("the connection is lost")

    monkeypatch.setattr(extract, "skipped", lose_the_connection)
    with pytest.raises(DatabaseError):
        add(call)
    assert call.home.groups() == []


def test_a_group_that_was_there_before_is_not_deleted(call: Call) -> None:
    add(call)
    with pytest.raises(ConflictError):
        add(call)
    assert [entry.group for entry in call.home.groups()] == ["LOAD1"]


def test_folders_are_removed_unless_they_are_used(call: Call) -> None:
    dirdat = call.home.root / "dirdat"

    def fail() -> None:
        with call.steps() as steps:
            steps.make_folder(dirdat / "a" / "b")
            steps.make_folder(dirdat / "c")
            (dirdat / "c" / "ea000000000").touch()
            steps.make_folder(dirdat / "c" / "ea000000000" / "d")

    with pytest.raises(UsageError, match="is not a folder"):
        fail()
    assert [path.name for path in dirdat.iterdir()] == ["c"]
