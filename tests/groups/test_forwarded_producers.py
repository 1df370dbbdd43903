"""What the header of a pump's trail says of the database: that of the source trail, whatever its kind."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ggshell.groups.path import _producer
from ggshell.home.checkpoint import GroupKind
from ggshell.trail.fileheader import Continuity, Form, Producer, decode_header, encode_header


@pytest.mark.parametrize("vendor", ["MySQL", "Oracle", "PostgreSQL", ""])
def test_a_pump_keeps_the_database_of_its_source_trail(vendor: str) -> None:
    """Regression: the trails of every pump named PostgreSQL as their database."""
    context: Any = SimpleNamespace(group="PMP1", type=GroupKind.EXTRACT)
    source = Producer("EXT1", "ggshell Capture", vendor, "shop", "10.11")
    header = decode_header(encode_header("./dirdat/ea", 0, 0, source, Continuity(), Form()))
    found = _producer(context, header)
    assert found == Producer("PMP1", "ggshell EXTRACT", vendor, "shop", "10.11")


def test_a_pump_without_a_source_file_names_no_database() -> None:
    context: Any = SimpleNamespace(group="PMP1", type=GroupKind.EXTRACT)
    assert _producer(context, None).database_vendor == ""
