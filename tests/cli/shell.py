"""Runs the shell in a home of its own, as a batch or as a piped GGSCI session, and makes checkpoints of stopped groups."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ggshell.cli.main import main
from ggshell.clock import SystemClock
from ggshell.home import checkpoint as checkpoints
from ggshell.home.checkpoint import Checkpoint, GroupKind, ReadCheckpoint, SourceType
from ggshell.home.home import Home
from ggshell.types import LogPosition, TrailPosition


class Answer(NamedTuple):
    """Exit code and output of a run."""

    code: int
    out: str
    err: str

    @property
    def objects(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


class Shell:
    """Runs ``ggshell`` in this process, in a home of its own."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.home = Home(root)
        self._capsys = capsys
        self._monkeypatch = monkeypatch

    def run(self, *arguments: str) -> Answer:
        code = main(["--home", str(self.home.root), *arguments])
        out, err = self._capsys.readouterr()
        return Answer(code, out, err)

    def batch(self, *statements: str) -> Answer:
        return self.run("-c", "\n".join(statements))

    def session(self, text: str, *arguments: str) -> str:
        """Run a GGSCI session with its input from a pipe; returns its output."""
        self._monkeypatch.setattr("sys.stdin", io.StringIO(text))
        answer = self.run(*arguments)
        assert answer.code == 0
        assert answer.err == ""
        return answer.out

    def save(self, found: Checkpoint) -> None:
        self.home.ensure()
        checkpoints.save(self.home.checkpoint(found.group, found.type), found)


def log_extract(group: str, **facts: Any) -> Checkpoint:
    read = ReadCheckpoint(SourceType.LOG, current=LogPosition.of_lsn(0x50056B8), current_time=SystemClock().now())
    return Checkpoint(group, GroupKind.EXTRACT, read, created=SystemClock().now(), **facts)


def pump(group: str, **facts: Any) -> Checkpoint:
    return Checkpoint(group, GroupKind.EXTRACT, trail_read(), created=SystemClock().now(), **facts)


def replicat(group: str, **facts: Any) -> Checkpoint:
    return Checkpoint(group, GroupKind.REPLICAT, trail_read(), created=SystemClock().now(), **facts)


def trail_read(seqno: int = 0, rba: int = 0) -> ReadCheckpoint:
    place = TrailPosition(seqno, rba)
    return ReadCheckpoint(SourceType.TRAIL, "./dirdat/ea", startup=place, recovery=place, current=place)
