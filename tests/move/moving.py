"""A home with a source and a target of a move."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from command_line import run_ggshell

from ggshell.demo.processes import end_processes
from ggshell.home.credential import CredentialStore
from ggshell.home.home import Home


class MoveHome:
    """The home of a move from alias north to alias south."""

    def __init__(self, root: Path, north: str, south: str) -> None:
        self.home = Home(root)
        self.home.ensure()
        self.north, self.south = north, south
        store = CredentialStore(self.home)
        for alias, dsn in (("north", north), ("south", south)):
            store.add(alias, dsn, "")

    def step(self, *words: str, fails: bool = False) -> str:
        """Run one step; return its output."""
        result = run_ggshell("move", *words, "--home", self.home.root)
        assert (result.returncode != 0) is fails, result.stdout + result.stderr
        return result.stdout + result.stderr

    def begin(self, *words: str) -> subprocess.Popen[bytes]:
        """Start one step."""
        command = [sys.executable, "-m", "ggshell", "move", *words, "--home", str(self.home.root)]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def run_all_until_switch(self, *options: str) -> None:
        self.step("prepare", "--from", "north", "--to", "south", *options)
        for name in ("load", "follow", "verify"):
            self.step(name)

    def close(self) -> None:
        end_processes(self.home.root)
