"""The state of a move is stored completely, and a damaged file is named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ggshell.connectors.move_side import Direction
from ggshell.errors import StateError, StoreError
from ggshell.move.request import MoveRequest
from ggshell.move.state import MoveFile, MoveState, Step, Switch


def test_a_state_is_read_as_it_was_written(tmp_path: Path) -> None:
    state = MoveState(
        MoveRequest("north", "south", ("shop", "Öde"), jobs=3, others=("own",)),
        (Step.PREPARE,),
        Direction.BACK,
        Direction.FORWARD,
        7,
        (Switch(Direction.FORWARD, 1_700_000_000_000_000, 0.25, compared=True),),
    )
    file = MoveFile(tmp_path)
    file.put(state)
    assert file.get() == state


def test_steps_are_kept_in_their_order_once_each() -> None:
    state = MoveState(MoveRequest("a", "b")).with_step(Step.LOAD).with_step(Step.PREPARE).with_step(Step.LOAD)
    assert state.done == (Step.PREPARE, Step.LOAD)


def test_a_home_without_a_move_says_how_to_begin(tmp_path: Path) -> None:
    assert MoveFile(tmp_path).find() is None
    with pytest.raises(StateError, match="no move has been prepared") as refused:
        MoveFile(tmp_path).get()
    assert refused.value.code == "GGS-01251"


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"request": {}}', b'{"request": {"schemas": null}}'])
def test_a_damaged_file_is_named(tmp_path: Path, damage: bytes) -> None:
    file = MoveFile(tmp_path)
    file.put(replace(MoveState(MoveRequest("a", "b")), marker=1))
    file.path.write_bytes(damage)
    with pytest.raises(StoreError, match=r"move\.json"):
        file.get()
