"""Which Extract may send a load to a task: nobody removes a load of another one that the task has not applied."""

from __future__ import annotations

from pathlib import Path

import pytest

from ggshell.clock import SystemClock
from ggshell.errors import StateError
from ggshell.groups.load_tasks import prepare_task
from ggshell.home import checkpoint as checkpoints
from ggshell.home.checkpoint import Checkpoint, GroupKind, ReadCheckpoint, SourceType
from ggshell.home.home import Home
from ggshell.home.process_file import ProcessState, own_process_file, write_process_file
from ggshell.network.proven import Proven
from ggshell.network.trail_owner import TrailOwner, claim
from ggshell.parameters.trail_statements import task_trail
from ggshell.trail.name import TrailName

SENDERS = [
    TrailOwner(f"home{number}", "host", "LOAD", proven=Proven(f"peer p{number}", str(number))) for number in (1, 2)
]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home with a task and, as far as its process file says, a Manager."""
    home = Home(tmp_path)
    home.ensure()
    home.parameters("rload").write_text("REPLICAT rload\nSPECIALRUN\nMAP a.*, TARGET b.*;\n")
    write_process_file(home.manager, own_process_file(home.root, ProcessState.RUNNING, "", SystemClock().now()))
    save(home)
    return home


def save(home: Home, **task: object) -> None:
    """Save the task's checkpoint with these facts about its load."""
    read = ReadCheckpoint(SourceType.TRAIL, task_trail("RLOAD"))
    found = Checkpoint("RLOAD", GroupKind.REPLICAT, read)
    options = found.options._replace(special=True, task=task)
    checkpoints.save(home.checkpoint("RLOAD", GroupKind.REPLICAT), found._replace(options=options))


def send(home: Home, sender: TrailOwner) -> TrailName:
    """Send something of a load, as the receiver records it."""
    name = TrailName.parse(task_trail("RLOAD"), home.root)
    name.folder.mkdir(parents=True, exist_ok=True)
    claim(name, sender)
    name.file(0).write_bytes(b"rows")
    return name


def test_a_load_that_the_task_has_not_applied_is_removed_by_its_own_sender_only(home: Home) -> None:
    prepare_task(home, "rload", SENDERS[0])
    name = send(home, SENDERS[0])
    for other in (SENDERS[1], None):
        with pytest.raises(StateError, match="LOAD of home home1 on host has sent a load to REPLICAT RLOAD"):
            prepare_task(home, "rload", other)
    assert name.sequences() == [0]
    prepare_task(home, "rload", SENDERS[0])
    assert name.sequences() == []


def test_a_load_that_has_failed_gives_way_to_the_next_one_and_that_one_is_kept(home: Home) -> None:
    name = send(home, SENDERS[0])
    save(home, load="1", ended=True, error="duplicate key")
    prepare_task(home, "rload", SENDERS[1])
    assert name.sequences() == []
    send(home, SENDERS[1])
    with pytest.raises(StateError, match="home2"):
        prepare_task(home, "rload", SENDERS[0])
