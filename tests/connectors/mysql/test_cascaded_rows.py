"""Rows that a foreign key has changed, as MySQL logs them since version 9.6: put after the row whose key they follow."""

from __future__ import annotations

import pytest

from ggshell.connectors.mysql.binlog.cascades import CascadedRows, is_unchecked
from ggshell.connectors.mysql.binlog.events import HEADER_SIZE, EventType

END, UNCHECKED, ABOVE = 1, 2, 16
CHILD, PARENT, LAST = UNCHECKED | ABOVE, ABOVE, ABOVE | END
UPDATE, DELETE = EventType.UPDATE_ROWS, EventType.DELETE_ROWS


def _event(kind: EventType, flags: int, name: str) -> bytes:
    return bytes(4) + bytes([kind]) + bytes(HEADER_SIZE + 1) + flags.to_bytes(2, "little") + name.encode()


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([(UPDATE, CHILD, "c1"), (UPDATE, CHILD, "d1"), (UPDATE, PARENT, "p1"), (UPDATE, CHILD, "c2"), (UPDATE, LAST, "p2")],
         "p1 c1 d1 p2 c2"),
        ([(DELETE, CHILD, "c"), (UPDATE, CHILD, "null"), (DELETE, LAST, "p")], "c null p"),
        ([(UPDATE, CHILD, "a"), (DELETE, CHILD, "b"), (UPDATE, CHILD | END, "c"), (UPDATE, LAST, "d")], "a b c d"),
        ([(UPDATE, UNCHECKED, "a"), (UPDATE, UNCHECKED, "b"), (UPDATE, END, "c")], "a b c"),
        ([(UPDATE, CHILD, "a"), (UPDATE, LAST, "-")], "a"),
    ],
)  # fmt: skip
def test_children_follow_an_update_of_their_parent(events: list[tuple[EventType, int, str]], expected: str) -> None:
    """Regression: a target that checks foreign keys refused the value of a child before its parent had it."""
    rows, found = CascadedRows(), list[str]()
    for kind, flags, name in events:
        found += [
            each[HEADER_SIZE + 8 :].decode() for each in rows.ordered(_event(kind, flags, name), captured=name != "-")
        ]
    assert found == expected.split()


def test_only_a_session_without_checks_is_said_to_have_none() -> None:
    """Regression: each row that a foreign key had changed was reported as one of a session with foreign_key_checks = 0."""
    assert not is_unchecked(_event(UPDATE, CHILD, ""))
    assert is_unchecked(_event(UPDATE, CHILD | END, ""))
    assert is_unchecked(_event(UPDATE, UNCHECKED, ""))
