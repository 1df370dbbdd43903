"""Fixtures: an empty home, and one with groups."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli.shell import Shell, log_extract, pump, replicat


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    return Shell(tmp_path / "home", capsys, monkeypatch)


@pytest.fixture
def with_groups(shell: Shell) -> Shell:
    """A home with three stopped groups."""
    shell.save(pump("PMP1"))
    shell.save(log_extract("EXT1"))
    shell.save(replicat("REP1"))
    return shell


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt as at a terminal; a test run in the background starts with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
