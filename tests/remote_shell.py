"""Runs a shell that is connected to a service, with a user's folder of its own, for tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from command_line import run_ggshell
from service_client import PASSWORD


class RemoteShell:
    """Shells of one user on one machine. ``folder``: for the user's files and the shell's own home, which is never made."""

    def __init__(self, folder: Path, url: str) -> None:
        self.url = url
        self.home = folder / "home"
        self.pins = folder / "config" / "ggshell" / "known_services"
        self.environment = {"XDG_CONFIG_HOME": str(folder / "config"), "GGSHELL_PASSWORD": PASSWORD}

    def run(self, *words: object, user: str = "admin", **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a batch with ``--connect``."""
        return self.start("--connect", self.url, "--user", user, *words, **environment)

    def start(self, *words: object, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run the command line as given."""
        return run_ggshell("--home", self.home, *words, **{**self.environment, **environment})

    def session(self, text: str, program: str = "ggshell") -> str:
        """Run a session that reads its statements from a pipe; returns its output. ``program``: the name of the program."""
        link = self.home.parent / program
        if not link.exists():
            link.write_text(f"#!{sys.executable}\nfrom ggshell.cli.main import main\nraise SystemExit(main())\n")
            link.chmod(0o755)
        environment = {**os.environ, **self.environment, "GGSHELL_HOME": str(self.home)}
        done = subprocess.run(
            [link], input=text, capture_output=True, text=True, env=environment, check=True, timeout=120
        )
        assert done.stderr == ""
        return done.stdout
