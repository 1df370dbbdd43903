"""Commands and processes that change one stopped group at once: no change of a group is lost."""

from __future__ import annotations

import pytest
from cli.shell import Shell

from ggshell.cli import registrations
from ggshell.cli.groups import one
from ggshell.cli.options import Options
from ggshell.cli.session import Session
from ggshell.errors import NotFoundError
from ggshell.files import locked
from ggshell.home import checkpoint as checkpoints
from ggshell.home.checkpoint import Checkpoint, GroupKind

ADD_PATH = "ADD DISTPATH dp1, SOURCE ./dirdat/ea, TARGET file://da"


@pytest.fixture
def path(shell: Shell) -> Shell:
    """A home with a stopped path and a stopped pump."""
    shell.batch(ADD_PATH, "ADD EXTRACT pmp1, EXTTRAILSOURCE ./dirdat/ea", "ADD EXTTRAIL ./dirdat/pa, EXTRACT pmp1")
    return shell


def checkpoint_of(shell: Shell, name: str, kind: GroupKind) -> Checkpoint:
    return checkpoints.load(shell.home.checkpoint(name, kind))


@pytest.mark.parametrize(
    ("statement", "name", "kind"),
    [
        ("ALTER DISTPATH dp1 OPTIONS EOFDELAY 50", "DP1", GroupKind.PATH),
        ("ALTER DISTPATH dp1 BEGIN SEQNO 0 RBA 0", "DP1", GroupKind.PATH),
        ("DELETE DISTPATH dp1", "DP1", GroupKind.PATH),
        ("ALTER EXTRACT pmp1, EXTSEQNO 3, EXTRBA 0", "PMP1", GroupKind.EXTRACT),
        ("ADD EXTTRAIL ./dirdat/pb, EXTRACT pmp1", "PMP1", GroupKind.EXTRACT),
        ("ALTER EXTTRAIL ./dirdat/pa, EXTRACT pmp1, MEGABYTES 9", "PMP1", GroupKind.EXTRACT),
        ("DELETE EXTTRAIL ./dirdat/pa", "PMP1", GroupKind.EXTRACT),
        ("DELETE EXTRACT pmp1", "PMP1", GroupKind.EXTRACT),
    ],
)
def test_a_group_that_a_process_or_another_command_holds_is_not_changed(
    path: Shell, statement: str, name: str, kind: GroupKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registrations, "ENDING_SECONDS", 0)
    before = checkpoint_of(path, name, kind)
    with locked(path.home.lock(name, kind), "another command"):
        answer = path.batch(statement)
    assert (answer.code, f"{kind} {name} is locked by another process" in answer.err) == (1, True)
    assert checkpoint_of(path, name, kind) == before
    assert path.batch(statement).code == 0


def test_a_name_that_another_command_adds_is_not_added_twice(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registrations, "ENDING_SECONDS", 0)
    with locked(shell.home.lock("DP1", GroupKind.PATH), "another command"):
        assert "is locked by another process" in shell.batch(ADD_PATH).err
    assert not shell.home.checkpoint("DP1", GroupKind.PATH).exists()


def test_a_change_is_made_to_the_group_as_it_is_when_it_is_held(path: Shell) -> None:
    session = Session(Options(home=str(path.home.root)))
    seen = one(session, (GroupKind.PATH,), "DP1")
    path.batch("ALTER DISTPATH dp1 OPTIONS EOFDELAY 50")
    with registrations.held(session, seen, "altered") as group:
        assert group.checkpoint.options.path.eof_delay == 50
        targets = tuple(each._replace(megabytes=7) for each in group.checkpoint.write)
        group.save(group.checkpoint._replace(write=targets))
    found = checkpoint_of(path, "DP1", GroupKind.PATH)
    assert (found.options.path.eof_delay, found.write[0].megabytes) == (50, 7)


def test_a_group_that_was_deleted_in_the_meantime_is_not_added_again_by_a_change(path: Shell) -> None:
    session = Session(Options(home=str(path.home.root)))
    seen = one(session, (GroupKind.PATH,), "DP1")
    path.batch("DELETE DISTPATH dp1")
    with (
        pytest.raises(NotFoundError, match="DISTPATH DP1 does not exist"),
        registrations.held(session, seen, "altered"),
    ):
        pass
    assert not path.home.checkpoint("DP1", GroupKind.PATH).exists()
